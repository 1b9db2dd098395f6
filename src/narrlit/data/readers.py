"""Files of stories, triples and training examples: pydantic models of their rows, and readers that report.

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
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from narrlit.data.schema import KINDS, Story, StoryTable, TrainingExample, TrainingExamples, Triple, Triples
from narrlit.errors import DataError, printable, reading

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL = "text_a_is_closer"
ACTION_COLUMNS = ("plot_events", "course_of_action", "plot", "action")

STORIES_KNOWN = "text[,id] or story[,id] (embed --text-column names another) or, in JSON Lines, bare strings"
TRIPLES_KNOWN = "anchor_text,text_a,text_b[,text_a_is_closer] or anchor_story,similar_story,dissimilar_story"
EXAMPLES_KNOWN = f"{TRIPLES_KNOWN} or anchor,positive[,negatives] or anchor,positive,neg_theme_1,neg_action_1,..."

# UTF-8 decoded as Latin-1 or Windows-1252, and a decoder's replacement. After the capital A with tilde, quotes and
# dashes are left out: they follow the letter in sound Portuguese text.
_MOJIBAKE = re.compile("\ufffd|[\x80-\x84\x86-\x9f]|â[€\x80]|Ã[\x80-\xbf€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ]|Â[\xa0-\xbf]|ðŸ|ï(?:»¿|¿½)")
_NUMBERED = re.compile(r"neg(?:ative)?(?:_([a-z]+))?(?:_(\d+))?")


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


def file_digest(path: str | Path) -> str:
    """Compute the SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(_bytes(Path(path))).hexdigest()


def read_rows(path: str | Path) -> RowFile:
    """Read every row of a file, by its suffix: .jsonl, .csv (with `,` or `;`), .tsv, .txt; or a folder of .txt files.

    A .txt file has one story a line, or stories with blank lines between where most lines end within a sentence.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(path.glob("*.txt"))
        if not files:
            raise DataError(f"{path} is a folder without .txt files; name a file, or a folder with a story a file")
        return RowFile(path, [Row(i, {"id": file.stem, "text": _text(file)}) for i, file in enumerate(files, start=1)])
    suffix, text = path.suffix.lower(), _text(path)
    if suffix in JSON_SUFFIXES:
        rows = [Row(number, _json(path, number, line)) for number, line in _lines(text)]
    elif suffix in DELIMITERS:
        rows = list(_csv_rows(path, text, DELIMITERS[suffix]))
    elif suffix == ".txt":
        rows = _text_rows(text)
    else:
        raise DataError(f"{path}: unknown file type '{suffix}'; name a .jsonl, .csv, .tsv or .txt file")
    if not rows:
        raise DataError(f"{path} has no rows; name a file with data in it")
    return RowFile(path, rows)


def _bytes(path: Path) -> bytes:
    if not path.exists():
        raise DataError(f"{path} does not exist; check the path")
    with reading("file", path, "check the path"):
        return path.read_bytes()


def _text(path: Path) -> str:
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; name a file with data in it")
    return text


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines: it also splits at U+2028, which may stand inside a JSON string or a story.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def _json(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", error)
        raise DataError(f"{path}:{number}: broken JSON, {what}; write one whole JSON value a line") from error


def _text_rows(text: str) -> list[Row]:
    blocks: list[list[tuple[int, str]]] = []
    for number, line in _lines(text):
        if blocks and blocks[-1][-1][0] == number - 1:
            blocks[-1].append((number, line.strip()))
        else:
            blocks.append([(number, line.strip())])
    inner = [line for block in blocks for _, line in block[:-1]]
    wrapped = sum(not line.endswith((".", "!", "?", "…", '"', "'", "”", "’", ")")) for line in inner)
    if len(blocks) > 1 and 2 * wrapped > len(inner):
        return [Row(block[0][0], " ".join(line for _, line in block)) for block in blocks]
    return [Row(number, line) for number, line in _lines(text)]


def _csv_rows(path: Path, text: str, delimiter: str) -> Iterator[Row]:
    first = text.lstrip().split("\n", 1)[0]
    if delimiter == "," and ";" in first and "," not in first:
        delimiter = ";"
    csv.field_size_limit(2**31 - 1)  # by default 131,072 characters, fewer than a novel has
    header: list[str] = []
    line = 1
    try:
        # strict: otherwise a quote that never closes makes one story of the rest of the file.
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        for cells in reader:
            if cells and not header:
                header = [cell.strip() for cell in cells]
                twice = [name for name, count in Counter(header).items() if name and count > 1]
                if twice:
                    raise DataError(f"{path}:{line}: two columns are named {twice[0]}; rename or remove one")
            elif len(cells) > len(header):
                problem = f"{len(cells)} fields where the header has {len(header)}"
                raise DataError(f"{path}:{line}: {problem}; put texts that contain '{delimiter}' in double quotes")
            elif cells:
                yield Row(line, dict(zip(header, cells, strict=False)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{line}: broken CSV, {error}; put texts in double quotes, quotes doubled") from error


# Models of rows ------------------------------------------------------------------------------------------------------


def _kind(value: object) -> object:
    kind = None if value == "" else "action" if value == "structure" else value
    if kind not in (None, *KINDS):
        raise ValueError("unknown kind")
    return kind


Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[
    Annotated[str, Field(coerce_numbers_to_str=True)] | None, BeforeValidator(lambda v: None if v == "" else v)
]
Label = Annotated[bool | None, BeforeValidator(lambda v: v.strip() or None if isinstance(v, str) else v)]
Kind = Annotated[str | None, BeforeValidator(_kind)]


def _named(*columns: str) -> Any:
    return Field(validation_alias=AliasChoices(*columns))


class StoryRow(BaseModel):
    """A row of a file of stories."""

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
        """Take the first column of actions that is not empty; a list of events is joined by line breaks."""
        action = next((row[name] for name in ACTION_COLUMNS if row.get(name)), None)
        if isinstance(action, list) and all(isinstance(event, str) and event.strip() for event in action):
            action = "\n".join(action)
        return {**row, "action": action} if action else row


class NegativeItem(BaseModel):
    """A negative of a training example."""

    text: Text
    kind: Kind = Field(None, validation_alias=AliasChoices("kind", "dimension"))

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return value if isinstance(value, Mapping) else {"text": value}


class ExampleRow(BaseModel):
    """A row of a file of training examples."""

    anchor: Text = _named("anchor", "anchor_text", "anchor_story")
    positive: Text = _named("positive", "positive_text", "similar_text", "similar_story")
    negatives: list[NegativeItem] = []
    group: Name = None

    @model_validator(mode="before")
    @classmethod
    def _with_numbered(cls, row: Any) -> Any:
        """Append the negatives of numbered columns, in the order of KINDS and of their numbers."""
        listed = row.get("negatives") or []
        if not isinstance(listed, list):
            raise ValueError("negatives is not a list")  # noqa: TRY004 (pydantic passes on ValueError alone)
        numbered = []
        for name, value in row.items():
            match = _NUMBERED.fullmatch(name)
            if match and value is not None and str(value).strip():
                kind: Any = _kind(match[1])
                rank = KINDS.index(kind) if kind else len(KINDS)
                numbered.append((rank, int(match[2] or 0), {"text": value, "kind": kind}))
        numbered.sort(key=lambda item: item[:2])
        return {**row, "negatives": [*listed, *(item for *_, item in numbered)]}

    @property
    def texts(self) -> list[str]:
        """Anchor, positive and negatives."""
        return [self.anchor, self.positive, *(negative.text for negative in self.negatives)]


class TripleRow(ExampleRow):
    """A row of a file of triples; further negatives and a group are read for training alone."""

    anchor: Text = _named("anchor_text", "anchor_story")
    positive: Text = _named("text_a", "similar_story")
    other: Text = _named("text_b", "dissimilar_story")
    text_a_is_closer: Label = None

    @model_validator(mode="before")
    @classmethod
    def _similar_is_closer(cls, row: Any) -> Any:
        return row if "text_a" in row else {**row, LABEL: True}

    @property
    def texts(self) -> list[str]:
        """Anchor, A, B and negatives."""
        return [self.anchor, self.positive, self.other, *(negative.text for negative in self.negatives)]


Model = type[BaseModel]
ANY_MODEL: tuple[Model, ...] = (TripleRow, ExampleRow, StoryRow)


def _columns(model: Model) -> dict[str, list[str]]:
    """Columns that may hold each field of a model."""
    aliases = {name: info.validation_alias for name, info in model.model_fields.items()}
    return {n: list(map(str, a.choices)) if isinstance(a, AliasChoices) else [n] for n, a in aliases.items()}


def _fits(model: Model, value: object) -> bool:
    if not isinstance(value, Mapping):
        return model is StoryRow and isinstance(value, str)
    needed = [names for name, names in _columns(model).items() if model.model_fields[name].is_required()]
    return all(any(name in value for name in names) for names in needed)


def _model(file: RowFile, models: Sequence[Model], known: str) -> Model:
    """Return the model of the first row that has the columns of one; `known` names columns for the message."""
    found = next((model for row in file.rows for model in models if _fits(model, row.value)), None)
    if found is not None:
        return found
    first = file.rows[0]
    if not isinstance(first.value, Mapping):
        what = "a line of text" if isinstance(first.value, str) else f"a JSON {type(first.value).__name__}"
        raise DataError(f"{file.path}:{first.line}: {what} instead of a row with columns; known: {known}")
    if file.path.suffix.lower() in DELIMITERS and any(str(name).count(" ") > 3 for name in first.value):
        raise DataError(f"{file.path}:1: the first line is a row of data, not a header; add a line of columns: {known}")
    columns = ", ".join(printable(name, 30) for name in list(first.value)[:12]) or "none"
    raise DataError(f"{file.path}:{first.line}: unknown columns: {columns}; known: {known}")


def _reason(error: ValueError) -> str:
    """Why a row can't be used, in the words that are counted."""
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
    return f"{name} is not true or false" if kind.startswith("bool") else f"{name} is not text"


# Reports and readers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadReport:
    """Rows of a file, how many were dropped or look suspicious, by reason, and columns that were not read."""

    path: Path
    rows: int
    dropped: dict[str, int] = field(default_factory=dict)
    suspicious: dict[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def summary(self) -> str:
        """Describe the report in one line.

        >>> ReadReport(Path("a/x.jsonl"), 2, {"empty text_a": 1}).summary()
        'x.jsonl: 1 of 2 rows, dropped 1 (1 empty text_a)'
        """
        line, dropped = f"{self.rows} row{'s' * (self.rows != 1)}", sum(self.dropped.values())
        if dropped:
            line = f"{self.rows - dropped} of {line}, dropped {dropped} ({counts(self.dropped)})"
        line = f"{self.path.name}: {line}"
        return f"{line}; suspicious: {counts(self.suspicious)}" if self.suspicious else line

    def provenance(self) -> dict[str, Any]:
        """Return plain data for run.json."""
        digest = None if self.path.is_dir() else file_digest(self.path)
        return {"path": str(self.path), "sha256": digest, "rows": self.rows, "dropped": dict(self.dropped)}


@dataclass
class Stories(Sequence[Story]):
    """Stories of a file in its order, each with the id of its row."""

    table: StoryTable  # holds each different text once
    rows: list[int]  # (N) story indices
    report: ReadReport  # of the reader
    ids: list[str | None]  # (N) ids of the rows; None for the table's own
    lines: list[int]  # (N) line numbers of the rows
    values: list[Any]  # (N) raw values of the rows, with all columns

    def __getitem__(self, index: Any) -> Any:
        """Return a story with the id of its row."""
        story, id = self.table[self.rows[index]], self.ids[index]
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


def collect(
    file: RowFile, models: Sequence[Model], known: str, strict: bool, convert: Callable[[Any], Any] = lambda row: row
) -> tuple[list[tuple[Row, Any]], ReadReport]:
    """Validate and convert each row by the first model that a row fits; suspicious rows are counted, strict or not.

    Others, and rows of which `convert` raises a ValueError, are dropped and counted; `strict` refuses the first.
    """
    model = _model(file, models, known)
    columns = _columns(model)
    results: list[tuple[Row, Any]] = []
    dropped: Counter[str] = Counter()
    suspicious: Counter[str] = Counter()
    for row in file.rows:
        value = {"text": row.value} if isinstance(row.value, str) and model is StoryRow else row.value
        try:
            if not isinstance(value, Mapping):
                raise ValueError("row is not an object")  # noqa: TRY004, TRY301 (counted like the others)
            parsed = model.model_validate(value)
            results.append((row, convert(parsed)))
        except ValueError as error:
            if strict:
                raise DataError(f"{file.path}:{row.line}: {_reason(error)}; correct the row") from error
            dropped[_reason(error)] += 1
            continue
        for name, content in parsed:
            texts = [item.text for item in content] if isinstance(content, list) else [content]
            if any(isinstance(text, str) and _MOJIBAKE.search(text) for text in texts):
                suspicious[f"mojibake in {next((c for c in columns[name] if c in value), name)}"] += 1
    if not results:
        raise DataError(f"{file.path}: none of its {len(file.rows)} rows can be used ({counts(dropped)}); correct them")
    read = {column for names in columns.values() for column in names}
    first = file.rows[0].value if isinstance(file.rows[0].value, Mapping) else {}
    unread = tuple(name for name in first if name not in read and not _NUMBERED.fullmatch(name))
    return results, ReadReport(file.path, len(file.rows), dict(dropped), dict(suspicious), unread)


def _stories(
    path: str | Path, models: Sequence[Model], known: str, strict: bool, stories: StoryTable | None
) -> Stories:
    results, report = collect(read_rows(path), models, known, strict)
    table = StoryTable() if stories is None else stories
    found = [(row, text, getattr(parsed, "id", None)) for row, parsed in results for text in parsed.texts]
    indices, ids = [table.add(text, id=id) for _, text, id in found], [id for *_, id in found]
    return Stories(table, indices, report, ids, [row.line for row, *_ in found], [row.value for row, *_ in found])


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
    if text_column is None:
        return _stories(path, [StoryRow], STORIES_KNOWN, strict, stories)

    class NamedRow(StoryRow):
        text: Text = _named(str(text_column))

    return _stories(path, [NamedRow], text_column, strict, stories)


def read_any(path: str | Path, strict: bool = False, stories: StoryTable | None = None) -> Stories:
    """Read all stories of a file of triples, examples or stories, each with its row's line and value."""
    return _stories(path, ANY_MODEL, f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}", strict, stories)


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
    if labels is not None:
        file = with_labels(file, read_rows(labels))
    table = StoryTable() if stories is None else stories
    results, report = collect(file, [TripleRow], TRIPLES_KNOWN, strict)
    rows = [
        Triple(table.add(row.anchor), table.add(row.positive), table.add(row.other), row.text_a_is_closer)
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
    table = StoryTable() if stories is None else stories

    def example(row: ExampleRow) -> TrainingExample:
        texts, kinds = training_texts(row)
        anchor, positive, *negatives = map(table.add, texts)
        return TrainingExample(anchor, positive, tuple(negatives), tuple(kinds), row.group)

    results, report = collect(read_rows(path), [TripleRow, ExampleRow], EXAMPLES_KNOWN, strict, example)
    return TrainingExamples(table, [example for _, example in results], report)


def training_texts(row: ExampleRow) -> tuple[list[str], list[str | None]]:
    """Return the texts of a row's anchor, positive and negatives, and the kinds of the negatives.

    Raises:
        ValueError: if nothing can be learned from the row.
    """
    anchor, positive, *negatives = row.texts
    kinds = [negative.kind for negative in row.negatives]
    if isinstance(row, TripleRow):
        kinds = ["triple", *kinds]
        if row.text_a_is_closer is None:
            raise ValueError("no label")
        if not row.text_a_is_closer:
            positive, negatives[0] = negatives[0], positive
    if anchor == positive:
        raise ValueError("anchor is its positive")
    if anchor in negatives or positive in negatives:
        raise ValueError(f"{'anchor' if anchor in negatives else 'positive'} among its negatives")
    return [anchor, positive, *negatives], kinds


def with_labels(file: RowFile, labels: RowFile) -> RowFile:
    """Put the labels of a file, one for each row in the same order, into rows of triples.

    Raises:
        DataError: if the labels don't fit the rows.
    """
    if len(labels.rows) != len(file.rows):
        raise DataError(
            f"{labels.path} has {len(labels.rows)} labels but {file.path} has {len(file.rows)} rows; "
            "give one label for each row, in the same order"
        )
    label_type, rows = TypeAdapter(Label), []
    for row, label in zip(file.rows, labels.rows, strict=True):
        value, place = label.value, f"{labels.path}:{label.line}"
        texts = row.value if isinstance(row.value, Mapping) else {}
        if "similar_story" in texts:
            raise DataError(f"{file.path} names the similar story itself; leave out the file of labels")
        if isinstance(value, Mapping):
            if LABEL not in value:
                columns = ", ".join(printable(name, 30) for name in value)
                raise DataError(f'{place}: column "{LABEL}" is missing; found: {columns}; rename the column of labels')
            for name in ("anchor_text", "text_a", "text_b"):
                if name in value and value[name] != texts.get(name):
                    other = f"{file.path}:{row.line}"
                    raise DataError(f"{place}: {name} differs from {other}; put the labels in the order of the rows")
            value = value[LABEL]
        try:
            value = label_type.validate_python(value)
        except ValidationError as error:
            raise DataError(f"{place}: {LABEL} is not true or false; write true, false or null") from error
        rows.append(Row(row.line, {**texts, LABEL: value}))
    return RowFile(file.path, rows)


# Texts inside raw rows -----------------------------------------------------------------------------------------------

Texts = dict[str, str]
"""Texts by their place in a row: "text", "negatives/0/text"; "" for a row that is itself a text."""


def row_texts(file: RowFile) -> tuple[Literal["stories", "triples", "examples"], list[Texts]]:
    """Find what a file's rows are, and the texts of each that are not empty; a story's views belong to it."""
    model = _model(file, ANY_MODEL, f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}")
    kinds: dict[Model, Literal["stories", "triples", "examples"]] = {StoryRow: "stories", TripleRow: "triples"}
    known = _columns(ViewsRow if model is StoryRow else model)
    columns = [column for name, names in known.items() if name not in ("id", "group", LABEL) for column in names]

    def texts(value: Any) -> Texts:
        if not isinstance(value, Mapping):
            return _texts(value, "")
        numbered = [name for name in value if model is not StoryRow and _NUMBERED.fullmatch(name)]
        return {p: t for n in dict.fromkeys([*columns, *numbered]) for p, t in _texts(value.get(n), n).items()}

    return kinds.get(model, "examples"), [texts(row.value) for row in file.rows]


def _texts(value: Any, place: str) -> Texts:
    if isinstance(value, str):
        return {place: value} if value.strip() else {}
    if isinstance(value, Mapping):
        return _texts(value.get("text"), f"{place}/text")
    items = enumerate(value) if isinstance(value, list) else ()
    return {name: text for i, item in items for name, text in _texts(item, f"{place}/{i}").items()}


def with_texts(value: Any, texts: Texts, place: str = "") -> Any:
    """Copy a raw row with other texts in their places.

    >>> with_texts({"id": 1, "negatives": [{"text": "a", "kind": "theme"}]}, {"negatives/0/text": "b"})
    {'id': 1, 'negatives': [{'text': 'b', 'kind': 'theme'}]}
    """
    if isinstance(value, str):
        return texts.get(place, value)
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    new = {key: with_texts(item, texts, f"{place}/{key}" if place else str(key)) for key, item in items}
    return new if isinstance(value, Mapping) else list(new.values()) if isinstance(value, list) else value
