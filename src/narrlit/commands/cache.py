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
    """List cached embeddings of frozen encoders and teachers, or remove them; they are computed again when needed.

    Args:
        action: ls lists each cache below the folder, rm removes those selected.
        folder: of the caches, or one of them.
        model: only caches of this model, by the name that ls prints.
        yes: remove without asking; else rm only lists what it would remove.
        json: ls prints a list of JSON objects.
    """
    if (json and action == "rm") or (yes and action == "ls"):
        raise OptionError("--json belongs to ls, --yes to rm")
    caches = narrlit.embedding_caches(folder, model)
    print_result(caches, json)
    if yes:
        caches.remove()
        say(f"{caches.size} freed")
    elif action == "rm":
        say(f"nothing is removed yet: --yes frees {caches.size}")
