"""Stories of an index at one version of its table, which later updates do not change.

Letters in shapes: N stories of the index, R rows of some of them, S passages of a story, D dimension.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from narrlit.data.schema import FloatArray, Floats, IntArray, normal_form
from narrlit.encoding.story_encoder import Passages
from narrlit.errors import DataError, NarrlitError, OptionError, printable, reason, system_error
from narrlit.library.story_frame import DIGEST, HIDDEN, PASSAGE_TEXTS, PASSAGES, VECTOR, plain
from narrlit.library.story_store import StoryStore
from narrlit.measures.matching import PassageVectors

if TYPE_CHECKING:
    import pyarrow as pa

PARTITIONS = 50
"""Number of partitions of the vector index in which a query is compared."""


@dataclass(frozen=True, eq=False)
class IndexSnapshot(StoryStore):
    """N stories of an index, identified by their rows in its table.

    Attributes:
        path: folder of the index, for messages.
        open_table: function that returns the LanceDB table, checked out at one version.
        version: version of the table.
        ids: (N,) ids of the stories.
        digests: (N,) digests of their contents.
        stories: all columns of the stories, if they are in memory; None: they are read from the table.
    """

    path: Path
    open_table: Callable[[], Any]
    version: int
    ids: Sequence[str]
    digests: Sequence[str]
    stories: "pa.Table | None" = None

    @classmethod
    def of(cls, path: Path, table: Any) -> "IndexSnapshot":
        """Read ids and digests of a table that is checked out at a version."""
        with guarded(path):
            columns = table.search().select(["id", DIGEST]).to_arrow()
            return cls(
                path=path,
                open_table=lambda: table,
                version=table.version,
                ids=columns["id"].to_pylist(),
                digests=columns[DIGEST].to_pylist(),
            )

    @classmethod
    def of_stories(
        cls, path: Path, open_table: Callable[[], Any], version: int, stories: "pa.Table"
    ) -> "IndexSnapshot":
        """Return the stories of an index that are in memory; the table is opened for conditions only."""
        return cls(
            path=path,
            open_table=open_table,
            version=version,
            ids=stories["id"].to_pylist(),
            digests=stories[DIGEST].to_pylist(),
            stories=stories,
        )

    @cached_property
    def table(self) -> Any:
        """LanceDB table, checked out at the version."""
        return self.open_table()

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        schema = self.table.schema if self.stories is None else self.stories.schema
        names: list[str] = schema.names
        return names

    @cached_property
    def vectors(self) -> FloatArray:
        """Unit vectors of all stories, (N, D)."""
        with guarded(self.path):
            return _float32_vectors(self._columns(None, [VECTOR]))

    def vectors_at(self, rows: IntArray) -> FloatArray:
        """Return the vectors (R, D) of some stories; with a vector index, those of the others stay on disk."""
        if not self.has_vector_index:
            return self.vectors[rows]
        with guarded(self.path):
            return _float32_vectors(self._columns(rows, [VECTOR]))

    @cached_property
    def has_vector_index(self) -> bool:
        """True if the nearest stories are found by LanceDB's index of quantized vectors."""
        return self.stories is None and self._has_index(VECTOR)

    @property
    def has_passages(self) -> bool:
        """True if the model of the index embeds passages."""
        return PASSAGES in self.columns

    @cached_property
    def has_word_index(self) -> bool:
        """True if stories can be found by words; False for a large index until its first run is finished."""
        return self._has_index("text")

    def _has_index(self, column: str) -> bool:
        """Return True if LanceDB has an index of a column."""
        with guarded(self.path):
            return any(column in index.columns for index in self.table.list_indices())

    def frame(self, rows: IntArray | None = None) -> pd.DataFrame:
        """Return id, title, text and metadata of the stories in `rows` (R,); None: of all stories."""
        names = [name for name in self.columns if name not in HIDDEN]
        with guarded(self.path):
            columns = self._columns(rows, names)
            return plain(columns.to_pandas(integer_object_nulls=True))

    def texts(self, rows: IntArray | None = None) -> list[str]:
        """Return the texts of the stories in `rows` (R,); None: of all stories."""
        with guarded(self.path):
            texts: list[str] = self._columns(rows, ["text"])["text"].to_pylist()
        return texts

    def passage_vectors(self, rows: IntArray | None = None) -> PassageVectors:
        """Return the passage vectors of the stories in `rows` (R,), in half precision; None: of all stories."""
        with guarded(self.path):
            column = self._columns(rows, [PASSAGES])[PASSAGES].combine_chunks()
            sizes = column.value_lengths().to_numpy()
            starts = np.cumsum(sizes) - sizes
            return PassageVectors(_vectors(column.flatten(), np.float16), starts)

    def passages(self, rows: IntArray | None = None) -> list[Passages]:
        """Return the passages of the stories in `rows` (R,); None: of all stories."""
        vectors = self.passage_vectors(rows)
        with guarded(self.path):
            texts = self._columns(rows, [PASSAGE_TEXTS])[PASSAGE_TEXTS].to_pylist()
        passages = []
        for number, texts_of_story in enumerate(texts):
            passages.append(Passages(texts_of_story, vectors.story(number).astype(np.float32)))
        return passages

    def by_words(self, text: str, limit: int, where: str | None = None) -> IntArray:
        """Find the rows of the stories that share most words with a text (BM25), best first.

        Args:
            text: the text.
            limit: maximum number of stories.
            where: SQL condition on the stories.
        """
        from lancedb.query import MatchQuery

        with guarded(self.path):
            query = self.table.search(MatchQuery(normal_form(text), "text"), query_type="fts")
            query = query if where is None else query.where(where)
            best = query.select(["id", "_score"]).limit(limit).to_arrow()
            return self._rows_of(best)

    def by_vector(self, vector: Floats, limit: int, where: str | None = None) -> IntArray:
        """Find the rows of the stories with the highest cosines to a vector (D,), approximately, by the vector index.

        Args:
            vector: the vector.
            limit: maximum number of stories.
            where: SQL condition on the stories.
        """
        with guarded(self.path):
            query = self.table.search(vector, vector_column_name=VECTOR).distance_type("cosine").nprobes(PARTITIONS)
            query = query if where is None else query.where(where)
            return self._rows_of(query.select(["id", "_distance"]).limit(limit).to_arrow())

    def _rows_of(self, stories: "pa.Table") -> IntArray:
        """Return the rows of the stories whose ids a result of LanceDB contains."""
        rows = [self.row_of[normal_form(id)] for id in stories["id"].to_pylist()]
        return np.array(rows, dtype=np.int64)

    def _columns(self, rows: IntArray | None, names: list[str]) -> "pa.Table":
        """Read columns of some stories, in the order of `rows`."""
        if self.stories is not None:
            selected = self.stories.select(names)
            return selected if rows is None else selected.take(rows)
        if rows is None:
            return self.table.search().select(names).to_arrow()
        order = np.argsort(rows)  # LanceDB returns rows as they are in the table
        columns = self.table.take_offsets(rows[order].tolist()).select(names).to_arrow()
        return columns.take(np.argsort(order))


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Convert exceptions of LanceDB to a NarrlitError."""
    try:
        yield
    except NarrlitError:
        raise
    except UnicodeEncodeError as error:
        raise OptionError("value_without_text", path=path, reason=reason(error)) from error
    except Exception as error:
        problem = system_error(error)
        if problem is not None:
            raise DataError("index_interrupted", path=path, reason=problem) from error
        message, _, _ = str(error).partition(", /")
        message = printable(message or reason(error), 150)
        raise DataError("damaged_index", path=path, reason=message) from error


def _float32_vectors(table: "pa.Table") -> FloatArray:
    """Return the vectors of the stories in a table, (R, D)."""
    vectors: FloatArray = _vectors(table[VECTOR], np.float32)
    return vectors


def _vectors(column: "pa.ChunkedArray | pa.Array", dtype: type[np.floating]) -> Any:
    """Return a column of vectors as an array."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    numbers = array.flatten().to_numpy(zero_copy_only=False)
    return numbers.astype(dtype, copy=False).reshape(-1, array.type.list_size)
