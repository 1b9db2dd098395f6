"""Storage of an index: a LanceDB table of stories and vectors in a folder, and a record of the model beside it."""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from narrlit.cache.space import model_identity
from narrlit.data.schema import FloatArray, Story
from narrlit.encoding.story_encoder import Passages, StoryEncoder
from narrlit.errors import DataError, OptionError, printable
from narrlit.explore.collection import HIDDEN
from narrlit.explore.index_snapshot import (
    DIGEST,
    PASSAGE_TEXTS,
    PASSAGES,
    REMEDY,
    VECTOR,
    IndexSnapshot,
    guarded,
)
from narrlit.explore.options import INDEX_RECORD, index_at
from narrlit.files import atomic_folder, atomic_path
from narrlit.json_records import read_json
from narrlit.measures.matching import PassageVectors
from narrlit.models.config import Long, Precision
from narrlit.models.coverage import Coverage
from narrlit.optional import require

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT, TABLE = "narrlit index 2", "stories"
EMBEDDED = (VECTOR, PASSAGES, PASSAGE_TEXTS)
"""Columns that the encoder fills."""
BATCH = 1000
"""Number of stories that are removed together."""
COMPARED_ALL = 1000
"""Largest number of stories with all of which a query is compared; a larger index needs an index of words."""

_LITERAL = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"")
"""Text or name in SQL."""
_PLACEHOLDER = re.compile(r"[$?]|(?<!:):(?!:)")
"""Placeholder of a parameter, for which a condition has no value."""
FIRST_PRINTABLE = 32
"""Code of the first printable character."""
MOST = 2**53
"""Largest number of words or stories: beyond it, shares could not be computed."""
Count = Annotated[int, Field(ge=0, le=MOST)]


class IndexSettings(BaseModel):
    """Model of an index, and how it reads stories."""

    model_config = ConfigDict(extra="allow")

    model: str
    files: str | None
    max_length: int | None
    long: Long
    precision: Precision | None = None
    views: bool
    fusion: Any
    pseudonyms: dict[str, Any] | None

    @classmethod
    def of(cls, encoder: StoryEncoder) -> "IndexSettings":
        """Describe an encoder."""
        record = encoder.record
        return cls(
            model=record["model"],
            files=record["files"],
            max_length=record["max_length"],
            long=record["long"],
            precision=record["precision"],
            views="views" in record,  # a query has none of those files: its own are cut by position
            fusion=record["fusion"],
            pseudonyms=record.get("pseudonyms"),
        )

    def __str__(self) -> str:
        """Parameters of `narrlit.load`, as messages name them."""
        parameters = [f"`model={self.model}`", f"`long={self.long}`"]
        if self.max_length is not None:
            parameters.append(f"`max_length={self.max_length}`")
        if self.views:
            parameters.append("`views`")
        if self.fusion is not None:
            parameters.append(f"`fusion={self.fusion}`")
        if self.pseudonyms is not None:
            parameters.append("`pseudonyms`")
        return " ".join(parameters)


@dataclass(frozen=True, eq=False)
class EmbeddedStories:
    """Vectors and passages of N stories.

    Attributes:
        vectors: (N, D) of length 1.
        passages: of each story; None for a model that embeds no passages.
        coverage: share of the stories that was read.
    """

    vectors: FloatArray
    passages: Sequence[Passages] | None
    coverage: Coverage


class CoverageRecord(BaseModel):
    """Fields of `models.coverage.Coverage`, checked."""

    model_config = ConfigDict(extra="forbid")

    words: Count
    read: float = Field(ge=0, le=MOST)
    texts: Count
    long: Count
    least: float = Field(ge=0, le=1)


class IndexRecord(BaseModel):
    """Contents of index.json; an index without stories has no coverage and languages yet."""

    model_config = ConfigDict(extra="allow")

    format: str
    model_path: str
    settings: IndexSettings
    dimension: int
    passages: bool = False
    coverage: CoverageRecord | None = None
    languages: dict[str, int] | None = None
    fit: dict[str, object] | None = None

    @classmethod
    def of(cls, encoder: StoryEncoder) -> "IndexRecord":
        """Describe a new index of an encoder's vectors."""
        return cls(
            format=FORMAT,
            model_path=str(Path(encoder.name).absolute()) if Path(encoder.name).exists() else encoder.name,
            settings=IndexSettings.of(encoder),
            dimension=encoder.dimension,
            passages=encoder.facts.reads == "text",
        )

    def as_dict(self) -> dict[str, object]:
        """Return plain data, without fields that were never set."""
        return self.model_dump(exclude_unset=True)

    def write(self, folder: Path) -> None:
        """Write index.json."""
        with atomic_path(folder / INDEX_RECORD) as temporary:
            temporary.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")


class IndexStorage:
    """Folder of an index: its table, which any LanceDB client reads, and its record.

    Attributes:
        path: the folder.
        record: contents of index.json.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the folder.

        Raises:
            DataError: if there is no index, or it is broken.
        """
        lancedb = require("lancedb", "explore")
        self.path = Path(path)
        if not index_at(path):
            raise DataError(f"{path} is no index; make one: narrlit index STORIES")
        self.record = read_json(self.path / INDEX_RECORD, IndexRecord, "index", REMEDY)
        if self.record.format != FORMAT:
            difference = f"its format is {printable(self.record.format, 40)!r}, and {FORMAT!r} is read here"
            raise DataError(f"index {path} is of another version of narrlit: {difference}; {REMEDY}")
        check_name(path)
        with self._guard():
            # Another process may add stories: each call sees the newest version.
            self._database = lancedb.connect(str(path), read_consistency_interval=timedelta(0))
            self._table = self._database.open_table(TABLE)
        self._snapshot: IndexSnapshot | None = None

    @staticmethod
    def create(path: str | Path, frame: pd.DataFrame, record: IndexRecord) -> None:
        """Create an empty index atomically, unless another process creates it first.

        Args:
            path: the folder.
            frame: stories, whose columns the table gets.
            record: contents of index.json.

        Raises:
            OptionError: if the folder holds something else.
        """
        import lancedb
        import pyarrow as pa

        embedded = [(VECTOR, pa.list_(pa.float32(), record.dimension))]
        if record.passages:
            embedded.append((PASSAGES, pa.list_(pa.list_(pa.float16(), record.dimension))))
            embedded.append((PASSAGE_TEXTS, pa.list_(pa.string())))
        fields = [(name, _array(values.tolist()).type) for name, values in frame.items()]
        fields[3:3] = embedded  # behind id, title and text
        try:
            with atomic_folder(Path(path)) as temporary:
                lancedb.connect(str(temporary)).create_table(TABLE, schema=pa.schema(fields))
                record.write(temporary)
        except (OptionError, OSError):
            if not index_at(path):
                raise

    # Reading ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of stories."""
        with self._guard():
            return int(self._table.count_rows())

    @property
    def version(self) -> int:
        """Number of the newest version of the table."""
        with self._guard():
            return int(self._table.version)

    def __contains__(self, id: str) -> bool:
        """Return True if there is a story with this id."""
        with self._guard():
            return bool(self._table.count_rows(f"id = {quoted(id)}"))

    @property
    def coverage(self) -> Coverage:
        """Share of the embedded stories that was read."""
        return Coverage() if self.record.coverage is None else Coverage(**self.record.coverage.model_dump())

    @property
    def column_list(self) -> str:
        """The columns that conditions may name, with their types, for messages."""
        fields = [f"{field.name} ({field.type})" for field in self._table.schema if field.name not in HIDDEN]
        return f"columns: {', '.join(fields)}"

    def digests(self) -> dict[str, str]:
        """Return the digest of each story's content, by its id."""
        with self._guard():
            table = self._table.search().select(["id", DIGEST]).to_arrow()
        return dict(zip(table["id"].to_pylist(), table[DIGEST].to_pylist(), strict=True))

    def snapshot(self) -> IndexSnapshot:
        """Return the stories at the newest version of the table."""
        with self._guard():
            version = self._table.version
            if self._snapshot is None or self._snapshot.version != version:
                table = self._database.open_table(TABLE)
                table.checkout(version)
                self._snapshot = IndexSnapshot.of(self.path, table)
        return self._snapshot

    def first_stories(self, count: int) -> pd.DataFrame:
        """Return id, title and text of some stories."""
        with self._guard():
            frame: pd.DataFrame = (
                self._table.search().select(["id", "title", "text"]).limit(count).to_arrow().to_pandas()
            )
        return frame

    def check_condition(self, where: str) -> None:
        """Check a condition on the columns.

        Raises:
            OptionError: if it is no condition of these columns.
        """
        if _PLACEHOLDER.search(_LITERAL.sub("", where)):  # LanceDB panics
            raise OptionError(f"`where={printable(where, 80)!r}`: write a value in place of $, ? or :, a text in '...'")
        try:
            self._table.count_rows(where)
        except Exception as error:
            message = str(error).removeprefix("Invalid input, ").partition(" Valid fields")[0].partition(", /")[0]
            problem = printable(message, 150).rstrip(". ")
            if "literal" in message:
                problem += "; compare a column of text with '...', or write CAST(column AS INT)"
            raise OptionError(f"`where={printable(where, 80)!r}`: {problem}; {self.column_list}") from error

    def require_stories(self) -> None:
        """Raise DataError if there are none."""
        if not len(self):
            raise DataError(
                f"index {self.path} has no story yet: its first run was interrupted; give narrlit index again"
            )

    # Writing ---------------------------------------------------------------------------------------------------------

    def columns(self, frame: pd.DataFrame) -> "pa.Table":
        """Return a frame as an Arrow table of the index's types; new columns are added to the index.

        Raises:
            DataError: if a column has another type in the index.
        """
        import pyarrow as pa

        arrays = {name: _array(values.tolist()) for name, values in frame.items()}
        with self._guard():
            new = [pa.field(name, array.type) for name, array in arrays.items() if name not in self._table.schema.names]
            if new:
                self._table.add_columns(new)
            fields = [field for field in self._table.schema if field.name not in EMBEDDED]
        for field in fields:
            array = arrays.get(field.name, pa.nulls(len(frame)))
            try:
                arrays[field.name] = array.cast(field.type)
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"column {field.name} is {field.type} in {self.path} and can't be {array.type}: rename it, or "
                    "make a new index"
                ) from error
        return pa.table(arrays)

    def commit(self, rows: "pa.Table", embedded: EmbeddedStories, replaces: bool = True) -> None:
        """Write stories (N) with their vectors and passages.

        Args:
            rows: the stories.
            embedded: vectors and passages of the same stories.
            replaces: replace stories with the same ids; False, for new stories alone, takes the same time in an index
                of any size.
        """
        rows = rows.append_column(VECTOR, _vector_array(embedded.vectors))
        if embedded.passages is not None:
            vectors, texts = _passage_arrays(embedded.passages)
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
        """Set the number of texts of each language; it is written with the next stories."""
        self.record = self.record.model_copy(update={"languages": languages})

    def set_fit(self, fit: dict[str, object]) -> None:
        """Record the fit of the measure that the index is searched by."""
        self.record = self.record.model_copy(update={"fit": fit})
        self.record.write(self.path)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove stories."""
        with self._guard():
            for start in range(0, len(ids), BATCH):
                listed = ", ".join(quoted(id) for id in ids[start : start + BATCH])
                self._table.delete(f"id IN ({listed})")

    def finish(self, changed: bool) -> None:
        """Join the batches' files, and bring the index of words, which a large index has, up to date."""
        from lancedb.index import FTS

        with self._guard():
            if changed:
                self._table.optimize(cleanup_older_than=timedelta(minutes=10))
            if len(self) > COMPARED_ALL and "text" not in self.indexed_columns:
                languages = self.record.languages or {}
                most_frequent = max(languages, key=lambda language: languages[language], default="en")
                english = most_frequent == "en"  # stems and stop words are
                self._table.create_index("text", config=FTS(stem=english, remove_stop_words=english))

    @property
    def indexed_columns(self) -> set[str]:
        """Columns with an index of LanceDB."""
        columns: set[str] = set()
        for index in self._table.list_indices():
            columns.update(index.columns)
        return columns

    def _guard(self) -> AbstractContextManager[None]:
        """Turn exceptions of LanceDB into a NarrlitError."""
        return guarded(self.path)


def check_name(path: str | Path) -> None:
    """Check that LanceDB can take a folder's name.

    Raises:
        OptionError: if it can't.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OptionError(f"{printable(path)}: LanceDB needs a name in UTF-8; name another folder") from None
    if any(ord(character) < FIRST_PRINTABLE for character in str(path)):
        raise OptionError(f"{printable(path)}: LanceDB needs a name without control characters; name another folder")


def identity(model: str) -> dict[str, str | None]:
    """Return name and digest of a model as it is now, as the settings of an index have them."""
    name, files = model_identity(model)
    return {"model": name, "files": files}


def content_digests(frame: pd.DataFrame, stories: Sequence[Story]) -> list[str]:
    """Hash the content of stories (N): id, title, text, metadata of a frame's rows, and the stories' views."""
    digests = []
    for row, story in zip(frame.to_dict("records"), stories, strict=True):
        values = {name: value for name, value in row.items() if value is not None}
        content = json.dumps([values, story.views and story.views.texts], default=str)
        digests.append(hashlib.sha256(content.encode()).hexdigest())
    return digests


def quoted(value: object) -> str:
    """Write a value as SQL.

    >>> quoted("king's"), quoted(1812)
    ("'king''s'", '1812')
    """
    if isinstance(value, int | float):
        return str(value)
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'"


def _vector_array(vectors: NDArray[np.floating]) -> "pa.Array":
    """Return vectors (N, D) as an Arrow array of N lists."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def _passage_arrays(stories: Sequence[Passages]) -> tuple["pa.Array", "pa.Array"]:
    """Return vectors and texts of the passages of stories (N) as Arrow arrays of N lists."""
    import pyarrow as pa

    joined = PassageVectors.of([story.vectors for story in stories])
    bounds = pa.array([*joined.starts, len(joined.vectors)], pa.int32())
    vectors = pa.ListArray.from_arrays(bounds, _vector_array(joined.vectors.astype(np.float16)))
    texts = pa.array([story.texts for story in stories], pa.list_(pa.string()))
    return vectors, texts


def _array(values: list[object]) -> "pa.Array":
    """Return a column as an Arrow array; lists, objects and mixed values become text."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        array = None
    if array is None or pa.types.is_nested(array.type):
        texts = [value if isinstance(value, str | None) else json.dumps(value, default=str) for value in values]
        array = pa.array(texts)
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array
