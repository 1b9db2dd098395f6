"""Readers of stories, triples and training examples, with pydantic models of the rows and reports on what was read.

Rows are never repaired. Invalid rows are dropped and counted; suspicious rows are read and counted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from narrlit.console import say
from narrlit.data.row_file import DELIMITERS, STANDARD_INPUT, TEXT_COLUMNS, FileRow, ReadingNote, RowFile, cells_of
from narrlit.data.rows import Layout, file_digest, read_rows
from narrlit.data.schema import (
    ASPECTS,
    NEGATIVE_KINDS,
    Story,
    StoryTable,
    TrainingExample,
    TrainingExamples,
    Triple,
    Triples,
    composed,
    normal_form,
    normal_text,
)
from narrlit.data.sources import is_source
from narrlit.errors import DataError, OptionError, printable

LABEL_COLUMN = "text_a_is_closer"
UNMISTAKABLE_COLUMNS = ("text", "story")
"""Columns that always hold the text, whatever other columns a file has."""
ACTION_COLUMNS = ("plot_events", "course_of_action", "plot", "action")

STORIES_KNOWN = f"{', '.join(TEXT_COLUMNS[:-1])} or {TEXT_COLUMNS[-1]} (`text_column` names another)"
TRIPLES_KNOWN = "anchor_text,text_a,text_b[,text_a_is_closer] or anchor_story,similar_story,dissimilar_story"
EXAMPLES_KNOWN = f"{TRIPLES_KNOWN} or anchor,positive[,negatives] or anchor,positive,neg_theme_1,neg_action_1,..."

# Traces of UTF-8 decoded as Latin-1 or Windows-1252, and the replacement character. Quotes and dashes after a capital
# A with tilde are left out, since they occur there in correct Portuguese text.
_MOJIBAKE = re.compile("\ufffd|[\x80-\x84\x86-\x9f]|â[€\x80]|Ã[\x80-\xbf€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ]|Â[\xa0-\xbf]|ðŸ|ï(?:»¿|¿½)")
# Columns that `narrlit embed` adds: in Excel, each dimension has a column.
_EMBED_COLUMN = re.compile(r"row|embedding(?:_\d+)?")
# Columns such as neg_theme_1, negative_2 and neg.
_NUMBERED = re.compile(r"neg(?:ative)?(?:_([a-z]+))?(?:_(\d+))?")


# Models of rows ------------------------------------------------------------------------------------------------------


def _filled(value: object) -> object:
    """Return the value of a cell; None if it is empty."""
    return None if value == "" else value


def _stripped(value: object) -> object:
    """Return the value of a cell without white space around it; None if it is empty."""
    return value.strip() or None if isinstance(value, str) else value


def _is_text(value: object) -> bool:
    """Return True if the value of a cell is a text that is not blank."""
    return isinstance(value, str) and value.strip() != ""


def _kind(value: object) -> str | None:
    """Convert the name of a negative's kind in a file.

    Raises:
        ValueError: if the kind is unknown.
    """
    kind = "action" if value == "structure" else _filled(value)
    if kind is None:
        return None
    if not isinstance(kind, str) or kind not in NEGATIVE_KINDS:
        raise ValueError("unknown kind")
    return kind


Text = Annotated[str, StringConstraints(pattern=r"\S"), AfterValidator(composed)]
Name = Annotated[Annotated[str, Field(coerce_numbers_to_str=True)] | None, BeforeValidator(_filled)]
Label = Annotated[bool | None, BeforeValidator(_stripped)]
NegativeKind = Annotated[str | None, BeforeValidator(_kind)]
_LABEL_TYPE: TypeAdapter[bool | None] = TypeAdapter(Label)


def _named(*columns: str) -> Any:
    """Declare a field that is read from the first of these columns that a row has."""
    return Field(validation_alias=AliasChoices(*columns))


class StoryRow(BaseModel):
    """A row of a file of stories."""

    columns: ClassVar[Mapping[str, str]] = {}  # columns of text, id and title, if they are detected in the file
    text: Text = _named("text", "story")
    id: Name = None

    @property
    def texts(self) -> list[str]:
        """The story's text."""
        return [self.text]


class ViewsRow(StoryRow):
    """A row of a file of views."""

    theme: Text
    action: Text = _named("action", *ACTION_COLUMNS)
    outcome: Text

    @model_validator(mode="before")
    @classmethod
    def _with_action(cls, row: Any) -> Any:
        """Read the action from the first column that is not empty, and join a list of events by line breaks."""
        column = next((name for name in ACTION_COLUMNS if row.get(name)), None)
        if column is None:
            return row
        action = row[column]
        if isinstance(action, list) and all(map(_is_text, action)):
            action = "\n".join(action)
        return {**row, "action": action}


class NegativeItem(BaseModel):
    """A negative of a training example."""

    text: Text
    kind: NegativeKind = Field(None, validation_alias=AliasChoices("kind", "dimension"))

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        """Accept a text as a negative of unknown kind."""
        return value if isinstance(value, Mapping) else {"text": value}


class _NegativeColumn(NamedTuple):
    """Cell of a column such as neg_theme_1, with the kind and the number in the column's name."""

    kind: str | None
    number: int
    text: object

    @property
    def order(self) -> tuple[int, int]:
        """Position of the kind in NEGATIVE_KINDS, where unknown kinds come last, and the number."""
        position = len(NEGATIVE_KINDS) if self.kind is None else NEGATIVE_KINDS.index(self.kind)
        return position, self.number


def _negative_columns(row: Mapping[str, object]) -> list[_NegativeColumn]:
    """Find the numbered columns of negatives that are not empty, in the order of NEGATIVE_KINDS and of their numbers.

    Raises:
        ValueError: if the kind in a column's name is unknown.
    """
    columns = []
    for name, value in row.items():
        match = _NUMBERED.fullmatch(name)
        if match is not None and value is not None and str(value).strip():
            columns.append(_NegativeColumn(_kind(match[1]), int(match[2] or 0), value))
    return sorted(columns, key=lambda column: column.order)


class ExampleRow(BaseModel):
    """A row of a file of training examples."""

    anchor: Text = _named("anchor", "anchor_text", "anchor_story")
    positive: Text = _named("positive", "positive_text", "similar_text", "similar_story")
    negatives: list[NegativeItem] = []
    group: Name = None

    @model_validator(mode="before")
    @classmethod
    def _with_numbered(cls, row: Any) -> Any:
        """Append the negatives of numbered columns to the listed ones."""
        listed = row.get("negatives") or []
        if not isinstance(listed, list):
            raise ValueError("negatives is not a list")  # noqa: TRY004 (pydantic passes on ValueError alone)
        numbered = [{"text": column.text, "kind": column.kind} for column in _negative_columns(row)]
        return {**row, "negatives": listed + numbered}

    @property
    def negative_texts(self) -> list[str]:
        """Texts of the negatives."""
        return [negative.text for negative in self.negatives]

    @property
    def texts(self) -> list[str]:
        """Anchor, positive and negatives."""
        return [self.anchor, self.positive, *self.negative_texts]


class TripleRow(ExampleRow):
    """A row of a file of triples; further negatives and the group are used in training only."""

    anchor: Text = _named("anchor_text", "anchor_story")
    positive: Text = _named("text_a", "similar_story")
    other: Text = _named("text_b", "dissimilar_story")
    text_a_is_closer: Label = None

    @model_validator(mode="before")
    @classmethod
    def _similar_is_closer(cls, row: Any) -> Any:
        """Label a row with the column similar_story, which is read as A."""
        return row if "text_a" in row else {**row, LABEL_COLUMN: True}

    @property
    def texts(self) -> list[str]:
        """Anchor, A, B and negatives."""
        return [self.anchor, self.positive, self.other, *self.negative_texts]


RowModel = type[BaseModel]


@lru_cache(maxsize=8)
def _columns(model: RowModel) -> dict[str, list[str]]:
    """List the columns from which each field of a model can be read."""
    columns = {}
    for name, info in model.model_fields.items():
        alias = info.validation_alias
        if isinstance(alias, AliasChoices):
            columns[name] = list(map(str, alias.choices))
        else:
            columns[name] = [name]
    return columns


@lru_cache(maxsize=8)
def _required_columns(model: RowModel) -> list[list[str]]:
    """List the columns from which each required field of a model can be read."""
    fields = model.model_fields
    return [columns for name, columns in _columns(model).items() if fields[name].is_required()]


def _fits(model: RowModel, value: object) -> bool:
    """Return True if a row has the required columns of a model; a text fits a model with one required field."""
    required = _required_columns(model)
    if isinstance(value, Mapping):
        return all(not value.keys().isdisjoint(columns) for columns in required)
    return isinstance(value, str) and len(required) == 1


def _listed(columns: Iterable[object], otherwise: str) -> str:
    """List the first 12 columns for a message; return `otherwise` if there are none."""
    return ", ".join(printable(name, 30) for name in islice(columns, 12)) or otherwise


def _usual_column(file: RowFile, columns: Sequence[str], role: str) -> str | None:
    """Find the column with the usual name of a story's text, id or title; None if there is none.

    Raises:
        DataError: if several columns could be meant.
    """
    usual = TEXT_COLUMNS if role == "text" else (role,)
    matches: list[str] = []
    for name in usual:
        matches += [column for column in columns if normal_text(column) == name]
    if len(matches) > 1 and role != "text":
        raise DataError("several_columns", path=file.path, columns=matches, option=f"{role}_column", column=matches[0])
    if len(matches) > 1 and matches[0].casefold() not in UNMISTAKABLE_COLUMNS:
        raise DataError("several_text_columns", path=file.path, columns=matches, column=matches[0])
    return matches[0] if matches else None


def _story_columns(file: RowFile, layout: Layout) -> dict[str, str]:
    """Find the columns of text, id and title by the layout or their usual names; missing ones are left out.

    Raises:
        DataError: if a column of the layout is missing, or two columns could be the text.
    """
    columns = file.columns
    by_form = {normal_form(column): column for column in columns}
    story_columns = {}
    for role, wanted in (("text", layout.text_column), ("id", layout.id_column), ("title", layout.title_column)):
        # The tables of a folder were joined by the usual names.
        if wanted is None or (role != "text" and is_source(file.path)):
            column = _usual_column(file, columns, role)
        else:
            column = wanted if wanted in columns else by_form.get(normal_form(wanted))
            if column is None:
                raise DataError(
                    "missing_column",
                    path=file.path,
                    column=wanted,
                    found=_listed(columns, "no columns"),
                    option=f"{role}_column",
                )
        if column is not None:
            story_columns[role] = column
    return story_columns


def _story_model(story_columns: Mapping[str, str]) -> RowModel:
    """Make the row model of a file of stories whose text, id and title are in these columns."""
    text_column = story_columns.get("text", "text")
    text_columns = UNMISTAKABLE_COLUMNS if text_column in UNMISTAKABLE_COLUMNS else (text_column,)

    class NamedRow(StoryRow):
        """A row of a file of stories with columns of other names."""

        columns: ClassVar[Mapping[str, str]] = story_columns
        text: Text = _named(*text_columns)
        id: Name = Field(None, validation_alias=AliasChoices(story_columns.get("id", "id")))

    return NamedRow


def models_of(file: RowFile, layout: Layout = Layout(), examples: bool = True) -> tuple[RowModel, ...]:
    """Return the row models to try for a file.

    Args:
        file: rows of the file.
        layout: columns of a file of stories.
        examples: also try triples and training examples.

    Returns:
        The models of triples and training examples if a row fits one of them, else the model of stories.
    """
    models: tuple[RowModel, ...] = (TripleRow, ExampleRow)
    if examples and _first_fitting(file, models) is not None:
        return models
    return (_story_model(_story_columns(file, layout)),)


def _model(file: RowFile, models: Sequence[RowModel], known: str) -> RowModel:
    """Return the model of the first row that fits one of several models; the message lists the columns `known`."""
    model = _first_fitting(file, models)
    if model is None:
        raise _unknown_columns(file, known)
    return model


def _first_fitting(file: RowFile, models: Sequence[RowModel]) -> RowModel | None:
    """Return the model of the first row that fits one of several models; None if no row fits."""
    for row in file.rows:
        for model in models:
            if _fits(model, row.value):
                return model
    return None


def _unknown_columns(file: RowFile, known: str) -> DataError:
    """Make the error for a file without known columns, whose first row shows the cause."""
    first = file.rows[0]
    if not isinstance(first.value, Mapping):
        content = "a line of text" if isinstance(first.value, str) else f"a JSON {type(first.value).__name__}"
        return DataError("row_without_columns", path=file.path, line=first.line, found=content, known=known)
    is_table = file.path.suffix.lower() in DELIMITERS
    if is_table and any(str(name).count(" ") > 3 for name in first.value):
        return DataError("no_header", path=file.path, known=known)
    return DataError("no_text_column", path=file.path, line=first.line, found=_listed(first.value, "none"), known=known)


def _reason(error: ValueError) -> str:
    """Describe why a row can't be used, in the words that reports count."""
    if not isinstance(error, ValidationError):
        return str(error)
    detail = error.errors(include_url=False)[0]
    kind, location = detail["type"], detail["loc"]
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    name = "negative" if len(location) > 1 else str(location[0])
    if kind == "missing" or detail["input"] is None:
        return f"missing {name}"
    if kind == "string_pattern_mismatch":
        return f"empty {name}"
    if kind.startswith("bool"):
        return f"{name} is not true or false"
    return f"{name} is not text"


# Reports and readers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadReport:
    """Report on the reading of a file.

    Attributes:
        path: path of the file.
        rows: number of rows, including those that were dropped.
        dropped: number of rows that were dropped, by reason.
        suspicious: number of suspicious texts, by reason.
        unread: columns that were not read.
        notes: notes on how the file was read, such as its encoding.
    """

    path: Path
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    suspicious: dict[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    notes: tuple[ReadingNote, ...] = ()

    def summary(self) -> str:
        """Summarize the report in one line, with the notes.

        >>> ReadReport(Path("a/x.jsonl"), 2, {"empty text_a": 1}).summary()
        'x.jsonl: 1 of 2 rows, dropped 1 (1 empty text_a)'
        """
        name = "standard input" if self.path in STANDARD_INPUT else self.path.name
        rows = f"{self.rows} row{'s' * (self.rows != 1)}"
        dropped = sum(self.dropped.values())
        if dropped:
            rows = f"{self.rows - dropped} of {rows}, dropped {dropped} ({counts(self.dropped)})"
        parts = [f"{name}: {rows}", *map(str, self.notes)]
        if self.suspicious:
            parts.append(f"suspicious: {counts(self.suspicious)}")
        return "; ".join(parts)

    def provenance(self) -> dict[str, object]:
        """Return plain data for run.json."""
        return {
            "path": str(self.path),
            "sha256": file_digest(self.path),
            "rows": self.rows,
            "dropped": dict(self.dropped),
        }


@dataclass
class Stories(Sequence[Story]):
    """N stories of a file in its order, each with the id of its row.

    Attributes:
        table: table that holds each distinct text once.
        rows: (N) story indices.
        report: report of the reader.
        ids: (N) ids of the rows; None: the id in the table is used.
        lines: (N) line numbers of the rows.
        values: (N) raw values of the rows, with all columns.
        columns: columns of text, id and title, without those that the file lacks.
    """

    table: StoryTable
    rows: list[int]
    report: ReadReport
    ids: list[str | None]
    lines: list[int]
    values: list[Any]
    columns: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, index: Any) -> Any:
        """Return a story with the id of its row."""
        story = self.table[self.rows[index]]
        id = self.ids[index]
        return story if id is None else Story(id, story.text, story.views, story.original)

    def __len__(self) -> int:
        return len(self.rows)

    def append(self, text: str, id: str | None, row: FileRow) -> None:
        """Append a story that was read from a row."""
        self.rows.append(self.table.add(text, id=id))
        self.ids.append(id)
        self.lines.append(row.line)
        self.values.append(row.value)

    @property
    def story_ids(self) -> list[str]:
        """Ids of the rows (N) in the form of `normal_form`; a row without an id has its number, counted from 1.

        Raises:
            DataError: if two rows have the same id.
        """
        ids = [normal_form(id) if id else str(number) for number, id in enumerate(self.ids, start=1)]
        row_of_id: dict[str, int] = {}
        for row, id in enumerate(ids):
            first = row_of_id.setdefault(id, row)
            if first != row:
                raise DataError(
                    "repeated_id",
                    path=self.report.path,
                    first=self.lines[first],
                    second=self.lines[row],
                    id=printable(id, 60),
                )
        return ids

    @property
    def titles(self) -> list[str | None]:
        """Titles of the rows (N) in the form of `normal_form`; None for a row without a title."""
        column = self.columns.get("title")
        if column is None:
            return [None] * len(self.values)
        titles = []
        for value in self.values:
            title = cells_of(value).get(column)
            titles.append(normal_form(str(title)) if title else None)
        return titles

    @property
    def metadata(self) -> list[dict[str, object]]:
        """Values of the rows (N) in all other columns, in order; names and texts in the form of `normal_form`."""
        story_columns = set(self.columns.values())
        metadata = []
        for value in self.values:
            cells: dict[str, object] = {}
            for name, cell in cells_of(value).items():
                if name not in story_columns:
                    cells[normal_form(name)] = normal_form(cell) if isinstance(cell, str) else cell
            metadata.append(cells)
        return metadata


def counts(reasons: Mapping[str, int]) -> str:
    """List the counts of reasons in one line, the most frequent first.

    >>> counts({"empty text_a": 1, "no label": 3})
    '3 no label, 1 empty text_a'
    """
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered)


def collect(
    file: RowFile, models: Sequence[RowModel], known: str, strict: bool, convert: Callable[[Any], Any] = lambda row: row
) -> tuple[list[tuple[FileRow, Any]], ReadReport]:
    """Validate and convert the rows of a file by one model, the first that a row fits.

    Rows that are invalid, or for which `convert` raises a ValueError, are dropped and counted.

    Args:
        file: rows of the file.
        models: row models to try.
        known: columns to list in the message if no row fits a model.
        strict: raise an error at the first row that would be dropped.
        convert: function of a validated row.

    Returns:
        Each row with its converted value, and the report.

    Raises:
        DataError: if no row fits a model, no row can be used, or `strict` is set and a row can't be used.
    """
    model = _model(file, models, known)
    results: list[tuple[FileRow, Any]] = []
    dropped: Counter[str] = Counter()
    suspicious: Counter[str] = Counter()
    for row in file.rows:
        try:
            parsed = _parsed(row, model)
            results.append((row, convert(parsed)))
        except ValueError as error:
            if strict:
                raise DataError("unusable_row", place=file.place(row), reason=_reason(error)) from error
            dropped[_reason(error)] += 1
        else:
            for column in _mojibake_columns(row, parsed):
                suspicious[f"mojibake in {column}"] += 1
    if not results:
        raise DataError("no_usable_row", path=file.path, dropped=counts(dropped))
    unread = _unread_columns(file.rows[0], model)
    return results, ReadReport(file.path, len(file.rows), dict(dropped), dict(suspicious), unread, file.notes)


def _parsed(row: FileRow, model: RowModel) -> BaseModel:
    """Validate a row; a text becomes the one required field of its model.

    Raises:
        ValueError: if the row is invalid.
    """
    if isinstance(row.value, Mapping):
        return model.model_validate(row.value)
    if isinstance(row.value, str) and _fits(model, row.value):
        return model.model_validate({_columns(model)["text"][0]: row.value})
    raise ValueError("row is not an object")


def _mojibake_columns(row: FileRow, parsed: BaseModel) -> Iterator[str]:
    """Yield the columns of a row whose text was decoded in the wrong encoding."""
    columns = _columns(type(parsed))
    for name, content in parsed:
        if _has_mojibake(content):
            yield _column_of(row, columns[name], default=name)


def _has_mojibake(content: object) -> bool:
    """Return True if a field is a text decoded in the wrong encoding, or has such a text among its negatives."""
    if isinstance(content, list):
        return any(_has_mojibake(negative.text) for negative in content)
    return isinstance(content, str) and _MOJIBAKE.search(content) is not None


def _column_of(row: FileRow, columns: Sequence[str], default: str) -> str:
    """Return the first of several columns that a row has; a row that is a text has all of them."""
    for column in columns:
        if isinstance(row.value, str) or column in row.value:
            return column
    return default


def _unread_columns(row: FileRow, model: RowModel) -> tuple[str, ...]:
    """List the columns of a row from which a model reads no field."""
    known = set(chain.from_iterable(_columns(model).values()))
    return tuple(name for name in row.cells if name not in known and not _NUMBERED.fullmatch(name))


def parse_stories(
    file: RowFile, strict: bool, stories: StoryTable | None = None, layout: Layout = Layout(), examples: bool = False
) -> Stories:
    """Read stories from rows, like `read_stories`; with `examples`, also from rows of triples and training examples."""
    file = _without_embeddings(file)
    models = models_of(file, layout, examples)
    known = f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}" if examples else STORIES_KNOWN
    results, report = collect(file, models, known, strict)
    columns = models[0].columns if issubclass(models[0], StoryRow) else {}
    table = StoryTable() if stories is None else stories
    result = Stories(table, rows=[], report=report, ids=[], lines=[], values=[], columns=columns)
    for row, parsed in results:
        id = parsed.id if isinstance(parsed, StoryRow) else None
        for text in parsed.texts:
            result.append(text, id, row)
    return result


def _without_embeddings(file: RowFile) -> RowFile:
    """Leave out the columns that `narrlit embed` has added to a file of stories."""
    columns = set(file.columns)
    if "row" not in columns or columns.isdisjoint(("embedding", "embedding_1")):
        return file
    rows = []
    for row in file.rows:
        cells = {name: cell for name, cell in row.cells.items() if not _EMBED_COLUMN.fullmatch(name)}
        rows.append(replace(row, value=cells) if cells else row)
    return replace(file, rows=rows, notes=(*file.notes, ReadingNote.of("left_out_embeddings")))


def read_stories(
    path: str | Path, strict: bool = False, stories: StoryTable | None = None, layout: Layout = Layout()
) -> Stories:
    """Read stories from a file or folder, or from standard input (`-`).

    Args:
        path: a folder or zip archive with one story per file (.txt, .md, .docx, .epub, .pdf), also in folders in it,
            and, optionally, tables that describe the files; a table (.csv with any delimiter, .tsv, .xlsx, .parquet);
            JSON Lines of objects or strings; a JSON array; or a text file or document, which is one story.
        strict: raise an error at the first row or file that would be left out, like `layout.strict`.
        stories: table to add the stories to; None: a new table.
        layout: columns, and how a text file is divided into stories.

    Raises:
        DataError: if the file can't be read, it has no text column or several, no row can be used, or `strict` is set
            and a row can't be used.
        OptionError: if the layout does not fit the file.
    """
    layout = replace(layout, strict=strict or layout.strict)
    return parse_stories(read_rows(path, layout), layout.strict, stories, layout)


def read_any(
    path: str | Path, strict: bool = False, stories: StoryTable | None = None, layout: Layout = Layout()
) -> Stories:
    """Read all stories of a file of stories, triples or training examples, each with the line and value of its row.

    Args and errors are those of `read_stories`.
    """
    layout = replace(layout, strict=strict or layout.strict)
    return parse_stories(read_rows(path, layout), layout.strict, stories, layout, examples=True)


def read_triples(
    path: str | Path, labels: str | Path | None = None, strict: bool = False, stories: StoryTable | None = None
) -> Triples:
    """Read triples, with their labels if there are any, from JSON Lines, CSV or TSV.

    Args:
        path: file with the columns anchor_text, text_a, text_b and, optionally, text_a_is_closer; or anchor_story,
            similar_story and dissimilar_story, where the similar story becomes A, the closer candidate.
        labels: file with one text_a_is_closer for each row of `path`, in the same order; replaces the labels in `path`.
        strict: raise an error at the first row that would be dropped.
        stories: table to add the stories to; None: a new table.

    Raises:
        DataError: if a file can't be read, the labels don't fit the rows, no row can be used, or `strict` is set and a
            row can't be used.
    """
    file = read_rows(path)
    if labels is not None:
        file = with_labels(file, read_rows(labels))
    table = StoryTable() if stories is None else stories
    results, report = collect(file, [TripleRow], TRIPLES_KNOWN, strict)
    triples = []
    for _, row in results:
        anchor, a, b = table.add(row.anchor), table.add(row.positive), table.add(row.other)
        triples.append(Triple(anchor, a, b, row.text_a_is_closer))
    return Triples(table, triples, report)


def read_labeled_triples(
    triples: str | Path | Triples, labels: str | Path | None = None, *, strict: bool = False, progress: bool = False
) -> Triples:
    """Read triples, and check that each has a label.

    Args:
        triples: file, as for `read_triples`, or triples that were read.
        labels: file of labels for a file of triples without them.
        strict: raise an error at the first row that would be dropped.
        progress: print on stderr how many rows were read.

    Raises:
        DataError: as for `read_triples`, and if there are no triples.
        OptionError: if a triple has no label, or `labels` are given for triples that were read.
    """
    if isinstance(triples, Triples):
        if labels is not None:
            raise OptionError("labels_of_read_triples")
        name = "the triples"
        result = triples
    else:
        name = str(triples)
        result = read_triples(triples, labels=labels, strict=strict)
    if not result:
        raise DataError("no_triples", name=name)
    unlabeled = int((result.labels < 0).sum())
    if unlabeled:
        if labels is not None:
            raise OptionError("empty_labels", labels=labels, n=unlabeled)
        raise OptionError("no_labels", name=name, n=unlabeled)
    if progress:
        say_rows(result)
    return result


def say_rows(rows: Triples | TrainingExamples) -> None:
    """Print the report on the reading of rows, if there is one."""
    if rows.report is not None:
        say(rows.report.summary())


def read_examples(path: str | Path, strict: bool = False, stories: StoryTable | None = None) -> TrainingExamples:
    """Read training examples from JSON Lines, CSV or TSV.

    Args:
        path: file of labeled triples, as for `read_triples`, or of anchor, positive and negatives. The negatives are a
            list of texts, a list of objects with text and kind (or dimension), or numbered columns such as neg_theme_1,
            which may be empty.
        strict: raise an error at the first row that would be dropped.
        stories: table to add the stories to; None: a new table.

    Raises:
        DataError: if the file can't be read, no row can be used, or `strict` is set and a row can't be used.
    """
    table = StoryTable() if stories is None else stories

    def add_to_table(row: ExampleRow) -> TrainingExample:
        texts = training_texts(row)
        anchor = table.add(texts.anchor)
        positive = table.add(texts.positive)
        negatives = [table.add(text) for text in texts.negatives]
        return TrainingExample(anchor, positive, tuple(negatives), tuple(texts.kinds), row.group)

    results, report = collect(read_rows(path), [TripleRow, ExampleRow], EXAMPLES_KNOWN, strict, add_to_table)
    return TrainingExamples(table, [example for _, example in results], report)


@dataclass(frozen=True, slots=True)
class TrainingTexts:
    """Texts of a training example, and the kind of each negative."""

    anchor: str
    positive: str
    negatives: list[str]
    kinds: list[str | None]


def training_texts(row: ExampleRow) -> TrainingTexts:
    """Return the texts of a row's training example; the closer candidate of a triple is the positive.

    Raises:
        ValueError: if a triple has no label, the anchor is also the positive, or one of the two is also a negative.
    """
    anchor, positive, *negatives = row.texts
    kinds = [negative.kind for negative in row.negatives]
    if isinstance(row, TripleRow):
        kinds = ["triple", *kinds]
        if row.text_a_is_closer is None:
            raise ValueError("no label")
        if not row.text_a_is_closer:
            positive, negatives[0] = negatives[0], positive
    normal_anchor, normal_positive, *normal_negatives = map(normal_text, (anchor, positive, *negatives))
    if normal_anchor == normal_positive:
        raise ValueError("anchor is its positive")
    if normal_anchor in normal_negatives:
        raise ValueError("anchor among its negatives")
    if normal_positive in normal_negatives:
        raise ValueError("positive among its negatives")
    return TrainingTexts(anchor, positive, negatives, kinds)


def with_labels(file: RowFile, labels: RowFile) -> RowFile:
    """Add the labels of a file to rows of triples; it has one label for each row, in the same order.

    Raises:
        DataError: if the labels don't fit the rows.
    """
    if len(labels.rows) != len(file.rows):
        raise DataError("number_of_labels", labels=labels.path, n=len(labels.rows), path=file.path, rows=len(file.rows))
    rows = []
    for row, label in zip(file.rows, labels.rows, strict=True):
        texts = row.cells
        if "similar_story" in texts:
            raise DataError("labels_and_similar_story", path=file.path)
        place = f"{labels.path}:{label.line}"
        if isinstance(label.value, Mapping):
            _check_label_row(label.value, place, texts, f"{file.path}:{row.line}")
        rows.append(FileRow(row.line, {**texts, LABEL_COLUMN: _label(label.value, place)}))
    return RowFile(file.path, rows, file.notes)


def _check_label_row(label: Mapping[str, object], place: str, texts: Mapping[str, object], place_of_texts: str) -> None:
    """Raise DataError for a row of labels without the label column, or with the texts of another triple."""
    if LABEL_COLUMN not in label:
        raise DataError(
            "missing_label_column", place=place, column=LABEL_COLUMN, found=[printable(name, 30) for name in label]
        )
    for name in ("anchor_text", "text_a", "text_b"):
        if name in label and normal_text(str(label[name])) != normal_text(str(texts.get(name))):
            raise DataError("labels_of_other_triples", place=place, column=name, place_of_texts=place_of_texts)


def _label(value: object, place: str) -> bool | None:
    """Validate the label in a row of a file of labels."""
    try:
        return _LABEL_TYPE.validate_python(value[LABEL_COLUMN] if isinstance(value, Mapping) else value)
    except ValidationError as error:
        raise DataError("invalid_label", place=place, column=LABEL_COLUMN) from error


# Texts inside raw rows -----------------------------------------------------------------------------------------------

TextsByPlace = dict[str, str]
"""Texts by their place in a row, such as "text" or "negatives/0/text"; "" is the place of a row that is a text."""


RowKind = Literal["stories", "triples", "examples"]


def row_texts(file: RowFile, layout: Layout = Layout()) -> tuple[RowKind, list[TextsByPlace]]:
    """Find the kind of a file's rows, and the texts in each row that are not empty, the views of a story included."""
    model = _model(file, models_of(file, layout), f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}")
    columns = _text_columns(model)
    if issubclass(model, StoryRow):
        for aspect in ASPECTS:
            columns += _columns(ViewsRow)[aspect]
        return "stories", [dict(_texts(row.value, columns)) for row in file.rows]
    texts = []
    for row in file.rows:
        numbered = filter(_NUMBERED.fullmatch, row.cells)
        texts.append(dict(_texts(row.value, [*columns, *numbered])))
    return "triples" if model is TripleRow else "examples", texts


def _text_columns(model: RowModel) -> list[str]:
    """List the columns of a model's fields that hold texts."""
    text_columns: list[str] = []
    for name, columns in _columns(model).items():
        if name not in ("id", "group", LABEL_COLUMN):
            text_columns += columns
    return text_columns


def _texts(value: object, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts in these columns of a raw row, each with its place."""
    if isinstance(value, Mapping):
        for name in dict.fromkeys(columns):
            yield from _texts_below(value.get(name), name)
    else:
        yield from _texts_below(value, "")


def _texts_below(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a cell, each with its place; a cell is a text, an object with a text, or a list of these."""
    if isinstance(value, str):
        if value.strip():
            yield place, value
    elif isinstance(value, Mapping):
        yield from _texts_below(value.get("text"), f"{place}/text")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts_below(item, f"{place}/{index}")


def replace_texts(value: Any, texts: TextsByPlace, place: str = "") -> Any:
    """Copy a raw row with new texts at their places.

    >>> replace_texts({"id": 1, "negatives": [{"text": "a", "kind": "theme"}]}, {"negatives/0/text": "b"})
    {'id': 1, 'negatives': [{'text': 'b', 'kind': 'theme'}]}
    """
    if isinstance(value, str):
        return texts.get(place, value)
    prefix = f"{place}/" if place else ""
    if isinstance(value, Mapping):
        return {key: replace_texts(item, texts, f"{prefix}{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [replace_texts(item, texts, f"{prefix}{index}") for index, item in enumerate(value)]
    return value
