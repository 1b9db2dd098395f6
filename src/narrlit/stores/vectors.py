"""A folder of vectors by content: safetensors shards, written whole under a name of their own and never changed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from narrlit.errors import ModelError
from narrlit.stores.mapped import MappedVectors
from narrlit.stores.shards import read_head, read_keys, read_vectors, shard_paths, write_shard

StoreDtype = Literal["float32", "float16"]


def content_keys(space: Mapping[str, Any], texts: Sequence[str]) -> list[bytes]:
    """SHA-256 of all that decides a vector: the space (model, prompt, pooling, length, ...) and the text.

    Args:
        space: plain data that JSON can hold; two spaces that differ in anything share no key.
        texts: N stories.

    Returns:
        N keys of 32 bytes.

    >>> one, other = content_keys({"model": "m"}, ["a"]), content_keys({"model": "n"}, ["a"])
    >>> len(one[0]), one == other
    (32, False)
    """
    described = json.dumps(space, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    # The space's length goes in first, so that no space runs on into a text.
    base = hashlib.sha256(len(described).to_bytes(8, "big") + described)
    keys = []
    for text in texts:
        digest = base.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        keys.append(digest.digest())
    return keys


class VectorStore:
    """Vectors by content key.

    A shard appears under its final name only when it is complete, and several processes may add shards at once: no
    locks, and a half-written shard is never seen. What the same key gives twice is the same vector.
    """

    def __init__(self, folder: Path, dtype: StoreDtype = "float32", maker: str = "encoder") -> None:
        """Args: folder, which need not exist yet; dtype of vectors that are added; what makes them."""
        self.folder = folder
        self.makers: set[str] = set()
        """What made the vectors that are there."""
        self._maker = maker
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._seen: set[Path] = set()
        self.dimension: int | None = None
        self.refresh()

    def refresh(self) -> None:
        """Look for shards that others have added, or merged into one.

        Raises:
            ModelError: for a shard that is broken, or whose vectors have another dimension than the others.
        """
        paths = shard_paths(self.folder)
        if not self._seen.issubset(paths):
            # Where the vectors of those that are gone stand now is told by shards that were seen before, too.
            self._places.clear()
            self._seen.clear()
        for path in paths:
            if path not in self._seen:
                self._index(path)

    def __len__(self) -> int:
        return len(self._places)

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """Places in `keys` of those that have no vector yet."""
        return [place for place, key in enumerate(keys) if key not in self._places]

    def add(self, keys: Sequence[bytes], vectors: Tensor) -> None:
        """Write N vectors (N, D) as one shard.

        Raises:
            ModelError: if the dimension is another one than the store's, or a number is not finite in its dtype.
        """
        stored = vectors.detach().to("cpu", self._dtype).contiguous()
        if not torch.isfinite(stored).all():
            broken = "the model is broken" if not torch.isfinite(vectors).all() else "float16 is too narrow for them"
            raise ModelError(f"vectors for {self.folder} hold numbers that are not finite: {broken}")
        self._check_dimension(stored.shape[1], self.folder)
        self._index(write_shard(self.folder, keys, stored, [self._maker]))

    def vectors(self, keys: Sequence[bytes]) -> Tensor:
        """The vectors of N keys, (N, D), in the dtype in which they are stored.

        Raises:
            ModelError: if one is missing, or a shard is broken or gone.
        """
        dimension = self._require(keys)
        by_shard: dict[Path, list[tuple[int, int]]] = {}
        for place, key in enumerate(keys):
            shard, row = self._places[key]
            by_shard.setdefault(shard, []).append((place, row))
        found = torch.empty(len(keys), dimension, dtype=self._dtype)
        for shard, pairs in by_shard.items():
            places, rows = torch.tensor(pairs).unbind(1)
            found[places] = read_vectors(shard)[rows].to(self._dtype)
        return found

    def mapped(self, keys: Sequence[bytes]) -> MappedVectors:
        """The vectors of N keys as rows of memory-mapped shards, read when they are asked for.

        Raises:
            ModelError: if one is missing, or a shard is broken or gone.
        """
        self._require(keys)
        shards: dict[Path, int] = {}
        places = np.array(
            [(shards.setdefault(path, len(shards)), row) for path, row in (self._places[key] for key in keys)],
            dtype=np.int64,
        ).reshape(-1, 2)
        tensors = [read_vectors(path) for path in shards]
        return MappedVectors(tensors, places[:, 0].copy(), places[:, 1].copy())

    def _require(self, keys: Sequence[bytes]) -> int:
        if not all(path.exists() for path in {self._places[key][0] for key in keys if key in self._places}):
            self.refresh()
        absent = self.missing(keys)
        if absent or self.dimension is None:
            raise ModelError(
                f"{self.folder}: {len(absent)} of {len(keys)} vectors are missing; have they been deleted?"
            )
        return self.dimension

    def _index(self, path: Path) -> None:
        try:
            head, keys = read_head(path), read_keys(path)
        except ModelError:
            if path.exists():
                raise
            return  # merged into another one since the folder was listed
        self._check_dimension(head.dimension, path)
        self.makers |= head.makers
        for row, key in enumerate(keys):
            self._places.setdefault(key, (path, row))
        self._seen.add(path)

    def _check_dimension(self, dimension: int, place: Path) -> None:
        if self.dimension is None:
            self.dimension = dimension
        if dimension != self.dimension:
            raise ModelError(
                f"{place}: vectors of {dimension} numbers do not fit the store {self.folder}, which holds vectors of "
                f"{self.dimension}; name another folder"
            )
