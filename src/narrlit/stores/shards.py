"""One shard of a store: keys and vectors in a safetensors file, written whole and never changed."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from narrlit.errors import ModelError
from narrlit.files import atomic_path

FORMAT = "narrlit vectors 1"
CHECKSUM = "sha256"
MAKERS = "makers"
KEY_BYTES = 32
SUFFIX = ".safetensors"
NAME = re.compile(r"[0-9a-f]{24}\.safetensors")
LEFTOVER = re.compile(r"\.(?:[0-9a-f]{24}-\w{8}\.safetensors|space-\w{8}\.json)")
"""Names of temporary files of `atomic_path`: what a process that was killed while it wrote has left."""
DTYPES = {"F32": "float32", "F16": "float16"}
ROWS_A_BLOCK = 16384


@dataclass(frozen=True)
class Head:
    """What a shard says of itself before its vectors are read.

    Attributes:
        rows: N.
        dimension: D.
        dtype: of the vectors; float32, float16, or what the file calls another one.
        checksum: of the vectors; None in shards of releases that wrote none.
        makers: what made the vectors: an encoder here, a server, vllm.
    """

    rows: int
    dimension: int
    dtype: str
    checksum: str | None
    makers: frozenset[str]


def shard_name(keys: Sequence[bytes]) -> str:
    """The file name of a shard that holds these keys in this order."""
    return hashlib.sha256(b"".join(keys)).hexdigest()[:24] + SUFFIX


def shard_paths(folder: Path) -> list[Path]:
    """The files that a store in this folder reads as its shards, in their order."""
    return sorted(folder.glob(f"[!.]*{SUFFIX}"))


def write_shard(folder: Path, keys: Sequence[bytes], vectors: Tensor, makers: Iterable[str] = ("encoder",)) -> Path:
    """Write N vectors (N, D), on the CPU in their final dtype, under a name that follows from their keys."""
    flat = torch.frombuffer(bytearray(b"".join(keys)), dtype=torch.uint8).view(len(keys), KEY_BYTES)
    path = folder / shard_name(keys)
    with atomic_path(path) as temporary:
        metadata = {"format": FORMAT, CHECKSUM: checksum(vectors), MAKERS: " ".join(sorted(set(makers)))}
        save_file({"keys": flat, "vectors": vectors}, temporary, metadata=metadata)
    return path


def checksum(vectors: Tensor) -> str:
    """SHA-256 of the bytes of vectors (N, D)."""
    whole = hashlib.sha256()
    for block in blocks(vectors):
        whole.update(as_bytes(block))
    return whole.hexdigest()


def blocks(vectors: Tensor) -> Iterator[Tensor]:
    """Vectors (N, D) in pieces that fit any memory, where they are mapped from a file."""
    for start in range(0, len(vectors), ROWS_A_BLOCK):
        yield vectors[start : start + ROWS_A_BLOCK]


def as_bytes(vectors: Tensor) -> memoryview:
    """The bytes of vectors (N, D) as they stand in a file."""
    return vectors.contiguous().view(torch.uint8).numpy().data


def read_head(path: Path) -> Head:
    """What the shard says of itself.

    Raises:
        ModelError: if it can't be read, or is no shard of vectors.
    """
    with _opened(path) as shard:
        metadata = shard.metadata() or {}
        keys, vectors = shard.get_slice("keys"), shard.get_slice("vectors")
        of_keys, of_vectors = keys.get_shape(), vectors.get_shape()
        kind, dtype = keys.get_dtype(), vectors.get_dtype()
    sound = kind == "U8" and of_keys[1:] == [KEY_BYTES] and len(of_vectors) == 2 and of_vectors[0] == of_keys[0]
    if metadata.get("format") != FORMAT or not sound:
        raise ModelError(f"{path}: it is no shard of vectors; remove it")
    makers = frozenset(metadata.get(MAKERS, "encoder").split())
    return Head(of_vectors[0], of_vectors[1], DTYPES.get(dtype, dtype), metadata.get(CHECKSUM), makers)


def read_keys(path: Path) -> list[bytes]:
    """The shard's keys, by row.

    Raises:
        ModelError: if it can't be read.
    """
    with _opened(path) as shard:
        whole: bytes = shard.get_tensor("keys").numpy().tobytes()
    return [whole[start : start + KEY_BYTES] for start in range(0, len(whole), KEY_BYTES)]


def read_vectors(path: Path) -> Tensor:
    """The shard's vectors (N, D), memory-mapped.

    Raises:
        ModelError: if it can't be read.
    """
    with _opened(path) as shard:
        found: Tensor = shard.get_tensor("vectors")
    return found


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as shard:
            yield shard
    except (SafetensorError, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(
            f"{path}: this shard of vectors can't be read ({reason}); remove it to have it made anew"
        ) from error
