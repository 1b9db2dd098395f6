"""Embedding caches: embeddings are added in shards, and read from memory-mapped shards."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from narrlit.data.schema import IntArray
from narrlit.embedding_cache.shards import FORMAT, KEY_BYTES, READING_COLUMNS, SPACE, SUFFIX, Readings, Shard, checksum
from narrlit.embedding_cache.space import CacheDtype, EmbeddingSpace
from narrlit.errors import ModelError
from narrlit.files import atomic_path

COPIED_BYTES = 2**28
"""Size of embeddings up to which shards are joined in memory, because batches from many shards are far slower."""


class Location(NamedTuple):
    """Place of an embedding: the file of its shard, and its row there."""

    shard: Path
    row: int


class EmbeddingCache:
    """Embeddings by content key, in a folder that several processes may fill at once.

    Attributes:
        folder: folder of the shards.
        dimension: D; None while the cache is empty.
        dtype: number format of embeddings that are added.
        sources: sources that computed the embeddings: encoder, server, vllm.
    """

    def __init__(self, folder: Path, dtype: CacheDtype = "float32", source: str = "encoder") -> None:
        """Read the keys of existing shards, if any; embeddings from `source` will be added in `dtype`."""
        self.folder = folder
        self.dimension: int | None = None
        self.sources: set[str] = set()
        self._source = source
        self.dtype: torch.dtype = getattr(torch, dtype)
        self._locations: dict[bytes, Location] = {}
        self._shards: dict[Path, Shard] = {}
        self._unverified: set[Path] = set()
        self._ignored: set[Path] = set()
        self.refresh()

    def refresh(self) -> None:
        """Read the keys of shards that other processes have added."""
        for path in sorted(self.folder.glob(f"[!.]*{SUFFIX}")):
            if path not in self._shards and path not in self._ignored:
                self._index(path)

    def __len__(self) -> int:
        return len(self._locations)

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """Return the positions of keys without an embedding, or with one in a damaged shard."""
        used = {self._locations[key].shard for key in keys if key in self._locations}
        for path in used & self._unverified:
            self._unverified.remove(path)
            if not self._shards[path].verify():
                self._forget(path)
        return [position for position, key in enumerate(keys) if key not in self._locations]

    def add(
        self, keys: Sequence[bytes], embeddings: Tensor, readings: Readings | None = None, write: bool = True
    ) -> None:
        """Write the embeddings (N, D) of N keys as one shard, or only check them.

        Args:
            keys: N keys of 32 bytes.
            embeddings: N embeddings, (N, D), of any type of floats.
            readings: (N, 5) coverage of each text; None if it is not known.
            write: False: only check the embeddings, which another process writes.

        Raises:
            ModelError: if the embeddings are not finite, or have another shape than the keys or the cache requires.
        """
        if embeddings.ndim != 2 or len(embeddings) != len(keys):
            shape = tuple(embeddings.shape)
            raise ModelError("embeddings_of_shape", texts=len(keys), shape=str(shape))
        stored = self._stored(embeddings)
        self._check_dimension(stored.shape[1], self.folder)
        if write:
            coverage = np.zeros((len(keys), READING_COLUMNS)) if readings is None else np.ascontiguousarray(readings)
            self._write(keys, stored, coverage)

    def _stored(self, embeddings: Tensor) -> Tensor:
        """Convert embeddings (N, D) to the format on disk; raise ModelError if a number there is not finite."""
        stored = embeddings.detach().to("cpu", self.dtype).contiguous()
        broken = int((~torch.isfinite(stored)).any(1).sum())
        if broken:
            cause = "float16 is too narrow for them" if torch.isfinite(embeddings).all() else "the model is broken"
            raise ModelError(
                "embeddings_not_finite", n=broken, embeddings=len(embeddings), folder=self.folder, cause=cause
            )
        return stored

    def _write(self, keys: Sequence[bytes], embeddings: Tensor, readings: Readings) -> None:
        """Write embeddings (N, D) and readings (N, 5) as a shard, which is named by its keys."""
        joined = b"".join(keys)
        rows_of_bytes = torch.frombuffer(bytearray(joined), dtype=torch.uint8).view(len(keys), KEY_BYTES)
        path = self.folder / (hashlib.sha256(joined).hexdigest()[:24] + SUFFIX)
        with atomic_path(path) as temporary:
            digest = checksum(rows_of_bytes.numpy(), embeddings.numpy(), readings)
            metadata = {"format": FORMAT, "makers": self._source, "checksum": digest}
            tensors = {"keys": rows_of_bytes, "vectors": embeddings, "readings": torch.from_numpy(readings)}
            save_file(tensors, temporary, metadata=metadata)
        self._index(path)

    def read(self, keys: Sequence[bytes]) -> Tensor:
        """Read the embeddings of N keys, (N, D), in the dtype in which they are added."""
        return self.mapped(keys)[np.arange(len(keys))].to(self.dtype)

    def readings(self, keys: Sequence[bytes]) -> Readings:
        """Return how much of the texts of N keys the encoder has read, (N, 5); zeros where this is not known."""
        readings = np.zeros((len(keys), READING_COLUMNS))
        for position, key in enumerate(keys):
            location = self._locations[key]
            readings_of_shard = self._shards[location.shard].readings
            if readings_of_shard is not None:
                readings[position] = np.asarray(readings_of_shard[location.row])
        return readings

    def mapped(self, keys: Sequence[bytes]) -> "MappedEmbeddings":
        """Map the embeddings of N keys into memory; indexing reads them."""
        absent = self.missing(keys)
        if absent or self.dimension is None:
            raise ModelError("missing_embeddings", folder=self.folder, missing=len(absent), keys=len(keys))
        number_of_shard: dict[Path, int] = {}
        shard_of = np.empty(len(keys), dtype=np.int64)
        row_of = np.empty(len(keys), dtype=np.int64)
        for position, key in enumerate(keys):
            location = self._locations[key]
            shard_of[position] = number_of_shard.setdefault(location.shard, len(number_of_shard))
            row_of[position] = location.row
        tensors = [self._shards[path].vectors for path in number_of_shard] or [torch.empty(0, self.dimension)]
        return MappedEmbeddings(tensors, shard_of, row_of)

    def _index(self, path: Path) -> None:
        """Open a shard and read its keys; raise ModelError if it has another dimension."""
        shard = Shard.open(path, "pt")
        if shard is None:
            self._ignored.add(path)
            return
        self._check_dimension(shard.vectors.shape[1], path)
        self._shards[path] = shard
        self._unverified.add(path)
        self.sources |= shard.sources
        for key, row in shard.rows():
            self._locations.setdefault(key, Location(path, row))

    def _forget(self, path: Path) -> None:
        """Drop a shard; all of its embeddings are computed again, even those that another shard has too."""
        del self._shards[path]
        self._ignored.add(path)
        self._locations = {key: location for key, location in self._locations.items() if location.shard != path}

    def _check_dimension(self, dimension: int, path: Path) -> None:
        """Set the cache's dimension if it is empty; raise ModelError if the embeddings in `path` have another one."""
        if self.dimension is None:
            self.dimension = dimension
        if dimension != self.dimension:
            raise ModelError(
                "dimension_of_cache", path=path, found=dimension, folder=self.folder, needed=self.dimension
            )


class MappedEmbeddings:
    """N embeddings by position, read from memory-mapped shards when they are indexed."""

    def __init__(self, shards: Sequence[Tensor], shard_of: IntArray, row_of: IntArray) -> None:
        """Map N positions to rows of shards (S_i, D)."""
        self._shards = list(shards)
        self._shard_of = shard_of
        self._row_of = row_of
        self.dimension = int(shards[0].shape[1])
        size = len(row_of) * self.dimension * shards[0].element_size()
        if len(shards) > 1 and size <= COPIED_BYTES:
            positions = np.arange(len(row_of))
            self._shards = [self[positions]]
            self._shard_of = np.zeros_like(row_of)
            self._row_of = positions

    def __len__(self) -> int:
        return len(self._row_of)

    def __getitem__(self, positions: IntArray) -> Tensor:
        """Read embeddings (n, D), float32, of n positions."""
        rows = torch.from_numpy(self._row_of[positions])
        if len(self._shards) == 1:
            return self._shards[0][rows].float()
        embeddings = torch.empty(len(positions), self.dimension, dtype=torch.float32)
        shard_of = self._shard_of[positions]
        for shard in np.unique(shard_of).tolist():
            chosen = torch.from_numpy(np.flatnonzero(shard_of == shard))
            embeddings[chosen] = self._shards[shard][rows[chosen]].float()
        return embeddings


def open_cache(
    root: Path, space: EmbeddingSpace, source: str = "encoder", facts: Mapping[str, object] | None = None
) -> EmbeddingCache:
    """Open the cache of a space: a folder under `root` with a description in `space.json`.

    The description includes `facts` about the encoder, so that they are known without loading it.
    """
    folder = space.folder(root)
    if not (folder / SPACE).is_file():
        content = dict(space.record)
        if facts is not None:
            content["facts"] = dict(facts)
        with atomic_path(folder / SPACE) as temporary:
            temporary.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return EmbeddingCache(folder, space.record["stored"], source)
