"""narrlit cache: list or remove cached embeddings."""

import json as json_format
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrlit.console import counted, say, size
from narrlit.errors import OptionError, reading

if TYPE_CHECKING:
    from narrlit.stores.upkeep import Summary

COLUMNS = ("cache", "model", "settings", "embeddings", "dimensions", "dtype", "shards", "size", "changed")


def cache(
    action: Literal["ls", "rm"],
    folder: str = "runs/vectors",
    *,
    model: str | None = None,
    older_than: float | None = None,
    yes: bool = False,
    json: bool = False,
) -> None:
    """List cached embeddings of frozen encoders and teachers, or remove them; they are computed again when needed.

    Args:
        action: ls lists each cache below the folder, rm removes those selected.
        folder: of the caches, or one of them.
        model: only caches of this model, by the name that ls prints.
        older_than: only caches that have not changed for so many days.
        yes: remove without asking; else rm only lists what it would remove.
        json: ls prints a list of JSON objects.
    """
    from narrlit.stores.upkeep import find_stores, summarize

    root = Path(folder)
    if not root.is_dir():
        raise OptionError(f"{folder} is no folder: name one that holds cached embeddings")
    if (json and action == "rm") or (yes and action == "ls"):
        raise OptionError("--json belongs to ls, --yes to rm")
    caches = []
    for path in find_stores(root):
        with reading("cache", path, f"narrlit cache rm {path} --yes removes it"):
            caches.append(summarize(path))
    caches = [cache for cache in caches if _selected(cache, model, older_than)]
    if not caches:
        say(f"{folder}: no cached embeddings{' of this selection' if model or older_than else ''}")
    if json:
        print(json_format.dumps([_plain(cache) for cache in caches], indent=2))
    elif action == "ls" and caches:
        _list(root, caches)
    elif action == "rm" and caches:
        _remove(caches, yes)


def _selected(cache: "Summary", model: str | None, older_than: float | None) -> bool:
    days = (datetime.now().astimezone().timestamp() - cache.changed) / 86_400
    return (model is None or cache.model == model) and (older_than is None or days > older_than)


def _remove(caches: list["Summary"], yes: bool) -> None:
    for cache in caches:
        print(f"{cache.folder}: {counted(cache.vectors, 'embedding')}, {size(cache.size)}")
        if yes:
            shutil.rmtree(cache.folder)
    freed = size(sum(cache.size for cache in caches))
    say(f"{freed} freed" if yes else f"nothing is removed yet: --yes frees {freed}")


def _list(root: Path, caches: list["Summary"]) -> None:
    rows = [COLUMNS, *(_row(root, cache) for cache in caches)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for fault in (fault for cache in caches for fault in cache.faults):
        say(f"{fault}")


def _row(root: Path, cache: "Summary") -> tuple[str, ...]:
    settings = " ".join(f"{name}={value}" for name, value in cache.settings.items())
    return (
        str(cache.folder if cache.folder == root else cache.folder.relative_to(root)),
        "unknown" if cache.model is None else cache.model,
        settings or "-",
        f"{cache.vectors:,}",
        "-" if cache.dimension is None else str(cache.dimension),
        "+".join(cache.stored) or "-",
        str(cache.shards),
        size(cache.size),
        datetime.fromtimestamp(cache.changed).strftime("%Y-%m-%d %H:%M"),
    )


def _plain(cache: "Summary") -> dict[str, Any]:
    return {
        "folder": str(cache.folder),
        "model": cache.model,
        "settings": cache.settings,
        "embeddings": cache.vectors,
        "dimension": cache.dimension,
        "dtype": list(cache.stored),
        "shards": cache.shards,
        "size": cache.size,
        "faults": [str(fault) for fault in cache.faults],
        "changed": datetime.fromtimestamp(cache.changed).astimezone().isoformat(timespec="seconds"),
    }
