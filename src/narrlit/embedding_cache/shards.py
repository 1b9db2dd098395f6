"""Shards of an embedding cache: immutable safetensors files, read without torch.

A cache is a folder of one model and its settings. A shard is written under a temporary name and then renamed: no locks
are needed, and an incomplete shard is never read. A key always belongs to the same embedding. A shard has a checksum of
its contents, which is verified before the first of its embeddings is used.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from narrlit.console import say
from narrlit.data.schema import FloatArray
from narrlit.embedding_cache.space import EmbeddingSpace
from narrlit.errors import reason

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


def read_arrays(folder: Path, keys: Sequence[bytes]) -> tuple[FloatArray, Readings] | None:
    """Read embeddings (N, D) and readings (N, 5) of N keys of a cache; None if one is missing."""
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


def read_facts(root: Path, space: EmbeddingSpace) -> dict[str, Any] | None:
    """Read the facts about the encoder from the cache of a space; None if there are none, or the record is damaged."""
    try:
        content = json.loads((space.folder(root) / SPACE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content.get("facts") if isinstance(content, dict) else None
