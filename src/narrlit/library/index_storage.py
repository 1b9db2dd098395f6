"""Storage of an index: a folder with a LanceDB table of stories and vectors, and the record of the index."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from narrlit.data.schema import FloatArray, normal_form
from narrlit.encoding.story_encoder import Passages
from narrlit.errors import DataError, OptionError, printable
from narrlit.files import atomic_folder
from narrlit.json_records import read_json
from narrlit.library.arrow_columns import column_arrays, fitted_columns, passage_arrays, vector_array
from narrlit.library.conditions import quoted
from narrlit.library.index_record import FORMAT, CoverageRecord, IndexRecord
from narrlit.library.index_snapshot import IndexSnapshot, guarded
from narrlit.library.options import COMPARED_ALL, INDEX_RECORD, index_at
from narrlit.library.stored_snapshot import STORED, is_current, read_snapshot, write_snapshot
from narrlit.library.story_frame import DIGEST, PASSAGE_TEXTS, PASSAGES, VECTOR
from narrlit.models.coverage import Coverage
from narrlit.optional import require
from narrlit.preprocessing.languages import UNSPACED_LANGUAGES

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "stories"
BATCH = 1000
"""Number of stories that are removed together."""
FIRST_PRINTABLE = 32
"""Code of the first printable ASCII character."""
QUANTIZED = ("int8", "binary")
"""Formats for which a large index has an index of quantized vectors."""
GROWTH = 2
"""Factor by which an index grows until its vectors are quantized anew."""


@dataclass(frozen=True, eq=False)
class EmbeddedStories:
    """Vectors and passages of N stories.

    Attributes:
        vectors: (N, D) unit vectors.
        passages: passages of each story; None for a model that can't embed passages.
        coverage: share of the text that the encoder has read.
    """

    vectors: FloatArray
    passages: Sequence[Passages] | None
    coverage: Coverage


class IndexStorage:
    """Folder of an index: its table, which any LanceDB client can read, and its record.

    Attributes:
        path: the folder.
        record: contents of index.json.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the folder.

        Raises:
            DataError: if there is no index, or it is damaged.
        """
        self.path = Path(path)
        if not index_at(path):
            raise DataError("not_an_index", path=path)
        self.record = read_json(self.path / INDEX_RECORD, IndexRecord, "unreadable_index")
        if self.record.format != FORMAT:
            raise DataError("index_of_other_version", path=path, found=printable(self.record.format, 40), known=FORMAT)
        check_name(path)
        self._snapshot = read_snapshot(self.path, self._checked_out)
        if self._snapshot is None:
            self._table  # noqa: B018 - raises an error for a damaged table

    @cached_property
    def _database(self) -> Any:
        lancedb = require("lancedb", "explore")
        with self._guard():
            # Another process may add stories; every call sees the latest version.
            return lancedb.connect(str(self.path), read_consistency_interval=timedelta(0))

    @cached_property
    def _table(self) -> Any:
        database = self._database
        with self._guard():
            return database.open_table(TABLE)

    @staticmethod
    def create(path: str | Path, frame: pd.DataFrame, record: IndexRecord, *, overwrite: bool = False) -> None:
        """Create an empty index atomically, unless another process creates it first.

        Args:
            path: the folder.
            frame: stories; the table gets their columns.
            record: contents of index.json.
            overwrite: replace an index.

        Raises:
            MissingExtraError: if LanceDB is not installed.
            OptionError: if the folder contains something else.
        """
        lancedb = require("lancedb", "explore")
        import pyarrow as pa  # LanceDB needs it

        number = pa.float32() if record.vectors == "float32" else pa.float16()
        embedded = [(VECTOR, pa.list_(number, record.dimension))]
        if record.passages:
            embedded.append((PASSAGES, pa.list_(pa.list_(pa.float16(), record.dimension))))
            embedded.append((PASSAGE_TEXTS, pa.list_(pa.string())))
        fields = [(name, array.type) for name, array in column_arrays(frame).items()]
        fields[3:3] = embedded  # after id, title and text
        try:
            with atomic_folder(Path(path), replaces=INDEX_RECORD, overwrite=overwrite) as temporary:
                lancedb.connect(str(temporary)).create_table(TABLE, schema=pa.schema(fields))
                record.write(temporary)
        except (OptionError, OSError):
            if overwrite or not index_at(path):
                raise

    # Reading ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of stories."""
        stored = self._stored_snapshot
        if stored is not None:
            return len(stored)
        with self._guard():
            return int(self._table.count_rows())

    @property
    def version(self) -> int:
        """Number of the newest version of the table."""
        with self._guard():
            return int(self._table.version)

    def __contains__(self, id: str) -> bool:
        """Return True if there is a story with this id."""
        return normal_form(id) in self.snapshot().row_of

    @property
    def coverage(self) -> Coverage:
        """Share of the text of the stories that the encoder has read."""
        if self.record.coverage is None:
            return Coverage()
        return Coverage(**self.record.coverage.model_dump())

    def digests(self) -> dict[str, str]:
        """Return the digest of each story's content, by id."""
        with self._guard():
            table = self._table.search().select(["id", DIGEST]).to_arrow()
        return dict(zip(table["id"].to_pylist(), table[DIGEST].to_pylist(), strict=True))

    def snapshot(self) -> IndexSnapshot:
        """Return the stories at the latest version of the table."""
        stored = self._stored_snapshot
        if stored is not None:
            return stored
        with self._guard():
            version = self._table.version
            if self._snapshot is None or self._snapshot.version != version:
                self._snapshot = IndexSnapshot.of(self.path, self._checked_out(version))
        return self._snapshot

    @property
    def _stored_snapshot(self) -> IndexSnapshot | None:
        """Stories that were read from the copy of the table; None if there are none, or the table has changed."""
        if self._snapshot is None or not is_current(self.path, self._snapshot):
            return None
        return self._snapshot

    def _checked_out(self, version: int) -> Any:
        """Open the table at a version."""
        with self._guard():
            table = self._database.open_table(TABLE)
            table.checkout(version)
            return table

    def first_stories(self, count: int) -> pd.DataFrame:
        """Return id, title and text of some stories."""
        with self._guard():
            frame: pd.DataFrame = (
                self._table.search().select(["id", "title", "text"]).limit(count).to_arrow().to_pandas()
            )
        return frame

    def require_stories(self) -> None:
        """Raise DataError if there are none."""
        if not len(self):
            raise DataError("empty_index", path=self.path)

    # Writing ---------------------------------------------------------------------------------------------------------

    def columns(self, frame: pd.DataFrame) -> "pa.Table":
        """Convert a frame to an Arrow table with the index's types; new columns are added to the index.

        Raises:
            DataError: if a column has another type in the index.
        """
        with self._guard():
            return fitted_columns(self._table, column_arrays(frame), self.path)

    def commit(self, rows: "pa.Table", embedded: EmbeddedStories, replaces: bool = True) -> None:
        """Write stories (N) with their vectors and passages.

        Args:
            rows: the stories.
            embedded: vectors and passages of the same stories.
            replaces: replace stories with the same ids; False, for new stories only, takes the same time for any size
                of the index.
        """
        precision = np.float32 if self.record.vectors == "float32" else np.float16
        rows = rows.append_column(VECTOR, vector_array(embedded.vectors.astype(precision)))
        if embedded.passages is not None:
            vectors, texts = passage_arrays(embedded.passages)
            rows = rows.append_column(PASSAGES, vectors).append_column(PASSAGE_TEXTS, texts)
        with self._guard():
            rows = rows.select(self._table.schema.names)
            if not replaces:
                self._table.add(rows)
            else:
                self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        coverage = CoverageRecord(**asdict(self.coverage + embedded.coverage))
        self.record = self.record.model_copy(update={"coverage": coverage})
        self.record.write(self.path)

    def set_languages(self, languages: dict[str, int]) -> None:
        """Set the number of texts by language; it is written with the next stories."""
        self.record = self.record.model_copy(update={"languages": languages})

    def set_fit(self, fit: dict[str, object]) -> None:
        """Record the fit of the default measure."""
        self.record = self.record.model_copy(update={"fit": fit})
        self.record.write(self.path)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove stories."""
        with self._guard():
            for start in range(0, len(ids), BATCH):
                listed = ", ".join(map(quoted, ids[start : start + BATCH]))
                self._table.delete(f"id IN ({listed})")

    def finish(self, changed: bool) -> None:
        """Merge the files of the batches, and update the indexes of a large table or the copy of a small one."""
        from lancedb.index import FTS

        with self._guard():
            if changed:
                self._table.optimize(cleanup_older_than=timedelta(minutes=10))
            if len(self) > COMPARED_ALL and "text" not in self.indexed_columns:
                languages = self.record.languages or {}
                most_frequent = max(languages, key=languages.__getitem__, default="en")
                english = most_frequent == "en"  # the language of stems and stop words
                config = FTS(stem=english, remove_stop_words=english)
                if most_frequent in UNSPACED_LANGUAGES:
                    config = FTS(
                        base_tokenizer="ngram",
                        ngram_min_length=1,
                        ngram_max_length=2,
                        stem=False,
                        remove_stop_words=False,
                    )
                self._table.create_index("text", config=config)
        if self.record.vectors in QUANTIZED:
            self._quantize()
        copy = self.path / STORED
        if changed and copy.is_file():
            copy.unlink()  # an index that has become large has none
            self.store_snapshot()

    def _quantize(self) -> None:
        """Create the index of quantized vectors, or create it again for a table that has grown."""
        from lancedb.index import IvfRq, IvfSq

        count = len(self)
        if count <= COMPARED_ALL or count < GROWTH * self.record.quantized:
            return
        kind = IvfSq if self.record.vectors == "int8" else IvfRq
        with self._guard():
            self._table.create_index(VECTOR, config=kind(distance_type="cosine"), replace=True)
        self.record = self.record.model_copy(update={"quantized": count})
        self.record.write(self.path)

    def store_snapshot(self) -> None:
        """Copy the stories of a small index to a file that is read without LanceDB."""
        if 0 < len(self) <= COMPARED_ALL:
            write_snapshot(self.path, self._table)

    @property
    def indexed_columns(self) -> set[str]:
        """Columns with an index in LanceDB."""
        columns: set[str] = set()
        for index in self._table.list_indices():
            columns.update(index.columns)
        return columns

    def _guard(self) -> AbstractContextManager[None]:
        """Convert exceptions of LanceDB to a NarrlitError."""
        return guarded(self.path)


def check_name(path: str | Path) -> None:
    """Check that LanceDB accepts the name of a folder.

    Raises:
        OptionError: if it does not.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OptionError("folder_name_encoding", path=path) from None
    if any(ord(character) < FIRST_PRINTABLE for character in str(path)):
        raise OptionError("folder_name_controls", path=path)
