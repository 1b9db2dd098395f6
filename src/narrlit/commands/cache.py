"""narrlit cache: list or remove cached embeddings."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from narrlit.console import counted, say
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
    from narrlit.cache.storage import list_caches, remove_cache

    if (json and action == "rm") or (yes and action == "ls"):
        raise OptionError("--json belongs to ls, --yes to rm")
    caches = [cache for cache in list_caches(Path(folder)) if model is None or cache.model == model]
    if json:
        print(json_format.dumps([asdict(cache) | {"folder": str(cache.folder)} for cache in caches], indent=2))
        return
    for cache in caches:
        about = f"{cache.dimension or '-'} dimensions, {cache.dtype}, {_size(cache.bytes)}"
        print(f"{cache.folder}: {cache.model}, {counted(cache.embeddings, 'embedding')}, {about}")
        if yes:
            remove_cache(cache.folder)
    if not caches:
        say(f"{folder}: no cached embeddings{'' if model is None else f' of {model}'}")
    elif action == "rm":
        size = _size(sum(cache.bytes for cache in caches))
        say(f"{size} freed" if yes else f"nothing is removed yet: --yes frees {size}")


def _size(count: int) -> str:
    """Format a number of bytes.

    >>> _size(999), _size(1234), _size(56_789_000_000)
    ('999 B', '1.2 kB', '56.8 GB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    power = min(len(units) - 1, max(0, (len(str(count)) - 1) // 3))
    return f"{count / 1000**power:.{min(power, 1)}f} {units[power]}"
