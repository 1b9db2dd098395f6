"""`narrlit.embedding_caches`: list and remove the embedding caches below a folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from narrlit.console import counted
from narrlit.embedding_cache.shards import DAMAGED, SPACE, SUFFIX
from narrlit.embedding_cache.storage import EmbeddingCache
from narrlit.errors import ModelError, OptionError, reading


@dataclass(frozen=True)
class CacheInfo:
    """Description of one cache.

    Attributes:
        folder: folder of its files.
        model: name of the model, or of the teacher's round.
        embeddings: number of embeddings.
        dimension: dimension of the embeddings; None if there are none yet.
        dtype: number format on disk.
        bytes: size on disk.
    """

    folder: Path
    model: str
    embeddings: int
    dimension: int | None
    dtype: str
    bytes: int

    @property
    def record(self) -> dict[str, object]:
        """The description as plain data."""
        return asdict(self) | {"folder": str(self.folder)}

    def __str__(self) -> str:
        """One line: folder, model, number of embeddings, dimension, format, size."""
        contents = f"{counted(self.embeddings, 'embedding')}, {self.dimension or '-'} dimensions, {self.dtype}"
        return f"{self.folder}: {self.model}, {contents}, {format_bytes(self.bytes)}"


@dataclass(frozen=True)
class CacheListing:
    """Caches under a folder.

    Attributes:
        folder: folder that was searched.
        caches: in the order of their folders.
    """

    folder: Path
    caches: Sequence[CacheInfo]

    @property
    def size(self) -> str:
        """Size of all caches on disk, in words such as `1.2 MB`."""
        return format_bytes(sum(cache.bytes for cache in self.caches))

    @property
    def record(self) -> list[dict[str, object]]:
        """The caches as plain data."""
        return [cache.record for cache in self.caches]

    def table(self) -> pd.DataFrame:
        """Tabulate the caches: folder, model, embeddings, dimension, dtype, bytes."""
        return pd.DataFrame(self.record, columns=[*CacheInfo.__dataclass_fields__])

    def remove(self) -> None:
        """Remove the caches from the disk; their embeddings are computed again when they are needed."""
        for cache in self.caches:
            remove_cache(cache.folder)

    def __str__(self) -> str:
        """Format one line per cache."""
        return "\n".join(map(str, self.caches)) or f"{self.folder}: no cached embeddings"


def embedding_caches(folder: str | Path = "runs/embeddings", model: str | None = None) -> CacheListing:
    """List the embedding caches of frozen encoders and teachers below a folder.

    Args:
        folder: folder that contains caches, or a single cache.
        model: only caches of this model, named as in the listing; None: all.

    Returns:
        A `CacheListing`: `.caches`, `.size`, `.table()`, `.remove()`. It is printed with one line per cache.

    Raises:
        ModelError: if the record of a cache is damaged.
        OptionError: if there is no such folder.

    >>> import narrlit
    >>> folder = getfixture("tmp_path")
    >>> _ = narrlit.load("minilm", cache=folder).embed(["A knight seeks a grail."])
    >>> embedding_caches(folder).table()[["model", "embeddings", "dimension"]]
        model  embeddings  dimension
    0  minilm           1        384
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise OptionError("no_cache_folder", folder=folder)
    folders: set[Path] = set()
    for pattern in (SPACE, f"embeddings/*{SUFFIX}"):
        folders.update(path.parent for path in folder.rglob(pattern))
    caches = [describe_cache(path) for path in sorted(folders)]
    if model is not None:
        caches = [cache for cache in caches if cache.model == model]
    return CacheListing(folder, caches)


def describe_cache(folder: Path) -> CacheInfo:
    """Describe the cache in a folder; raise ModelError if its record is damaged."""
    record = folder / SPACE
    space: dict[str, object] = {}
    if record.is_file():
        with reading("broken_cache", record, error=ModelError):
            space = dict(json.loads(record.read_text(encoding="utf-8")))
    cache = EmbeddingCache(folder)
    return CacheInfo(
        folder,
        model=str(space.get("model", folder.parent.name)),
        embeddings=len(cache),
        dimension=cache.dimension,
        dtype=str(space.get("stored", "float32")),
        bytes=sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
    )


def remove_cache(folder: Path) -> None:
    """Delete a cache, and its folder unless it contains other files; raise OptionError if it is not a cache."""
    record = folder / SPACE
    files = list(folder.glob(f"[!.]*{SUFFIX}"))
    if record.is_file():
        files.append(record)
    if not files:
        raise OptionError("not_a_cache", folder=folder)
    unfinished = folder.glob(f".*{SUFFIX}")
    damaged = folder.glob(f"*{SUFFIX}{DAMAGED}")
    for path in [*files, *unfinished, *damaged]:
        path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def format_bytes(count: int) -> str:
    """Format a number of bytes.

    >>> format_bytes(999), format_bytes(1234), format_bytes(56_789_000_000)
    ('999 B', '1.2 kB', '56.8 GB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    thousands = max(0, (len(str(count)) - 1) // 3)
    power = min(thousands, len(units) - 1)
    decimals = min(power, 1)
    return f"{count / 1000**power:.{decimals}f} {units[power]}"
