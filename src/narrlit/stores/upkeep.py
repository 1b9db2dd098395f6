"""Which stores of vectors lie in a folder, and what each of them holds."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrlit.errors import ModelError
from narrlit.models.config import EncoderConfig
from narrlit.stores.shards import LEFTOVER, NAME, Head, read_head, read_keys, shard_paths
from narrlit.stores.spaces import SPACE, read_space

DESCRIBED = ("model", "stored")
"""Without these, a `space.json` is another program's file."""
SETTINGS = ("revision", "pooling", "normalize", "max_length", "dtype", "quantization")


@dataclass(frozen=True)
class Summary:
    """What a store holds, as far as it can be told without reading its vectors.

    Attributes:
        folder: where it lies.
        space: what its `space.json` says; None where there is none, as for a teacher of a run.
        vectors: different keys.
        doubled: vectors beyond that, whose key stands elsewhere in the store.
        dimension: numbers of a vector; None where there is none.
        stored: dtypes of its shards.
        shards: how many files of vectors it has, broken ones too.
        size: bytes of all of its files.
        leftovers: files that killed processes, or some that are at work, have not finished.
        changed: when its last file was finished, in seconds since 1970.
        faults: a line for each file that can't be read.
    """

    folder: Path
    space: dict[str, Any] | None
    vectors: int
    doubled: int
    dimension: int | None
    stored: tuple[str, ...]
    shards: int
    size: int
    leftovers: tuple[Path, ...]
    changed: float
    faults: tuple[str, ...]

    @property
    def model(self) -> str | None:
        """The encoder's name; None where nothing says it."""
        return None if self.space is None else str(self.space["model"])

    @property
    def settings(self) -> dict[str, Any]:
        """What the encoder was asked for beyond what it does by itself."""
        usual = EncoderConfig()
        space = self.space or {}
        return {name: space[name] for name in SETTINGS if name in space and space[name] != getattr(usual, name)}


def find_stores(root: Path) -> list[Path]:
    """The folders under `root`, or itself, that hold shards of vectors or say which vectors they are for.

    Hidden folders and links are passed by.
    """
    found = []
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        folder = Path(place)
        ours = any(NAME.fullmatch(name) or LEFTOVER.fullmatch(name) for name in files)
        if ours or (SPACE in files and _describes(folder)):
            found.append(folder)
    return sorted(found)


def _describes(folder: Path) -> bool:
    try:
        return described(folder) is not None
    except ModelError:
        return False


def summarize(folder: Path) -> Summary:
    """What a store holds; what is broken is told in its faults."""
    faults: list[str] = []
    heads: list[Head] = []
    keys: set[bytes] = set()
    shards = shard_paths(folder)
    for path in shards:
        try:
            head, own = read_head(path), read_keys(path)
            heads.append(head)
            keys.update(own)
        except ModelError as fault:
            faults.append(str(fault))
    try:
        space = described(folder)
    except ModelError as fault:
        space = None
        faults.append(str(fault))
    leftovers = unfinished(folder)
    dimensions = Counter(head.dimension for head in heads)
    return Summary(
        folder=folder,
        space=space,
        vectors=len(keys),
        doubled=sum(head.rows for head in heads) - len(keys),
        dimension=dimensions.most_common(1)[0][0] if heads else None,
        stored=tuple(sorted({head.dtype for head in heads})),
        shards=len(shards),
        size=size_of([*shards, folder / SPACE, *leftovers]),
        leftovers=tuple(leftovers),
        changed=last_change(folder),
        faults=tuple(faults),
    )


def unfinished(folder: Path, before: float = float("inf")) -> list[Path]:
    """Temporary files of a store, of processes that were killed or are at work, not changed since `before`."""
    found = {path: _status(path) for path in folder.iterdir() if LEFTOVER.fullmatch(path.name)}
    return sorted(path for path, status in found.items() if status is not None and status.st_mtime < before)


def own_shards(folder: Path) -> list[Path]:
    """Shards of a store, without other programs' safetensors files beside them."""
    return [path for path in shard_paths(folder) if is_own(path)]


def is_own(path: Path) -> bool:
    """Whether a file is a shard by its name or, renamed, by what it says of itself."""
    if NAME.fullmatch(path.name):
        return True
    try:
        read_head(path)
    except ModelError:
        return False
    return True


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of files; one that is gone has none."""
    return sum(found.st_size for found in map(_status, paths) if found is not None)


def last_change(folder: Path) -> float:
    """When a store's last file was finished, in seconds since 1970."""
    finished = map(_status, [*shard_paths(folder), folder / SPACE])
    return max((found.st_mtime for found in finished if found is not None), default=folder.stat().st_mtime)


def _status(path: Path) -> os.stat_result | None:
    # What is at work may finish or remove a file between two looks.
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def described(folder: Path) -> dict[str, Any] | None:
    """A store's description; None where there is none, or a file of another program.

    Raises:
        ModelError: if it is broken.
    """
    space = read_space(folder)
    return space if space is not None and all(name in space for name in DESCRIBED) else None
