"""Whether a store's vectors are whole: every shard is read, and vectors that it holds twice are compared."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.functional import cosine_similarity

from narrlit.errors import ModelError
from narrlit.stores.parity import LEAST_COSINE
from narrlit.stores.shards import (
    DTYPES,
    NAME,
    Head,
    as_bytes,
    blocks,
    read_head,
    read_keys,
    read_vectors,
    shard_name,
    shard_paths,
)
from narrlit.stores.spaces import SPACE
from narrlit.stores.upkeep import described

OnBytes = Callable[[int], object]
Keys = dict[Path, list[bytes]]
"""The keys of shards, by row."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a file."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Verified:
    """What was found.

    Attributes:
        folder: of the store.
        keys: of the shards that are sound.
        unchecked: how many of these have no checksum, as older releases wrote them.
        faults: of the other files.
    """

    folder: Path
    keys: Keys
    unchecked: int
    faults: tuple[Fault, ...]

    @property
    def vectors(self) -> int:
        """Different keys of the sound shards."""
        return len({key for keys in self.keys.values() for key in keys})


def verify_store(folder: Path, on_bytes: OnBytes = lambda count: None) -> Verified:
    """Read every shard wholly.

    Args:
        folder: of the store.
        on_bytes: told how many bytes of vectors have been read, again and again.
    """
    heads: dict[Path, Head] = {}
    keys: Keys = {}
    faults: list[Fault] = []
    stored = None
    try:
        stored = (described(folder) or {}).get("stored")
    except ModelError as error:
        faults.append(_fault(folder / SPACE, error))
    for path in shard_paths(folder):
        try:
            heads[path], keys[path] = read_head(path), read_keys(path)
        except ModelError as error:
            faults.append(_fault(path, error))
    dimension = _usual_dimension(heads.values())
    for path, head in heads.items():
        reason = _shape_fault(head, stored, dimension) or _name_fault(path, keys[path])
        reason = reason or _content_fault(path, head, on_bytes)
        if reason is not None:
            faults.append(Fault(path, reason))
            del keys[path]
    for fault in disagreements(keys):
        faults.append(fault)
        keys.pop(fault.path, None)
    return Verified(folder, keys, sum(heads[path].checksum is None for path in keys), tuple(faults))


def disagreements(keys: Mapping[Path, list[bytes]]) -> list[Fault]:
    """Shards whose vector of a key is another one than that of the same key in another place; of both it may be wrong.

    Args:
        keys: of shards of one dimension, by row.
    """
    first: dict[bytes, tuple[Path, int]] = {}
    pairs: dict[tuple[Path, Path], list[tuple[int, int]]] = {}
    for path, own in keys.items():
        for row, key in enumerate(own):
            other, place = first.setdefault(key, (path, row))
            if (other, place) != (path, row):
                pairs.setdefault((other, path), []).append((place, row))
    faults = []
    for (one, other), rows in pairs.items():
        places, others = torch.tensor(rows).unbind(1)
        a, b = read_vectors(one)[places].double(), read_vectors(other)[others].double()
        least = float(cosine_similarity(a, b).min())
        if not least > LEAST_COSINE:
            for path, beside in ((one, other), (other, one)):
                faults.append(Fault(path, f"a vector that {beside.name} also holds differs there (cosine {least:.4f})"))
    return faults


def _usual_dimension(heads: Iterable[Head]) -> int | None:
    rows: Counter[int] = Counter()
    for head in heads:
        rows[head.dimension] += head.rows
    return rows.most_common(1)[0][0] if rows else None


def _shape_fault(head: Head, stored: str | None, dimension: int | None) -> str | None:
    if head.dimension != dimension:
        return f"vectors of {head.dimension} numbers, those of the other shards have {dimension}"
    if head.dtype not in DTYPES.values() or stored not in (None, head.dtype):
        return f"vectors in {head.dtype}, {stored or 'float32 or float16'} is needed"
    return None


def _name_fault(path: Path, keys: list[bytes]) -> str | None:
    if NAME.fullmatch(path.name) and path.name != shard_name(keys):
        return "its keys are not those that its name was made from: they have changed since they were written"
    return None


def _content_fault(path: Path, head: Head, on_bytes: OnBytes) -> str | None:
    whole = hashlib.sha256()
    not_finite = zero = 0
    for block in blocks(read_vectors(path)):
        whole.update(as_bytes(block))
        not_finite += int((~torch.isfinite(block)).any(1).sum())
        zero += int((block == 0).all(1).sum())
        on_bytes(block.numel() * block.element_size())
    if head.checksum not in (None, whole.hexdigest()):
        return "its vectors have changed since they were written: the checksum is another one"
    if not_finite:
        return f"{not_finite} of {head.rows} vectors hold numbers that are not finite"
    return f"{zero} of {head.rows} vectors are zero" if zero else None


def _fault(path: Path, error: ModelError) -> Fault:
    return Fault(path, str(error).removeprefix(f"{path}: "))
