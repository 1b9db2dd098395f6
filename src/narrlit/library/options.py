"""Options for searches and embeddings in parts, and the files of indexes and embeddings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from narrlit.data.schema import normal_form
from narrlit.errors import OptionError
from narrlit.files import FRAME_SUFFIXES, PAGE_SUFFIXES
from narrlit.measures.names import MeasureName

INDEX_RECORD = "index.json"
"""File in the folder of an index, with the model and its settings."""
COMPARED_ALL = 1000
"""Maximum number of stories for which a query is compared with every story; a larger index has an index of words."""
SEARCH_SUFFIXES = (*FRAME_SUFFIXES, ".html")
PAIR_SUFFIXES = (*FRAME_SUFFIXES, ".graphml")
EXPLANATION_SUFFIXES = (*PAGE_SUFFIXES, ".xml", *FRAME_SUFFIXES)


VectorFormat = Literal["float32", "float16", "int8", "binary"]
"""Number format in which an index stores and compares the vectors of stories."""


@dataclass(frozen=True)
class SearchOptions:
    """Options for a search.

    Attributes:
        k: number of results.
        where: SQL condition on the columns, such as "country = 'France' AND year < 1900"; it is compared in the form of
            `normal_form`, which an index has its columns in.
        measure: measure of similarity; default: passages, or csls for a model that can't embed passages.
        exclude_same: column, such as author; stories with the same value as the story of --like are excluded.
        distinct: exclude near-copies: stories with at least this cosine to a better result, or to the story of --like;
            0.95 is a common value.
        leave_out_text: exclude stories with the text of the query, whatever its case and white space.
    """

    k: int = 10
    where: str | None = None
    measure: MeasureName | None = None
    exclude_same: str | None = None
    distinct: float | None = None
    leave_out_text: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise OptionError("at_least", option="k", found=self.k, least=1)
        if self.where is not None:
            object.__setattr__(self, "where", normal_form(self.where))


@dataclass(frozen=True)
class PartOptions:
    """Options for a folder of embeddings.

    Attributes:
        part_rows: number of rows per part; a part is embedded at once and written to one file.
        format: parquet contains the embeddings, all columns and the row number in the input, from 0; npy the embeddings
            alone, with the other columns except the text in part-N.columns.csv.
        engine: local embeds in this process and those started with it by torchrun or srun; ray uses Ray Data on a
            cluster.
        workers: number of Ray workers.
    """

    part_rows: int = 16_384
    format: Literal["parquet", "npy"] = "parquet"
    engine: Literal["local", "ray"] = "local"
    workers: int = 1

    def __post_init__(self) -> None:
        if min(self.part_rows, self.workers) < 1:
            raise OptionError("parts_and_workers")


@dataclass(frozen=True)
class TableOptions:
    """Options for a vector table.

    Attributes:
        part_rows: number of rows per part; a part is embedded and committed at once.
        engine: local embeds in this process; ray uses Ray Data on a cluster.
        workers: number of Ray workers.
    """

    part_rows: int = 16_384
    engine: Literal["local", "ray"] = "local"
    workers: int = 1

    def __post_init__(self) -> None:
        if min(self.part_rows, self.workers) < 1:
            raise OptionError("parts_and_workers")


def is_address(path: str | Path) -> bool:
    """Return True for an address such as s3://bucket/plots, instead of a path."""
    return "://" in str(path)


def index_at(path: str | Path) -> bool:
    """Return True if a folder is an index."""
    return (Path(path) / INDEX_RECORD).is_file()


def embedding_files(path: str | Path) -> list[Path]:
    """List the files that `embed_to_file` may write for a path."""
    path = Path(path)
    return [path, columns_file(path)] if path.suffix == ".npy" else [path]


def columns_file(path: Path) -> Path:
    """Return the path of the file of columns that accompanies an .npy file."""
    return path.with_suffix(".columns.csv")
