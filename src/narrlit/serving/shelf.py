"""Collections of a server: the indexes in its data folder and those that it was given."""

import json
import math
import re
import shutil
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

from narrlit.data.schema import FloatArray, normal_form
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError, printable
from narrlit.explore.analysis_answers import NamedStory
from narrlit.explore.map_answer import Value
from narrlit.explore.project import SUFFIX, EditChange, NoteChange, Project, ValueChange, adopt_decisions
from narrlit.files import exclusive
from narrlit.library.collection import Collection
from narrlit.library.conditions import quoted
from narrlit.library.index import Index
from narrlit.library.options import index_at
from narrlit.library.story_frame import metadata_columns
from narrlit.preprocessing.words import num_words
from narrlit.serving.collection_models import CountedValue
from narrlit.serving.problems import RefusedError, missing

NAME = re.compile(r"\w[\w .()'-]{0,79}")
"""Names of collections, which are names of folders."""
FOLDER = "collections"
DECISIONS = "decisions"
"""Folder of decisions in the data folder of earlier releases, which projects take over."""
DELETED = ".deleted-"
TAGS, NOTES = "reader_tags", "reader_notes"
"""Columns of exports."""
MOST_VALUES = 50
"""Values of a column that are listed, the most frequent ones."""


@dataclass(frozen=True)
class Column:
    """Metadata column of a collection.

    Attributes:
        name: name of the column.
        is_number: its values are numbers.
        values: its most frequent values.
        distinct: number of distinct values.
    """

    name: str
    is_number: bool
    values: list[CountedValue]
    distinct: int

    @classmethod
    def of(cls, name: str, cells: Sequence[Value]) -> "Column":
        """Count the values of a column; empty cells are left out."""
        counts = Counter(cells)
        del counts[None]
        values = [CountedValue(value=value, count=count) for value, count in counts.most_common(MOST_VALUES)]
        is_number = bool(counts) and all(map(_is_number, counts))
        return cls(name, is_number, values, len(counts))

    def parse(self, text: str) -> Value:
        """Convert a value from an address to the type of the column.

        Raises:
            RefusedError: if the column has numbers, and the text is none.
        """
        if not self.is_number:
            text = normal_form(text)
            known = {_text(each.value): each.value for each in self.values}
            return known.get(text, text)
        try:
            return int(text) if re.fullmatch(r"[+-]?\d{1,19}", text) else float(text)
        except ValueError:
            shown = printable(text, 40)
            message = f"filter: {self.name} has numbers, and {shown!r} is none"
            raise RefusedError(
                400, message, "filter", code="not_a_number", values={"column": self.name, "value": shown}
            ) from None

    def literal(self, value: Value) -> str:
        """Write a value as SQL, in the type of the column."""
        return quoted(self.parse(_text(value)))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Stories of a collection at one version of its index.

    Attributes:
        version: version of the index.
        stories: stories with their embeddings.
        words: (N,) number of words of each story.
        columns: metadata columns.
        edited: values that readers have written, by column and row; a column may be new. None: the cell was emptied.
        accepted: values that readers have accepted for empty cells, by column and row.
    """

    version: int
    stories: Collection
    words: Sequence[int]
    columns: Sequence[Column]
    edited: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)
    accepted: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)

    @classmethod
    def of(cls, index: Index) -> "Snapshot":
        """Read the stories of an index."""
        version = index.version
        stories = index.collection()
        frame = stories.frame
        words = list(map(num_words, frame["text"]))
        columns = []
        for name in metadata_columns(frame):
            cells = [plain_value(value) for value in frame[name]]
            columns.append(Column.of(name, cells))
        return cls(version, stories, words, columns)

    def filled(self, project: Project) -> "Snapshot":
        """Fill in what readers have written and accepted; accepted values fill empty cells only."""
        edited = {name: self._cells(name, value_of) for name, value_of in project.edited().items()}
        snapshot = replace(self, edited=edited)
        accepted = {}
        for name, value_of in project.accepted().items():
            cells = snapshot._cells(name, value_of)
            accepted[name] = {row: value for row, value in cells.items() if snapshot.cell(row, name) is None}
        filled = replace(snapshot, accepted=accepted)
        columns = {column.name: column for column in self.columns}
        for name in {**edited, **accepted}:
            if name != "title":
                columns[name] = Column.of(name, [filled.cell(row, name) for row in range(len(self))])
        return replace(filled, columns=list(columns.values()))

    def _cells(self, name: str, value_of: Mapping[str, str]) -> dict[int, Value]:
        """Return values by row, in the type of their column; those of other collections are left out."""
        columns = {column.name: column for column in self.columns}
        cells: dict[int, Value] = {}
        for id, value in value_of.items():
            row = self.stories.store.row_of.get(normal_form(id))
            if row is None:
                continue
            try:
                cells[row] = columns[name].parse(value) if name in columns and value else value or None
            except RefusedError:  # the project is of a collection with another type of this column
                continue
        return cells

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self.stories)

    def row_of(self, id: str) -> int:
        """Return the row of a story.

        Raises:
            RefusedError: if there is none with this id.
        """
        row = self.stories.store.row_of.get(normal_form(id))
        if row is None:
            raise missing("story", id)
        return row

    def recorded(self, row: int, column: str) -> Value:
        """Return the value of a story in a column of the index; None if it has no such column."""
        frame = self.stories.frame
        return plain_value(frame.iat[row, frame.columns.get_loc(column)]) if column in frame.columns else None

    def cell(self, row: int, column: str) -> Value:
        """Return the value of a story in a column: what was written, or else recorded, or else accepted."""
        edited = self.edited.get(column, {})
        value = edited[row] if row in edited else self.recorded(row, column)
        return self.accepted.get(column, {}).get(row) if value is None else value

    def written(self, column: str) -> dict[int, Value]:
        """Return the cells of a column that may differ from the index, by row."""
        rows = {*self.edited.get(column, {}), *self.accepted.get(column, {})}
        return {row: self.cell(row, column) for row in sorted(rows)}

    @property
    def collection(self) -> Collection:
        """The stories with the values that readers have written or accepted."""
        return self._with({name: self.written(name) for name in {**self.edited, **self.accepted}})

    @property
    def edited_collection(self) -> Collection:
        """The stories with the values that readers have written."""
        return self._with(self.edited)

    def with_notes(self, notes: Sequence[NoteChange]) -> Collection:
        """Return `collection` with the tags and notes of readers as two more columns, if there are any."""
        columns = {name: self.written(name) for name in {**self.edited, **self.accepted}}
        tags: dict[int, list[str]] = {}
        texts: dict[int, list[str]] = {}
        for note in notes:
            row = self.stories.store.row_of.get(note.id)
            if row is None:  # the story is no longer in the collection
                continue
            tags.setdefault(row, []).extend(note.tags)
            if note.text:
                texts.setdefault(row, []).append(f"“{note.passage}”: {note.text}" if note.passage else note.text)
        if tags:
            columns[TAGS] = {row: "; ".join(dict.fromkeys(found)) for row, found in tags.items() if found}
            columns[NOTES] = {row: "\n".join(found) for row, found in texts.items()}
        return self._with({name: cells for name, cells in columns.items() if cells})

    def _with(self, columns: Mapping[str, Mapping[int, Value]]) -> Collection:
        if not columns:
            return self.stories
        frame = self.stories.frame.copy()
        for name, cells in columns.items():
            values = frame[name].tolist() if name in frame.columns else [None] * len(frame)
            for row, value in cells.items():
                values[row] = value
            frame[name] = pd.Series(values, dtype=object, index=frame.index)
        return self.stories.with_frame(frame)

    def text(self, row: int) -> str:
        """Return the text of a story."""
        return str(self.cell(row, "text"))

    def title(self, row: int) -> str:
        """Return the title of a story; its id if it has none."""
        title = self.cell(row, "title") or self.cell(row, "id")
        return str(title)

    def metadata(self, row: int) -> dict[str, Value]:
        """Return the values of a story in the metadata columns, without empty cells."""
        metadata: dict[str, Value] = {}
        for column in self.columns:
            value = self.cell(row, column.name)
            if value is not None:
                metadata[column.name] = value
        return metadata

    def named(self, row: int) -> NamedStory:
        """Return a story as lists show it."""
        return NamedStory(id=str(self.cell(row, "id")), title=self.title(row), metadata=self.metadata(row))

    def column(self, name: str, option: str = "filter", parameter: str = "filters") -> Column:
        """Return a metadata column.

        Args:
            name: name of the column.
            option: option that has the name, for the message of a refusal.
            parameter: parameter of the request that is refused.

        Raises:
            RefusedError: if there is none with this name.
        """
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(column.name for column in self.columns) or "none"
        column_name = printable(name, 60)
        message = f"{option}: no column {column_name!r}; columns: {known}"
        raise RefusedError(400, message, parameter, code="column_not_found", values={"column": column_name})

    def rows_with(self, filters: Mapping[str, Sequence[Value]]) -> list[int]:
        """Return the rows of the stories that have one of the given values in each column; None: an empty cell.

        Raises:
            RefusedError: if there is no such column, or a value is no number in a column of numbers.
        """
        rows: Iterable[int] = range(len(self))
        for name, values in filters.items():
            column = self.column(name)
            allowed = {None if value is None else column.parse(_text(value)) for value in values}
            rows = [row for row in rows if self.cell(row, name) in allowed]
        return list(rows)

    @property
    def label(self) -> str | None:
        """The column that tells most stories with the same title apart; None if there is none."""
        rows_of: dict[str, list[int]] = defaultdict(list)
        for row in range(len(self)):
            rows_of[self.title(row)].append(row)
        repeated = [rows for rows in rows_of.values() if len(rows) > 1]
        best, most = None, 0
        for column in self.columns if repeated else ():
            told_apart = sum(len({self.cell(row, column.name) for row in rows}) - 1 for rows in repeated)
            if told_apart > most:
                best, most = column.name, told_apart
        return best

    @property
    def vectors(self) -> FloatArray:
        """Unit embeddings (N, D)."""
        return self.stories.vectors


class ServedCollection:
    """Index that a server reads, by one thread at a time.

    Attributes:
        name: name of the collection.
        path: folder of the index.
        is_own: it is in the data folder, and may be deleted.
        lock: lock for threads that use the index.
        project: lists, notes and decisions of its readers, in a file beside the index.
    """

    def __init__(self, name: str, path: Path, is_own: bool, encoder: StoryEncoder) -> None:
        self.name, self.path, self.is_own = name, path, is_own
        self.lock = threading.RLock()
        self._encoder = encoder
        self._index: Index | None = None
        self._snapshot: Snapshot | None = None
        self._filled: tuple[tuple[int, int], Snapshot] | None = None
        self.project = Project(path.with_name(f"{path.name}{SUFFIX}"))

    @property
    def index(self) -> Index:
        """The index, with the encoder of the server if it has the same settings."""
        with self.lock:
            if self._index is None:
                try:
                    self._index = Index(self.path, encoder=self._encoder)
                except OptionError:
                    loading = self._encoder.loading
                    self._index = Index(self.path, device=loading.device, trust_remote_code=loading.trust_remote_code)
            return self._index

    def snapshot(self) -> Snapshot:
        """Return the stories at the newest version, with the values that readers have accepted.

        Raises:
            DataError: if there is no story yet, or the project is damaged.
        """
        with self.lock:
            if self._snapshot is None or self._snapshot.version != self.index.version:
                self._snapshot, self._filled = Snapshot.of(self.index), None
            revision = self.project.revision
            if self._filled is None or self._filled[0] != revision:
                # Without another value, the columns stay as they are.
                has_values = any(isinstance(change, EditChange | ValueChange) for change in self.project.history())
                self._filled = revision, self._snapshot.filled(self.project) if has_values else self._snapshot
            return self._filled[1]

    def condition(self, filters: dict[str, list[Value]]) -> str | None:
        """Write a condition in SQL: each column has one of its values; None without filters."""
        snapshot = self.snapshot()
        conditions = []
        for name, values in filters.items():
            column = snapshot.column(name)
            written = {}
            for row, value in snapshot.written(name).items():
                written[str(snapshot.recorded(row, "id"))] = value
            conditions.append(one_of(column, values, written, name in snapshot.stories.frame.columns))
        return " AND ".join(conditions) or None


class Shelf:
    """Collections of a server.

    Attributes:
        folder: folder of its own indexes.
    """

    def __init__(self, data: Path, indexes: Sequence[Path], encoder: StoryEncoder) -> None:
        """Take the data folder, indexes elsewhere, and the encoder of the server."""
        self.folder = data / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self._decisions = data / DECISIONS
        self._encoder = encoder
        self._lock = threading.Lock()
        self._opened: dict[str, ServedCollection] = {}
        self._elsewhere = {path.name: path.absolute() for path in indexes}
        for folder in self.folder.glob(".*"):  # deleted or half made when a server was killed
            shutil.rmtree(folder, ignore_errors=True)

    def names(self) -> list[str]:
        """List the names of the collections."""
        names = set(self._elsewhere)
        for path in self.folder.iterdir():
            if not path.name.startswith(".") and index_at(path):
                names.add(path.name)
        return sorted(names)

    def get(self, name: str) -> ServedCollection:
        """Return a collection.

        Raises:
            RefusedError: if there is none with this name.
        """
        with self._lock:
            names = {normal_form(known): known for known in self.names()}
            name = names.get(normal_form(name), name)
            if name not in names.values():
                self._opened.pop(name, None)
                raise missing("collection", name)
            if name not in self._opened:
                elsewhere = self._elsewhere.get(name)
                path = elsewhere or self.folder / name
                opened = ServedCollection(name, path, elsewhere is None, self._encoder)
                old = self._decisions / name
                adopt_decisions(opened.project, old / "pairs.jsonl", old / "catalog.jsonl")
                self._opened[name] = opened
            return self._opened[name]

    def path_of(self, name: str) -> Path:
        """Return the folder of a new collection, or of one in the data folder.

        Raises:
            RefusedError: if a collection can't have the name, or it is the name of an index in another folder.
        """
        name = normal_form(name).strip()
        if not NAME.fullmatch(name):
            problem = "must begin with a letter or digit, and have at most 80 letters, digits, spaces and .()'-"
            shown = printable(name, 60)
            message = f"collection: {shown!r} {problem}"
            raise RefusedError(400, message, "collection", code="collection_name", values={"name": shown})
        if name in self._elsewhere:
            message = f"collection: {name} is only read; give another name"
            raise RefusedError(409, message, "collection", code="read_only", values={"name": name})
        return self.folder / name

    def delete(self, name: str) -> None:
        """Delete a collection of the data folder.

        Raises:
            RefusedError: if the collection is elsewhere.
            OptionError: if an import writes to it.
        """
        collection = self.get(name)
        if not collection.is_own:
            message = f"{name} is an index that is only read; delete its folder yourself"
            raise RefusedError(403, message, "name", code="delete_read_only", values={"name": name})
        with collection.lock, exclusive(collection.path):
            grave = Path(mkdtemp(prefix=DELETED, dir=self.folder))
            collection.path.rename(grave / "index")
        with self._lock:
            self._opened.pop(name, None)
        shutil.rmtree(grave, ignore_errors=True)


def plain_value(value: object) -> Value:
    """Return a cell as JSON can have it; dates and infinite numbers become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def _text(value: Value) -> str:
    """Write a value as an address has it, in JSON but for text."""
    return value if isinstance(value, str) else json.dumps(value)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of(column: Column, values: Sequence[Value], written: Mapping[str, Value], is_recorded: bool) -> str:
    """Write a condition in SQL: a column has one of these values.

    Args:
        column: the column.
        values: the values; None stands for an empty cell.
        written: cells in which the collection differs from its index, by id of the story.
        is_recorded: the index has the column.
    """
    allowed = {None if value is None else column.parse(_text(value)) for value in values}
    conditions = []
    if is_recorded:
        name = f"`{column.name}`"  # LanceDB has no columns with a backtick in their names
        literals = [column.literal(value) for value in values if value is not None]
        if literals:
            conditions.append(f"{name} IN ({', '.join(literals)})")
        if None in values:
            conditions.append(f"{name} IS NULL")
    elif None in values:
        conditions.append("TRUE")
    condition = f"({' OR '.join(conditions) or 'FALSE'})"
    if not written:
        return condition
    ids = [quoted(id) for id, value in written.items() if value in allowed]
    unchanged = f"{condition} AND id NOT IN ({', '.join(map(quoted, written))})"
    return f"({unchanged} OR id IN ({', '.join(ids)}))" if ids else f"({unchanged})"


def similar_rows(snapshot: Snapshot, row: int, others: Sequence[int]) -> FloatArray:
    """Compute the cosine of a story with others, (R,)."""
    vectors = snapshot.vectors[np.array(others, dtype=np.int64)]
    cosines: FloatArray = vectors @ snapshot.vectors[row]
    return cosines
