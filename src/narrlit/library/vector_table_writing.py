"""Writing of a vector table: parts of the input are embedded, and one process commits them to the LanceDB table.

A commit contains all rows of a part, or none. The rows themselves record which parts are committed.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from narrlit.console import counted, say
from narrlit.data.readers import Stories
from narrlit.encoding.story_encoder import unit_vectors
from narrlit.errors import DataError, OptionError, reading
from narrlit.library.arrow_columns import column_arrays, fitted_columns, vector_array
from narrlit.library.embedding_in_parts import embed_in_parts
from narrlit.library.index_record import DIMENSIONS_OF_BITS, IndexSettings
from narrlit.library.options import TableOptions
from narrlit.library.part_source import EmbeddedPart, PartSource
from narrlit.library.story_frame import VECTOR, story_frame

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "narrlit vector table 1"
ROW = "row"
"""Column with the number of the row in the input, from 0."""
INDEXED_FROM = 100_000
"""Minimum number of stories for which a vector index is made; fewer are compared one by one in less time."""


class VectorTableRecord(BaseModel):
    """Record of a vector table, which its schema contains.

    Attributes:
        format: version of the format.
        model_path: the model.
        settings: how the model reads stories.
        source: settings of the parts, and the input files with their sizes.
    """

    model_config = ConfigDict(extra="allow")

    format: str
    model_path: str
    settings: IndexSettings
    source: dict[str, object]


def arrow_rows(part: EmbeddedPart, stories: Stories) -> "pa.Table":
    """Convert the stories of a part to Arrow: id, title, text, metadata, row, vector."""
    import pyarrow as pa

    columns = story_columns(stories, part.numbers)
    columns[ROW] = pa.array(part.numbers, pa.int64())
    columns[VECTOR] = vector_array(unit_vectors(part.embeddings))
    return pa.table(columns)


def story_columns(stories: Stories, numbers: Sequence[int]) -> "dict[str, pa.Array]":
    """Return id, title, text and metadata of N stories.

    Args:
        stories: the stories; one without an id gets the number of its row, counted from 1.
        numbers: (N,) numbers of their rows in the input, from 0.

    Raises:
        DataError: if two of the stories have the same id, or a column has a reserved name.
    """
    ids: list[str | None] = [id or str(number + 1) for id, number in zip(stories.ids, numbers, strict=True)]
    return column_arrays(story_frame(replace(stories, ids=ids)))


def guarded_table(address: str) -> AbstractContextManager[None]:
    """Convert exceptions of LanceDB to a NarrlitError."""
    return reading("vector_table_failed", address)


@dataclass(eq=False)
class TableWriter:
    """The only writer of a vector table.

    Attributes:
        address: address of the table, for messages.
        table: the LanceDB table.
        part_rows: number of rows per part.
    """

    address: str
    table: Any
    part_rows: int

    def __post_init__(self) -> None:
        self._version = self.table.version

    @property
    def place(self) -> str:
        """Address of the table."""
        return self.address

    def written(self) -> frozenset[int]:
        """Return the numbers of the parts in the table."""
        parts: set[int] = set()
        with guarded_table(self.address):
            for batch in self.table.search().select([ROW]).to_batches():
                numbers = batch[ROW].to_numpy() // self.part_rows
                parts.update(np.unique(numbers).tolist())
        return frozenset(parts)

    def write(self, part: EmbeddedPart) -> None:
        """Commit the stories of a part, if it has any.

        Raises:
            DataError: if a column has another type in the table.
            OptionError: if another run writes to the table.
        """
        if part.stories is not None:
            self.commit(part.number, arrow_rows(part, part.stories))

    def commit(self, number: int, rows: "pa.Table") -> None:
        """Write the rows of the part with a number in one commit."""
        arrays = dict(zip(rows.column_names, rows.itercolumns(), strict=True))
        with guarded_table(self.address):
            self._require_only_writer(self.table.version)
            fitted = fitted_columns(self.table, arrays, self.address)
            expected = self.table.version + 1
            self._version = expected
            version = self.table.add(fitted.select(self.table.schema.names)).version
            if version != expected:  # the part may be there twice: the next run embeds it again
                start = number * self.part_rows
                self.table.delete(f"{ROW} >= {start} AND {ROW} < {start + self.part_rows}")
                self._require_only_writer(version)

    def _require_only_writer(self, version: int) -> None:
        """Raise OptionError if the table has another version than after the last commit."""
        if version != self._version:
            raise OptionError("table_in_use", address=self.address)

    def finish(self) -> None:
        """Merge the files of the commits, and make a vector index if the table is large."""
        from lancedb.index import IvfRq, IvfSq

        with guarded_table(self.address):
            self.table.optimize(cleanup_older_than=timedelta(minutes=10))
            indexed = [index for index in self.table.list_indices() if VECTOR in index.columns]
            if not indexed and self.table.count_rows() >= INDEXED_FROM:
                say(f"{self.address}: making the vector index")
                dimension = self.table.schema.field(VECTOR).type.list_size
                kind = IvfRq if dimension % DIMENSIONS_OF_BITS == 0 else IvfSq
                self.table.create_index(VECTOR, config=kind(distance_type="cosine"))


def write_parts(writer: TableWriter, source: PartSource, options: TableOptions) -> None:
    """Embed the parts that a vector table lacks, and commit each as soon as it is embedded.

    Args:
        writer: writer of the table.
        source: the stories.
        options: engine and workers.

    Raises:
        DataError: if a story can't be read.
        OptionError: if another run writes to the table.
    """
    totals = embed_in_parts(source, writer, options)
    if not writer.table.count_rows():
        raise DataError("no_text_in_column", path=source.stories, column=source.text_column)
    if not totals.embedded:
        say(f"{writer.address}: {counted(totals.parts, 'part')} are already there")
    if totals.dropped:
        say(f"{source.stories}: left out {counted(totals.dropped, 'row')} without a text")
    writer.finish()
