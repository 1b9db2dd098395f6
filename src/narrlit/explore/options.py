"""Options of indexes, searches and embedded collections, and the files that these write."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from narrlit.errors import OptionError
from narrlit.metrics.names import MeasureName

INDEX_RECORD = "index.json"
"""File of an index with the model and its settings."""
SEARCH_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".html")
PAIR_SUFFIXES = (".csv", ".tsv", ".xlsx", ".jsonl", ".parquet", ".graphml")


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        k: number of stories.
        where: condition on the columns in SQL, such as "country = 'France' AND year < 1900".
        measure: by which stories are compared: passages, fused, csls, centered, cosine or lexical; by default passages,
            or csls for a model that embeds no passages.
        exclude_same: column, such as author; stories with the value of the story that others are like are left out.
        distinct: leave out near-copies, stories whose cosine with a better result, or with the story that others are
            like, reaches this; 0.95 is usual.
        leave_out_text: leave out stories with exactly the text of the query.
    """

    k: int = 10
    where: str | None = None
    measure: MeasureName | None = None
    exclude_same: str | None = None
    distinct: float | None = None
    leave_out_text: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise OptionError(f"`k={self.k}`: at least 1 is needed")


@dataclass(frozen=True)
class PartOptions:
    """Options of a folder of embeddings.

    Attributes:
        part_rows: rows of the input that are embedded and written at once, to a file of their own.
        format: parquet holds the embeddings, all columns and the number of the row in the input, from 0; npy the
            embeddings alone, with the other columns than the text in part-N.columns.csv.
        engine: local is this process, and those that torchrun or srun start with it; ray a cluster, by Ray Data.
        workers: processes of Ray that embed.
    """

    part_rows: int = 16_384
    format: Literal["parquet", "npy"] = "parquet"
    engine: Literal["local", "ray"] = "local"
    workers: int = 1

    def __post_init__(self) -> None:
        if min(self.part_rows, self.workers) < 1:
            raise OptionError("`part_rows` and `workers`: at least 1 is needed")


def index_at(path: str | Path) -> bool:
    """Return True if a folder is an index."""
    return (Path(path) / INDEX_RECORD).is_file()


def embedding_files(path: str | Path) -> list[Path]:
    """List the files that `embed_to_file` may write for a path."""
    path = Path(path)
    return [path, columns_file(path)] if path.suffix == ".npy" else [path]


def columns_file(path: Path) -> Path:
    """Name the file of the columns that belong to the vectors of an .npy file."""
    return path.with_suffix(".columns.csv")
