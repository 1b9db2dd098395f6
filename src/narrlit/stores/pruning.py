"""What of the stores may go: planned first, then done in steps that keep every vector at any moment."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from narrlit.errors import OptionError
from narrlit.stores.selection import Selection
from narrlit.stores.shards import KEY_BYTES, read_head, read_keys, read_vectors, shard_paths, write_shard
from narrlit.stores.spaces import SPACE
from narrlit.stores.upkeep import is_own, last_change, own_shards, size_of, summarize, unfinished
from narrlit.stores.verifying import Fault, OnBytes, Verified, verify_store

UNFINISHED_SECONDS = 3600
"""A temporary file that has not changed for so long belongs to no process at work."""
MERGED_BYTES = 2**28
"""Vectors of a merged shard, at most; a shard of half of it or more is merged with no other."""

Rows = dict[Path, list[int]]
"""Rows of shards, in the order in which they shall stand."""


@dataclass(frozen=True)
class Step:
    """Files that go, after those of their vectors that stand nowhere else have been written into one new shard.

    Attributes:
        folder: of the store.
        why: they may go.
        files: all of them.
        kept: rows of these files for the new shard; where there is none, no shard is written.
        freed: bytes.
    """

    folder: Path
    why: str
    files: tuple[Path, ...]
    kept: Rows
    freed: int


def plan(
    folders: Sequence[Path], selection: Selection, on_bytes: OnBytes = lambda count: None
) -> tuple[list[Step], list[Fault]]:
    """What would be done to these stores, and which files are left alone because they are broken.

    Args:
        folders: of stores.
        selection: of what.
        on_bytes: told how many bytes of vectors have been read, again and again.

    Raises:
        OptionError: if there is no store of the selected model.
    """
    if selection.model is not None or selection.older_than is not None:
        return [step for folder in _selected(folders, selection) for step in _whole(folder)], []
    steps: list[Step] = []
    faults: list[Fault] = []
    for folder in folders:
        if not (selection.broken or selection.merge):
            steps += _left_by_killed(folder)
        if not _needs_reading(folder, selection):
            continue
        verified = verify_store(folder, on_bytes)
        if selection.broken:
            steps += _broken(verified)
            faults += [fault for fault in verified.faults if not _may_go(fault.path)]
        else:
            # A broken copy of a vector may be the only one: nothing is touched that is in doubt.
            faults += verified.faults
            steps += _rewritten(verified, selection.merge)
    return steps, faults


def _needs_reading(folder: Path, selection: Selection) -> bool:
    if selection.broken or (selection.merge and len(shard_paths(folder)) > 1):
        return True
    return summarize(folder).doubled > 0


def take(step: Step) -> None:
    """Do what is planned.

    Raises:
        OptionError: if a file can't be removed.
        ModelError: if a shard is gone or broken by now.
    """
    if step.kept:
        keys = [own[row] for path, rows in step.kept.items() for own in [read_keys(path)] for row in rows]
        vectors = torch.cat([read_vectors(path)[torch.tensor(rows)] for path, rows in step.kept.items()])
        makers = {maker for path in step.kept for maker in read_head(path).makers}
        _to_disk(write_shard(step.folder, keys, vectors, makers))
    for path in step.files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise OptionError(f"cannot remove {path}: {error.strerror}") from error
    if not any(step.folder.iterdir()):
        step.folder.rmdir()


def _to_disk(path: Path) -> None:
    """Else a power cut could find the old shards removed and the new one not written yet."""
    for place in (path, path.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _selected(folders: Sequence[Path], selection: Selection) -> list[Path]:
    chosen = list(folders)
    if selection.model is not None:
        models = {folder: summarize(folder).model for folder in folders}
        chosen = [folder for folder in folders if models[folder] == selection.model]
        if not chosen:
            there = ", ".join(sorted({name for name in models.values() if name is not None})) or "none with a name"
            raise OptionError(f"--model {selection.model}: there is no store of it; the models are {there}")
    if selection.older_than is not None:
        before = time.time() - 86400 * selection.older_than
        chosen = [folder for folder in chosen if last_change(folder) < before]
    return chosen


def _left_by_killed(folder: Path) -> list[Step]:
    before = time.time() - UNFINISHED_SECONDS
    return _removal(folder, "left by killed processes", unfinished(folder, before))


def _whole(folder: Path) -> list[Step]:
    # The description last: what an interrupted removal leaves is a store still.
    description = [folder / SPACE] if summarize(folder).space is not None else []
    return _removal(folder, "the whole store", [*own_shards(folder), *unfinished(folder), *description])


def _broken(verified: Verified) -> list[Step]:
    return _removal(verified.folder, "broken", [fault.path for fault in verified.faults if _may_go(fault.path)])


def _may_go(path: Path) -> bool:
    # What this user may not read need not be broken.
    return os.access(path, os.R_OK) and (path.name == SPACE or is_own(path))


def _removal(folder: Path, why: str, files: Iterable[Path]) -> list[Step]:
    every = tuple(dict.fromkeys(files))
    return [Step(folder, why, every, {}, size_of(every))] if every else []


def _rewritten(verified: Verified, merge: bool) -> list[Step]:
    """Steps after which no vector stands twice and, where they are merged, few small shards are left."""
    kept = _kept_rows(verified)
    folder = verified.folder
    steps = _removal(folder, "all of its vectors stand in others", [path for path, rows in kept.items() if not rows])
    left = {path: rows for path, rows in kept.items() if rows}
    for group in _groups(left) if merge else [[path] for path in left]:
        doubled = any(len(left[path]) < len(verified.keys[path]) for path in group)
        if len(group) > 1 or doubled:
            why = "merged into one" if len(group) > 1 else "vectors that stand in others are left out"
            freed = size_of(group) - sum(_bytes_of(path, left[path]) for path in group)
            steps.append(Step(folder, why, tuple(group), {path: left[path] for path in group}, freed))
    return steps


def _kept_rows(verified: Verified) -> Rows:
    """Of each sound shard the rows that it keeps, so that each vector is kept once: by the largest that holds it."""
    seen: set[bytes] = set()
    kept: Rows = {}
    for path in sorted(verified.keys, key=lambda path: (-len(verified.keys[path]), path)):
        kept[path] = []
        for row, key in enumerate(verified.keys[path]):
            if key not in seen:
                seen.add(key)
                kept[path].append(row)
    return kept


def _groups(kept: Rows) -> list[list[Path]]:
    """Shards that become one: small ones together as far as they fit, each large one alone."""
    groups: list[list[Path]] = []
    open_group: dict[str, list[Path]] = {}
    filled: dict[str, int] = {}
    for path in sorted(kept):
        size, dtype = _bytes_of(path, kept[path]), read_head(path).dtype
        if 2 * size >= MERGED_BYTES:
            groups.append([path])
        elif dtype in open_group and filled[dtype] + size <= MERGED_BYTES:
            open_group[dtype].append(path)
            filled[dtype] += size
        else:
            open_group[dtype], filled[dtype] = [path], size
            groups.append(open_group[dtype])
    return groups


def _bytes_of(path: Path, rows: Sequence[int]) -> int:
    """Bytes that these rows take in a shard of the same kind."""
    head = read_head(path)
    return len(rows) * (KEY_BYTES + head.dimension * (2 if head.dtype == "float16" else 4))
