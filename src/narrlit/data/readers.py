"""Files of stories, triples and training examples: pydantic models of their layouts, and readers that report.

Nothing is repaired: a row is read as it is, or dropped and counted; rows that look wrong are read and counted.
"""

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, StrictStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from narrlit.data.schema import (
    KINDS,
    Story,
    StoryTable,
    TrainingExample,
    TrainingExamples,
    Triple,
    Triples,
)
from narrlit.errors import DataError

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL = "text_a_is_closer"
STORY_COLUMNS = ("text", "story")
TEXT_FIELDS = ("text", "anchor", "positive", "anchor_text", "text_a", "text_b")
ACTION_COLUMNS = ("plot_events", "course_of_action", "plot", "action")
_FIELD_LIMIT = 2**31 - 1  # fits a C long everywhere

STORIES_KNOWN = "text[,id] or story[,id] or, in JSON Lines, bare strings"
TRIPLES_KNOWN = "anchor_text,text_a,text_b[,text_a_is_closer] or anchor_story,similar_story,dissimilar_story"
EXAMPLES_KNOWN = f"{TRIPLES_KNOWN} or anchor,positive[,negatives] or anchor,positive,neg_theme_1,neg_action_1,..."

# UTF-8 decoded as Latin-1 or Windows-1252, and a decoder's replacement. After the capital A with tilde, quotes and
# dashes are left out: they follow the letter in sound Portuguese text.
_MOJIBAKE = re.compile("\ufffd|[\x80-\x84\x86-\x9f]|â[€\x80]|Ã[\x80-\xbf€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ]|Â[\xa0-\xbf]|ðŸ|ï(?:»¿|¿½)")
_SURROGATE = re.compile("[\ud800-\udfff]")  # a broken escape: no tokenizer and no file takes it
_NUMBERED = re.compile(r"neg(?:ative)?(?:_([a-z][a-z_]*?))?_(\d+)|neg(?:ative)?(?:_([a-z]+))?")


class RowError(Exception):
    """The reason why a row can't be used, as it is counted."""


# Rows of a file ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a JSON value, a mapping of a CSV's cells, or a line of text; and the line it starts on."""

    line: int
    value: Any


@dataclass(frozen=True, slots=True)
class RowFile:
    """The rows of a file in order; there is at least one."""

    path: Path
    rows: list[Row]

    def at(self, line: int) -> str:
        """Return FILE:LINE for messages."""
        return f"{self.path}:{line}"


def file_digest(path: str | Path) -> str:
    """Compute the SHA-256 of a file's bytes, in hex.

    Raises:
        DataError: if the file is missing or can't be read.
    """
    return hashlib.sha256(_bytes(Path(path))).hexdigest()


def read_rows(path: str | Path) -> RowFile:
    """Read every row of a file, by its suffix: .jsonl, .csv (with `,` or `;`), .tsv, .txt; or a folder of .txt files.

    A .txt file has one story a line, or stories with blank lines between where most lines end within a sentence.

    Raises:
        DataError: if the file is missing, empty, not UTF-8, of unknown type or broken.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(path.glob("*.txt"))
        if not files:
            raise DataError(f"{path} is a folder without .txt files; name a file, or a folder with a story a file")
        return RowFile(path, [Row(i, {"id": file.stem, "text": _text(file)}) for i, file in enumerate(files, start=1)])
    suffix, text = path.suffix.lower(), _text(path)
    if suffix in JSON_SUFFIXES:
        rows = [Row(number, _json(f"{path}:{number}", line)) for number, line in _lines(text)]
    elif suffix in DELIMITERS:
        rows = _csv_rows(path, text, DELIMITERS[suffix])
    elif suffix == ".txt":
        rows = _text_rows(text)
    else:
        raise DataError(f"{path}: unknown file type '{suffix}'; name a .jsonl, .csv, .tsv or .txt file")
    if not rows:
        raise DataError(f"{path} has no rows; name a file with data in it")
    return RowFile(path, rows)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist; check the path") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path and its permissions") from error


def _text(path: Path) -> str:
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        bad = content[error.start]
        raise DataError(f"{path}:{line}: not UTF-8 (byte 0x{bad:02x}); save the file as UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; name a file with data in it")
    return text


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines: it also splits at U+2028, which may stand inside a JSON string or a story.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def _json(place: str, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        what = (
            f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else type(error).__name__
        )
        raise DataError(f"{place}: broken JSON, {what}; write one whole JSON value a line") from error


def _text_rows(text: str) -> list[Row]:
    blocks: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            blocks[-1].append((number, line.removesuffix("\r")))
        elif blocks[-1]:
            blocks.append([])
    inner = [line.rstrip() for block in blocks for _, line in block[:-1]]
    wrapped = sum(not line.endswith((".", "!", "?", "…", '"', "'", "”", "’", ")")) for line in inner)
    blocks = [block for block in blocks if block]
    if len(blocks) > 1 and 2 * wrapped > len(inner):
        return [Row(block[0][0], " ".join(line.strip() for _, line in block)) for block in blocks]
    return [Row(number, line) for block in blocks for number, line in block]


def _csv_rows(path: Path, text: str, delimiter: str) -> list[Row]:
    first = text.lstrip().split("\n", 1)[0]
    if delimiter == "," and ";" in first and "," not in first:
        delimiter = ";"
    rows: list[Row] = []
    header: list[str] | None = None
    limit, line = csv.field_size_limit(_FIELD_LIMIT), 1
    try:
        # strict: otherwise a quote that never closes makes one story of the rest of the file.
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        for cells in reader:
            if cells and header is None:
                header = [cell.strip() for cell in cells]
                twice = [name for name, count in Counter(header).items() if name and count > 1]
                if twice:
                    raise DataError(f"{path}:{line}: two columns are named {_short(twice[0])}; rename or remove one")
            elif cells and header is not None:
                if len(cells) > len(header):
                    problem = f"{len(cells)} fields where the header has {len(header)}"
                    raise DataError(f"{path}:{line}: {problem}; put texts that contain '{delimiter}' in double quotes")
                rows.append(Row(line, dict(zip(header, cells, strict=False))))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{line}: broken CSV, {error}; put texts in double quotes, quotes doubled") from error
    finally:
        csv.field_size_limit(limit)
    return rows


def _short(name: object) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= 30 else f"{text[:27]}..."


# Layouts -------------------------------------------------------------------------------------------------------------


def not_empty(value: str) -> str:
    """Validate a text.

    Raises:
        ValueError: if it is white space alone, or half a surrogate pair.
    """
    if not value.strip():
        raise PydanticCustomError("empty", "empty")
    if _SURROGATE.search(value):
        raise PydanticCustomError("surrogate", "half a surrogate pair")
    return value


def _label(value: object) -> object:
    value = value.strip().lower() if isinstance(value, str) else value
    return None if value == "" else value


def _name(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None if value == "" else value


def _kind(value: object) -> object:
    kind = {"structure": "action", "": None}.get(value, value) if isinstance(value, str) else value
    if kind is not None and kind not in KINDS:
        raise PydanticCustomError("kind", "unknown kind")
    return kind


Text = Annotated[StrictStr, AfterValidator(not_empty)]
Name = Annotated[Text | None, BeforeValidator(_name)]
Label = Annotated[bool | None, BeforeValidator(_label)]
Kind = Annotated[str | None, BeforeValidator(_kind)]


class StoryRow(BaseModel):
    """A row of a file of stories."""

    text: Text
    id: Name = None


class ViewsRow(StoryRow):
    """A row of a file of views."""

    theme: Text
    action: Text
    outcome: Text

    @model_validator(mode="before")
    @classmethod
    def _with_action(cls, row: Any) -> Any:
        """Take the first column of actions that holds something; a list of events is joined by line breaks."""
        values = [row[name] for name in ACTION_COLUMNS if row.get(name)]
        action = values[0] if values else row["action"]
        if isinstance(action, list) and all(isinstance(event, str) and event.strip() for event in action):
            action = "\n".join(action)
        return {**row, "action": action}


class NegativeItem(BaseModel):
    """A negative of a training example."""

    text: Text
    kind: Kind = None

    @model_validator(mode="before")
    @classmethod
    def _from_any(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return {"text": value}
        kinds = {_kind(value.get(name)) for name in ("kind", "dimension")} - {None}
        if len(kinds) > 1:
            raise PydanticCustomError("kind", "kind and dimension differ")
        return {**value, "kind": next(iter(kinds), None)}


class _Negatives(BaseModel):
    negatives: list[NegativeItem] = []
    group: Name = None

    @model_validator(mode="before")
    @classmethod
    def _with_numbered(cls, row: Any) -> Any:
        """Append the negatives of numbered columns, in the order of KINDS and of their numbers."""
        listed = row.get("negatives")
        if listed is not None and listed != "" and not isinstance(listed, list):
            raise PydanticCustomError("list", "negatives is not a list")
        found = []
        for name, value in row.items():
            match = _NUMBERED.fullmatch(name)
            empty = value is None or (isinstance(value, str) and not value.strip())
            if match and name != "negatives" and not empty:
                kind: Any = _kind(match[1] or match[3])
                rank = KINDS.index(kind) if kind else len(KINDS)
                found.append((rank, int(match[2] or 0), {"text": value, "kind": kind}))
        return {**row, "negatives": [*(listed or []), *(item for *_, item in sorted(found, key=lambda f: f[:2]))]}


class ExampleRow(_Negatives):
    """A row of a file of training examples."""

    anchor: Text
    positive: Text


class TripleRow(_Negatives):
    """A row of a file of triples; further negatives and a group are read for training alone."""

    anchor_text: Text
    text_a: Text
    text_b: Text
    text_a_is_closer: Label = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The model of a file's rows, and which column holds which of its fields, where the names differ."""

    model: type[BaseModel]
    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, object] = field(default_factory=dict)

    def parse(self, value: object) -> Any:
        """Validate a row.

        Raises:
            RowError: with the reason, if the row can't be used.
        """
        if isinstance(value, str) and self.model is StoryRow:
            value = {self.columns.get("text", "text"): value}
        if not isinstance(value, Mapping):
            raise RowError(
                "text is not text" if self.model is StoryRow and value is not None else "row is not an object"
            )
        row = {**value, **{name: value.get(column) for name, column in self.columns.items()}, **self.constants}
        try:
            return self.model.model_validate(row)
        except ValidationError as error:
            raise RowError(self._reason(error.errors(include_url=False)[0])) from error

    def _reason(self, error: Any) -> str:
        name = "negative" if len(error["loc"]) > 1 else str(error["loc"][0]) if error["loc"] else ""
        name = self.columns.get(name, name)
        if error["type"] in ("kind", "list"):
            return str(error["msg"])
        if error["type"] == "empty":
            return f"empty {name}"
        if error["type"].startswith("bool"):
            return f"{name} is not true or false"
        if error["type"] == "surrogate":
            return f"{name} has half a surrogate pair"
        return f"missing {name}" if error["type"] == "missing" or error["input"] is None else f"{name} is not text"


def _story_layout(columns: Sequence[str]) -> Layout | None:
    name = next((name for name in STORY_COLUMNS if name in columns), None)
    return Layout(StoryRow, {"text": name}) if name else None


def _triple_layout(columns: Sequence[str]) -> Layout | None:
    if {"anchor_text", "text_a", "text_b"} <= set(columns):
        return Layout(TripleRow)
    if {"anchor_story", "similar_story", "dissimilar_story"} <= set(columns):
        names = {"anchor_text": "anchor_story", "text_a": "similar_story", "text_b": "dissimilar_story"}
        return Layout(TripleRow, names, {LABEL: True})
    return None


def _example_layout(columns: Sequence[str]) -> Layout | None:
    anchor = next((name for name in ("anchor", "anchor_text", "anchor_story") if name in columns), None)
    positives = ("positive", "positive_text", "similar_text", "similar_story")
    positive = next((name for name in positives if name in columns), None)
    names = {"anchor": anchor, "positive": positive} if anchor and positive else None
    return _triple_layout(columns) or (Layout(ExampleRow, names) if names else None)


def views_layout(columns: Sequence[str]) -> Layout | None:
    """Return the layout of a file of views; None for other columns."""
    story = next((name for name in STORY_COLUMNS if name in columns), None)
    if story is None or not {"theme", "outcome"} <= set(columns) or not set(ACTION_COLUMNS) & set(columns):
        return None
    return Layout(ViewsRow, {"text": story, "action": next(name for name in ACTION_COLUMNS if name in columns)})


def find_layout(file: RowFile, known: str, *layouts: Callable[[Sequence[str]], Layout | None]) -> Layout:
    """Return the layout of the first row whose columns have one.

    Args:
        file: the rows.
        known: columns for the message.
        layouts: functions from columns to a layout, tried in order.

    Raises:
        DataError: if no row has a known layout.
    """
    for layout_of in layouts:
        found = (layout_of(tuple(row.value)) for row in file.rows if isinstance(row.value, Mapping))
        layout = next((layout for layout in found if layout is not None), None)
        if layout is not None:
            return layout
    if _story_layout in layouts and any(isinstance(row.value, str) for row in file.rows):
        return Layout(StoryRow, {"text": "text"})
    first = file.rows[0]
    if not isinstance(first.value, Mapping):
        what = "a line of text" if isinstance(first.value, str) else f"a JSON {type(first.value).__name__}"
        raise DataError(f"{file.at(first.line)}: {what} instead of a row with columns; known: {known}")
    names = [str(name) for name in first.value]
    if file.path.suffix.lower() in DELIMITERS and any(len(name) > 40 or name.count(" ") > 3 for name in names):
        raise DataError(f"{file.path}:1: the first line is a row of data, not a header; add a line of columns: {known}")
    found_columns = ", ".join(map(_short, names[:12])) or "none"
    raise DataError(f"{file.at(first.line)}: unknown columns: {found_columns}; known: {known}")


# Reports and readers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadReport:
    """Rows of a file, how many were dropped or look suspicious, by reason, and columns that were not read."""

    path: Path
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    suspicious: dict[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        """How many rows were read."""
        return self.rows - sum(self.dropped.values())

    def summary(self) -> str:
        """Describe the report in one line.

        >>> ReadReport(Path("a/x.jsonl"), 2, {"empty text_a": 1}).summary()
        'x.jsonl: 1 of 2 rows, dropped 1 (1 empty text_a)'
        """
        line = f"{self.path.name}: "
        if self.dropped:
            line += f"{self.used} of {_rows(self.rows)}, dropped {self.rows - self.used} ({counts(self.dropped)})"
        else:
            line += _rows(self.rows)
        return f"{line}; suspicious: {counts(self.suspicious)}" if self.suspicious else line

    def provenance(self) -> dict[str, Any]:
        """Return plain data for run.json."""
        digest = None if self.path.is_dir() else file_digest(self.path)
        return {"path": str(self.path), "sha256": digest, "rows": self.rows, "dropped": dict(self.dropped)}


@dataclass
class Stories(Sequence[Story]):
    """Stories of a file in its order, each with the id of its row.

    Attributes:
        table: holds each different text once.
        rows: (N) story indices.
        report: of the reader.
        ids: (N) ids of the rows; None for the table's own.
        lines: (N) line numbers of the rows.
        values: (N) raw values of the rows, with all columns.
    """

    table: StoryTable
    rows: list[int]
    report: ReadReport | None = None
    ids: list[str | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def __getitem__(self, index: Any) -> Any:
        """Return a story (or several, for a slice) with the id of its row."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        story, id = self.table[self.rows[index]], self.ids[index] if self.ids else None
        return story if id is None else Story(id, story.text, story.views, story.original)

    def __len__(self) -> int:
        return len(self.rows)


def counts(reasons: Mapping[str, int]) -> str:
    """Describe reasons, the most frequent first.

    >>> counts({"empty text_a": 1, "no label": 3})
    '3 no label, 1 empty text_a'
    """
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered)


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def has_mojibake(text: str) -> bool:
    """Return whether a text holds character sequences that a wrong decoding leaves behind.

    >>> has_mojibake("the captainâ€™s daughter"), has_mojibake("the captain’s daughter")
    (True, False)
    """
    return _MOJIBAKE.search(text) is not None


def collect(
    file: RowFile, layout: Layout, convert: Callable[[Any], T], *, strict: bool
) -> tuple[list[tuple[Row, T]], ReadReport]:
    """Convert each valid row; others are dropped and counted. Suspicious rows are counted, strict or not.

    Raises:
        DataError: if no row can be used or, when strict, at the first row that would be dropped.
    """
    results: list[tuple[Row, T]] = []
    dropped: Counter[str] = Counter()
    suspicious: Counter[str] = Counter()
    for row in file.rows:
        try:
            parsed = layout.parse(row.value)
            results.append((row, convert(parsed)))
        except RowError as error:
            if strict:
                raise DataError(f"{file.at(row.line)}: {error}; correct the row") from error
            dropped[str(error)] += 1
            continue
        for name, value in parsed:
            texts = [item.text for item in value] if isinstance(value, list) else [value]
            if any(isinstance(text, str) and has_mojibake(text) for text in texts):
                suspicious[f"mojibake in {layout.columns.get(name, name)}"] += 1
    if not results:
        raise DataError(f"{file.path}: none of its {_rows(len(file.rows))} can be used ({counts(dropped)})")
    read = {*layout.model.model_fields, *layout.columns.values(), "dimension"}
    columns = dict.fromkeys(str(n) for row in file.rows[:1] if isinstance(row.value, Mapping) for n in row.value)
    unread = tuple(name for name in columns if name not in read and not _NUMBERED.fullmatch(name))
    return results, ReadReport(file.path, len(file.rows), dict(dropped), dict(suspicious), unread)


def read_stories(
    path: str | Path, strict: bool = False, stories: StoryTable | None = None, text_column: str | None = None
) -> Stories:
    """Read stories from JSON Lines (objects or bare strings), CSV, TSV, text, or a folder of text files.

    Args:
        path: the file; its suffix decides how it is read.
        strict: refuse the first row that would be dropped.
        stories: a table to add to; None: a new one.
        text_column: the column of the text, where it is neither `text` nor `story`.

    Raises:
        DataError: if the file can't be read, has no text column, no row can be used, or strict refuses one.
    """
    file = read_rows(path)
    layouts = [_story_layout] if text_column is None else [_named_column(text_column)]
    layout = find_layout(file, text_column or STORIES_KNOWN, *layouts)
    table = StoryTable() if stories is None else stories
    results, report = collect(file, layout, lambda row: row, strict=strict)
    return Stories(
        table,
        [table.add(story.text, id=story.id) for _, story in results],
        report,
        [story.id for _, story in results],
        [row.line for row, _ in results],
        [row.value for row, _ in results],
    )


def _named_column(column: str) -> Callable[[Sequence[str]], Layout | None]:
    return lambda columns: Layout(StoryRow, {"text": column}) if column in columns else None


def read_triples(
    path: str | Path, labels: str | Path | None = None, strict: bool = False, stories: StoryTable | None = None
) -> Triples:
    """Read triples from JSON Lines, CSV or TSV, with their labels where there are any.

    Args:
        path: anchor_text,text_a,text_b[,text_a_is_closer], or anchor_story,similar_story,dissimilar_story, of which
            the similar story is A and the closer.
        labels: a file with one text_a_is_closer for each row of `path`, in its order; replaces the labels there.
        strict: refuse the first row that would be dropped.
        stories: a table to add to; None: a new one.

    Raises:
        DataError: if a file can't be read, the labels don't fit, no row can be used, or strict refuses one.
    """
    file = read_rows(path)
    layout = find_layout(file, TRIPLES_KNOWN, _triple_layout)
    if labels is not None:
        file = _with_labels(file, layout, labels)
    table = StoryTable() if stories is None else stories
    results, report = collect(file, layout, lambda row: row, strict=strict)
    rows = [
        Triple(table.add(row.anchor_text), table.add(row.text_a), table.add(row.text_b), row.text_a_is_closer)
        for _, row in results
    ]
    return Triples(table, rows, report)


def read_examples(path: str | Path, strict: bool = False, stories: StoryTable | None = None) -> TrainingExamples:
    """Read training examples from JSON Lines, CSV or TSV.

    Args:
        path: labeled triples as `read_triples` reads them, or rows of anchor, positive and negatives: a list of texts
            or of objects with text and kind (or dimension), or numbered columns such as neg_theme_1, any of them empty.
        strict: refuse the first row that would be dropped.
        stories: a table to add to; None: a new one.

    Raises:
        DataError: if the file can't be read, no row can be used, or strict refuses one.
    """
    file = read_rows(path)
    layout = find_layout(file, EXAMPLES_KNOWN, _example_layout)
    table = StoryTable() if stories is None else stories
    results, report = collect(file, layout, lambda row: _example(row, table), strict=strict)
    return TrainingExamples(table, [example for _, example in results], report)


def _example(row: Any, table: StoryTable) -> TrainingExample:
    if isinstance(row, TripleRow):
        if row.text_a_is_closer is None:
            raise RowError("no label")
        near, far = (row.text_a, row.text_b) if row.text_a_is_closer else (row.text_b, row.text_a)
        anchor, first = row.anchor_text, [NegativeItem.model_construct(text=far, kind="triple")]
    else:
        anchor, near, first = row.anchor, row.positive, []
    negatives = [*first, *row.negatives]
    texts = {negative.text for negative in negatives}
    for wrong, reason in (
        (anchor == near, "anchor is its positive"),
        (anchor in texts, "anchor among its negatives"),
        (near in texts, "positive among its negatives"),
    ):
        if wrong:
            raise RowError(reason)
    indices = [table.add(text) for text in (anchor, near, *(negative.text for negative in negatives))]
    kinds = tuple(negative.kind for negative in negatives)
    return TrainingExample(indices[0], indices[1], tuple(indices[2:]), kinds, row.group)


def read_any(path: str | Path, strict: bool = False, stories: StoryTable | None = None) -> Stories:
    """Read every story of a file of triples, training examples or stories; labels don't matter.

    Returns:
        The stories of all rows in order; a row of several stories gives several with the same line and value.

    Raises:
        DataError: as the other readers.
    """
    file = read_rows(path)
    layout = find_layout(file, f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}", _example_layout, _story_layout)
    results, report = collect(file, layout, lambda row: row, strict=strict)
    found = Stories(StoryTable() if stories is None else stories, [], report)
    for row, parsed in results:
        values = dict(parsed)
        texts = [values[name] for name in TEXT_FIELDS if name in values]
        for text in (*texts, *(negative.text for negative in values.get("negatives", []))):
            found.rows.append(found.table.add(text, id=values.get("id")))
            found.ids.append(values.get("id"))
            found.lines.append(row.line)
            found.values.append(row.value)
    return found


def _with_labels(file: RowFile, layout: Layout, labels: str | Path) -> RowFile:
    if layout.constants:
        raise DataError(f"{file.path} names the similar story itself; leave out the file of labels")
    given = read_rows(labels)
    if len(given.rows) != len(file.rows):
        raise DataError(
            f"{given.path} has {len(given.rows)} labels but {file.path} has {len(file.rows)} rows; "
            "give one label for each row, in the same order"
        )
    rows = []
    for row, label_row in zip(file.rows, given.rows, strict=True):
        value = label_row.value
        where = given.at(label_row.line)
        if isinstance(value, Mapping):
            if LABEL not in value:
                columns = ", ".join(map(_short, value))
                raise DataError(f'{where}: column "{LABEL}" is missing; found: {columns}; rename the column of labels')
            for name in ("anchor_text", "text_a", "text_b"):
                if isinstance(row.value, Mapping) and name in value and value[name] != row.value.get(name):
                    place = file.at(row.line)
                    raise DataError(f"{where}: {name} differs from {place}; put the labels in the order of the rows")
            value = value[LABEL]
        try:
            Layout(_LabelRow).parse({LABEL: value})
        except RowError as error:
            raise DataError(f"{where}: {error}; write true, false or null") from error
        rows.append(Row(row.line, {**row.value, LABEL: value} if isinstance(row.value, Mapping) else row.value))
    return RowFile(file.path, rows)


class _LabelRow(BaseModel):
    text_a_is_closer: Label = None


# Texts inside raw rows -----------------------------------------------------------------------------------------------

Texts = dict[str, str]
"""Texts by their place in a row: "text", "negatives/0/text"; "" for a row that is itself a text."""


def row_texts(file: RowFile) -> tuple[Literal["stories", "triples", "examples"], list[Texts]]:
    """Find the texts of every row of any file; a story's views belong to it.

    Returns:
        What a row is, and for each row its texts that are not empty.

    Raises:
        DataError: if the file's layout is unknown.
    """
    layout = find_layout(file, f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}", _example_layout, _story_layout)
    kinds: dict[Any, Literal["stories", "triples", "examples"]] = {StoryRow: "stories", TripleRow: "triples"}
    kind = kinds.get(layout.model, "examples")
    names = [layout.columns.get(name, name) for name in TEXT_FIELDS if name in layout.model.model_fields]
    more = ["theme", *ACTION_COLUMNS, "outcome"] if kind == "stories" else ["negatives"]

    def texts(value: Any) -> Texts:
        if isinstance(value, str):
            return _texts_in(value, "")
        if not isinstance(value, Mapping):
            return {}
        numbered = [name for name in value if kind != "stories" and _NUMBERED.fullmatch(str(name))]
        found: Texts = {}
        for name in dict.fromkeys([*names, *more, *numbered]):
            found |= _texts_in(value.get(name), name)
        return found

    return kind, [texts(row.value) for row in file.rows]


def _texts_in(value: Any, place: str) -> Texts:
    if isinstance(value, str):
        return {place: value} if value.strip() else {}
    if isinstance(value, Mapping):
        return _texts_in(value.get("text"), f"{place}/text")
    items = enumerate(value) if isinstance(value, list) else ()
    return {name: text for i, item in items for name, text in _texts_in(item, f"{place}/{i}").items()}


def with_texts(value: Any, texts: Texts, place: str = "") -> Any:
    """Copy a raw row with other texts in their places.

    >>> with_texts({"id": 1, "negatives": [{"text": "a", "kind": "theme"}]}, {"negatives/0/text": "b"})
    {'id': 1, 'negatives': [{'text': 'b', 'kind': 'theme'}]}
    """
    if isinstance(value, str):
        return texts.get(place, value)
    inside = f"{place}/" if place else ""
    if isinstance(value, Mapping):
        return {name: with_texts(item, texts, f"{inside}{name}") for name, item in value.items()}
    if isinstance(value, list):
        return [with_texts(item, texts, f"{inside}{i}") for i, item in enumerate(value)]
    return value
