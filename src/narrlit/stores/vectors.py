"""A folder of vectors by content: safetensors shards, written whole under a name of their own and never changed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from narrlit.errors import ModelError
from narrlit.files import atomic_path
from narrlit.stores.mapped import MappedVectors

StoreDtype = Literal["float32", "float16"]
FORMAT = "narrlit vectors 1"
KEY_BYTES = 32


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

    def __init__(self, folder: Path, dtype: StoreDtype = "float32") -> None:
        """Args: folder, which need not exist yet; dtype of vectors that are added."""
        self.folder = folder
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._seen: set[Path] = set()
        self.dimension: int | None = None
        self.refresh()

    def refresh(self) -> None:
        """Look for shards that others have added.

        Raises:
            ModelError: for a shard that is broken, or whose vectors have another dimension than the others.
        """
        for path in sorted(self.folder.glob("[!.]*.safetensors")):
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
            ModelError: if the dimension is another one than the store's, or a number is not finite.
        """
        if not torch.isfinite(vectors).all():
            raise ModelError(f"vectors for {self.folder} hold numbers that are not finite: the model is broken")
        self._check_dimension(vectors.shape[1], self.folder)
        flat = torch.frombuffer(bytearray(b"".join(keys)), dtype=torch.uint8).view(len(keys), KEY_BYTES)
        name = hashlib.sha256(b"".join(keys)).hexdigest()[:24]
        tensors = {"keys": flat, "vectors": vectors.detach().to("cpu", self._dtype).contiguous()}
        with atomic_path(self.folder / f"{name}.safetensors") as temporary:
            save_file(tensors, temporary, metadata={"format": FORMAT})
        self._index(self.folder / f"{name}.safetensors")

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
            found[places] = _tensor(shard, "vectors")[rows].to(self._dtype)
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
        tensors = [_tensor(path, "vectors") for path in shards]
        return MappedVectors(tensors, places[:, 0].copy(), places[:, 1].copy())

    def _require(self, keys: Sequence[bytes]) -> int:
        absent = self.missing(keys)
        if absent or self.dimension is None:
            raise ModelError(
                f"{self.folder}: {len(absent)} of {len(keys)} vectors are missing; have they been deleted?"
            )
        return self.dimension

    def _index(self, path: Path) -> None:
        keys = _tensor(path, "keys")
        shape = _shape(path, "vectors")
        if keys.ndim != 2 or keys.shape[1] != KEY_BYTES or len(shape) != 2 or shape[0] != len(keys):
            raise ModelError(f"{path}: it is no shard of vectors; remove it")
        self._check_dimension(shape[1], path)
        whole = keys.numpy().tobytes()
        for row in range(len(keys)):
            self._places.setdefault(whole[row * KEY_BYTES : (row + 1) * KEY_BYTES], (path, row))
        self._seen.add(path)

    def _check_dimension(self, dimension: int, place: Path) -> None:
        if self.dimension is None:
            self.dimension = dimension
        if dimension != self.dimension:
            raise ModelError(
                f"{place}: vectors of {dimension} numbers do not fit the store {self.folder}, which holds vectors of "
                f"{self.dimension}; name another folder"
            )


def _tensor(path: Path, name: str) -> Tensor:
    try:
        with safe_open(path, framework="pt") as shard:
            found: Tensor = shard.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise _broken(path, error) from error
    return found


def _shape(path: Path, name: str) -> list[int]:
    try:
        with safe_open(path, framework="pt") as shard:
            shape: list[int] = shard.get_slice(name).get_shape()
    except (SafetensorError, OSError) as error:
        raise _broken(path, error) from error
    return shape


def _broken(path: Path, error: Exception) -> ModelError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return ModelError(f"{path}: this shard of vectors can't be read ({reason}); remove it to have it made anew")
