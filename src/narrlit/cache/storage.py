"""Embeddings on disk: immutable safetensors shards, memory-mapped reads.

A cache is a folder of one model and its settings. A shard is written under a temporary name and then renamed: no locks
are needed, and an incomplete shard is never read. A key always belongs to the same embedding. A shard has a checksum of
its contents, which is verified before the first of its embeddings is used.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from narrlit.cache.space import CacheDtype, EmbeddingSpace
from narrlit.console import say
from narrlit.data.schema import FloatArray, IntArray
from narrlit.errors import ModelError, reason
from narrlit.files import atomic_path

Readings = NDArray[np.float64]
"""How much was read of each of N texts, (N, 5), as `models.coverage.Coverage.of_rows` takes it."""
FORMAT, WITHOUT_READINGS, UNVERIFIED = "narrlit vectors 3", "narrlit vectors 2", "narrlit vectors 1"
"""Formats of shards: the current one, and those of earlier versions without coverage, or also without a checksum."""
READING_COLUMNS = 5
"""Number of values in a text's coverage (`models.coverage.Coverage`); zeros if it is not known."""
SPACE = "space.json"
SUFFIX, DAMAGED = ".safetensors", ".damaged"
"""Suffixes of shards, and of damaged shards, whose embeddings are computed again."""
KEY_BYTES = 32
COPIED_BYTES = 2**28
"""Size of embeddings up to which shards are joined in memory, because batches from many shards are far slower."""


@dataclass
class Shard:
    """Contents of a shard.

    Attributes:
        path: file of the shard.
        keys: (N, 32), uint8.
        vectors: (N, D) embeddings, memory-mapped if they are tensors of torch.
        readings: (N, 5) how much of each text was read; None in a shard of an earlier version.
        sources: sources that computed the embeddings: encoder, server, vllm.
        checksum: checksum of the arrays when they were written; None in a shard of an earlier version.
    """

    path: Path
    keys: Any
    vectors: Any
    readings: Any
    sources: set[str]
    checksum: str | None

    @classmethod
    def open(cls, path: Path, framework: Literal["pt", "numpy"]) -> "Shard | None":
        """Read a shard as arrays of torch or NumPy; set a damaged one aside, and return None."""
        try:
            with safe_open(path, framework=framework) as file:
                metadata = file.metadata() or {}
                keys, vectors = file.get_tensor("keys"), file.get_tensor("vectors")
                readings = file.get_tensor("readings") if metadata.get("format") == FORMAT else None
        except FileNotFoundError:  # another process has set it aside, or removed the cache
            return None
        except OSError as error:  # such as a file of another user, which may be intact
            say(f"shard of embeddings {path}: {reason(error)}; its embeddings are computed again")
            return None
        except Exception as error:  # noqa: BLE001  (safetensors has several for damaged files)
            _set_aside(path, reason(error))
            return None
        sources = set(metadata.get("makers", "encoder").split())
        shard = cls(path, keys, vectors, readings, sources, metadata.get("checksum"))
        if not shard.is_sound(metadata.get("format")):
            _set_aside(path, "it is not a shard of embeddings")
            return None
        return shard

    def is_sound(self, format: str | None) -> bool:
        """Return True if the format is known and the arrays have the shapes that it requires."""
        formats = (UNVERIFIED,) if self.checksum is None else (FORMAT, WITHOUT_READINGS)
        if format not in formats or self.keys.ndim != 2 or self.keys.shape[1] != KEY_BYTES:
            return False
        count = len(self.keys)
        if self.readings is not None and tuple(self.readings.shape) != (count, READING_COLUMNS):
            return False
        return bool(len(self.vectors) == count)

    def verify(self) -> bool:
        """Compare the contents with their checksum; set a changed shard aside, and return False."""
        if self.checksum is None:
            return True
        arrays = [self.keys, self.vectors]
        if self.readings is not None:
            arrays.append(self.readings)
        if self.checksum == checksum(*map(np.asarray, arrays)):
            return True
        _set_aside(self.path, "its checksum differs")
        return False

    def rows(self) -> Iterator[tuple[bytes, int]]:
        """Yield each key with its row."""
        joined = np.asarray(self.keys).tobytes()
        for row in range(len(self.keys)):
            yield joined[row * KEY_BYTES : (row + 1) * KEY_BYTES], row


def checksum(*arrays: NDArray[np.generic]) -> str:
    """Compute CRC-32 over the types, shapes and contents of arrays.

    >>> checksum(np.zeros((2, 3), np.float32)) == checksum(np.zeros((3, 2), np.float32))
    False
    """
    value = 0
    for array in arrays:
        value = zlib.crc32(f"{array.dtype} {array.shape}".encode(), value)
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return f"{value:08x}"


def _set_aside(path: Path, problem: str) -> None:
    """Rename a damaged shard, so that nothing reads it again."""
    remedy = "ignored"
    try:
        path.rename(path.with_name(path.name + DAMAGED))
        remedy = f"set aside as {path.name + DAMAGED}"
    except FileNotFoundError:  # another process has set it aside
        return
    except OSError:  # the folder is read-only
        pass
    say(f"shard of embeddings {path} is damaged ({problem}): {remedy}; its embeddings are computed again")


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
            raise ModelError(f"{len(keys)} texts have embeddings of shape {shape}; is the model complete?")
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
            raise ModelError(f"{broken} of {len(embeddings)} embeddings for {self.folder} are not finite: {cause}")
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
            raise ModelError(f"{self.folder}: {len(absent)} of {len(keys)} embeddings are missing; were they deleted?")
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
                f"{path}: embeddings of dimension {dimension} do not fit the cache {self.folder}, which holds "
                f"dimension {self.dimension}; name another folder"
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


def read_arrays(folder: Path, keys: Sequence[bytes]) -> tuple[FloatArray, Readings] | None:
    """Read embeddings (N, D) and readings (N, 5) of N keys without importing torch; None if one is missing."""
    wanted = set(keys)
    embedding_of: dict[bytes, Any] = {}
    reading_of: dict[bytes, Any] = {}
    for path in folder.glob(f"[!.]*{SUFFIX}"):
        shard = Shard.open(path, "numpy")
        if shard is None:
            continue
        rows = [(key, row) for key, row in shard.rows() if key in wanted]
        if not rows or not shard.verify():
            continue
        for key, row in rows:
            embedding_of[key] = shard.vectors[row]
            reading_of[key] = np.zeros(READING_COLUMNS) if shard.readings is None else shard.readings[row]
    if len(embedding_of) < len(wanted):
        return None
    embeddings = np.array([embedding_of[key] for key in keys], dtype=np.float32)
    readings = np.array([reading_of[key] for key in keys]).reshape(-1, READING_COLUMNS)
    return embeddings, readings


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


def read_facts(root: Path, space: EmbeddingSpace) -> dict[str, Any] | None:
    """Read the facts about the encoder from the cache of a space; None if there are none, or the record is damaged."""
    try:
        content = json.loads((space.folder(root) / SPACE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get("facts") if isinstance(content, dict) else None
