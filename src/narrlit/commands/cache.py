"""narrlit cache: list or remove cached embeddings."""

from typing import Literal

import narrlit
from narrlit.console import print_result, say
from narrlit.errors import OptionError


def cache(
    action: Literal["ls", "rm"],
    folder: str = "runs/embeddings",
    *,
    model: str | None = None,
    yes: bool = False,
    json: bool = False,
) -> None:
    """List or remove cached embeddings of frozen encoders and teachers; removed ones are computed again when needed.

    Args:
        action: ls lists the caches below the folder, rm removes them.
        folder: folder that contains caches, or a single cache.
        model: only caches of this model, named as ls prints it.
        yes: remove the caches; without it, rm only lists what it would remove.
        json: print a JSON list of objects (ls only).
    """
    if (json and action == "rm") or (yes and action == "ls"):
        raise OptionError("options_of_cache")
    caches = narrlit.embedding_caches(folder, model)
    print_result(caches, json)
    if yes:
        caches.remove()
        say(f"{caches.size} freed")
    elif action == "rm":
        say(f"dry run, nothing was removed; add --yes to free {caches.size}")
