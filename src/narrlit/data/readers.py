"""Files of stories, triples and training examples: pydantic models of their rows, and readers that report.

Nothing is repaired: a row is read unchanged, or dropped and counted; suspicious rows are read and counted.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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

from narrlit.console import counted, say
from narrlit.data.rows import DELIMITERS, STANDARD_INPUT, TEXT_COLUMNS, Layout, Row, RowFile, file_digest, read_rows
from narrlit.data.schema import ASPECTS, KINDS, Story, StoryTable, TrainingExample, TrainingExamples, Triple, Triples
from narrlit.errors import DataError, OptionError, printable

LABEL = "text_a_is_closer"
ACTION_COLUMNS = ("plot_events", "course_of_action", "plot", "action")

STORIES_KNOWN = f"{', '.join(TEXT_COLUMNS[:-1])} or {TEXT_COLUMNS[-1]} (`layout.text` names another)"
TRIPLES_KNOWN = "anchor_text,text_a,text_b[,text_a_is_closer] or anchor_story,similar_story,dissimilar_story"
EXAMPLES_KNOWN = f"{TRIPLES_KNOWN} or anchor,positive[,negatives] or anchor,positive,neg_theme_1,neg_action_1,..."

# UTF-8 decoded as Latin-1 or Windows-1252, and a decoder's replacement. After the capital A with tilde, quotes and
# dashes are left out: they follow the letter in sound Portuguese text.
_MOJIBAKE = re.compile("\ufffd|[\x80-\x84\x86-\x9f]|â[€\x80]|Ã[\x80-\xbf€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ]|Â[\xa0-\xbf]|ðŸ|ï(?:»¿|¿½)")
_NUMBERED = re.compile(r"neg(?:ative)?(?:_([a-z]+))?(?:_(\d+))?")


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


@lru_cache(maxsize=8)
def _columns(model: Model) -> dict[str, list[str]]:
    """Columns that may hold each field of a model."""
    aliases = {name: info.validation_alias for name, info in model.model_fields.items()}
    return {n: list(map(str, a.choices)) if isinstance(a, AliasChoices) else [n] for n, a in aliases.items()}


@lru_cache(maxsize=8)
def _needed(model: Model) -> list[list[str]]:
    return [names for name, names in _columns(model).items() if model.model_fields[name].is_required()]


def _fits(model: Model, value: object) -> bool:
    needed = _needed(model)
    if not isinstance(value, Mapping):
        return len(needed) == 1 and isinstance(value, str)
    return all(any(name in value for name in names) for names in needed)


def _story_columns(file: RowFile, layout: Layout) -> dict[str, str]:
    """Find the columns of text, id and title, those that a file has, by the layout or their usual names.

    Raises:
        DataError: if a column of the layout is missing, or two columns could be the text.
    """
    columns = dict.fromkeys(str(name) for row in file.rows if isinstance(row.value, Mapping) for name in row.value)
    chosen = {}
    for role, wanted in (("text", layout.text), ("id", layout.id), ("title", layout.title)):
        usual = TEXT_COLUMNS if role == "text" else (role,)
        matches = [c for name in usual for c in columns if c.strip().casefold() == name]
        if wanted is not None and wanted not in columns:
            names = ", ".join(printable(name, 30) for name in [*columns][:12]) or "no columns"
            raise DataError(
                f'{file.path}: column "{wanted}" is missing; found: {names}; give `layout.{role}` one of these'
            )
        if wanted is None and len(matches) > 1 and matches[0].casefold() not in ("text", "story"):
            options = " or ".join(f"`layout.text={name}`" for name in matches)
            raise DataError(f"{file.path}: {' and '.join(matches)} could each be the text; give {options}")
        if wanted is not None or matches:
            chosen[role] = wanted if wanted is not None else matches[0]
    return chosen


def models_of(file: RowFile, layout: Layout = Layout(), examples: bool = True) -> tuple[Model, ...]:
    """Return the models that rows of a file may have: of triples and `examples`, or of stories with their columns."""
    models: tuple[Model, ...] = (TripleRow, ExampleRow)
    if examples and any(_fits(model, row.value) for row in file.rows for model in models):
        return models
    found = _story_columns(file, layout)
    texts = ("text", "story") if found.get("text", "text") in ("text", "story") else (found["text"],)

    class NamedRow(StoryRow):
        """A row of a file of stories with columns of other names."""

        columns: ClassVar[dict[str, str]] = found
        text: Text = _named(*texts)
        id: Name = Field(None, validation_alias=AliasChoices(found.get("id", "id")))

    return (NamedRow,)


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
    """Describe why a row can't be used, as reports count it."""
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
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """Describe the report in one line, with notes on how the file was read.

        >>> ReadReport(Path("a/x.jsonl"), 2, {"empty text_a": 1}).summary()
        'x.jsonl: 1 of 2 rows, dropped 1 (1 empty text_a)'
        """
        line, dropped = f"{self.rows} row{'s' * (self.rows != 1)}", sum(self.dropped.values())
        if dropped:
            line = f"{self.rows - dropped} of {line}, dropped {dropped} ({counts(self.dropped)})"
        suspicious = [f"suspicious: {counts(self.suspicious)}"] if self.suspicious else []
        name = "standard input" if self.path in STANDARD_INPUT else self.path.name
        return "; ".join([f"{name}: {line}", *self.notes, *suspicious])

    def provenance(self) -> dict[str, Any]:
        """Return plain data for run.json."""
        return {
            "path": str(self.path),
            "sha256": file_digest(self.path),
            "rows": self.rows,
            "dropped": dict(self.dropped),
        }


@dataclass
class Stories(Sequence[Story]):
    """Stories of a file in its order, each with the id of its row."""

    table: StoryTable  # holds each different text once
    rows: list[int]  # (N) story indices
    report: ReadReport  # of the reader
    ids: list[str | None]  # (N) ids of the rows; None for the table's own
    lines: list[int]  # (N) line numbers of the rows
    values: list[Any]  # (N) raw values of the rows, with all columns
    columns: Mapping[str, str] = field(default_factory=dict)  # columns of text, id and title, those that there are

    def __getitem__(self, index: Any) -> Any:
        """Return a story with the id of its row."""
        story, id = self.table[self.rows[index]], self.ids[index]
        return story if id is None else Story(id, story.text, story.views, story.original)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def story_ids(self) -> list[str]:
        """The rows' ids (N), or their numbers from 1 where they have none.

        Raises:
            DataError: if two are equal.
        """
        ids = [id or str(number) for number, id in enumerate(self.ids, start=1)]
        first: dict[str, int] = {}
        for row, id in enumerate(ids):
            if first.setdefault(id, row) != row:
                rows = f"rows {self.lines[first[id]]} and {self.lines[row]}"
                raise DataError(
                    f"{self.report.path}: {rows} have the id {printable(id, 60)}; rename one, or give `layout.id`"
                )
        return ids

    @property
    def titles(self) -> list[str | None]:
        """The rows' titles (N), None for those without."""
        name = self.columns.get("title")
        return [str(row[name]) if isinstance(row, Mapping) and row.get(name) else None for row in self.values]

    @property
    def metadata(self) -> list[dict[str, Any]]:
        """All other columns of the rows (N), in order."""
        own = set(self.columns.values())
        return [
            {k: v for k, v in row.items() if k not in own} if isinstance(row, Mapping) else {} for row in self.values
        ]


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
        value = {columns["text"][0]: row.value} if isinstance(row.value, str) and _fits(model, row.value) else row.value
        try:
            if not isinstance(value, Mapping):
                raise ValueError("row is not an object")  # noqa: TRY004, TRY301 (counted like the others)
            parsed = model.model_validate(value)
            results.append((row, convert(parsed)))
        except ValueError as error:
            if strict:
                raise DataError(f"{file.place(row)}: {_reason(error)}; correct the row") from error
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
    return results, ReadReport(file.path, len(file.rows), dict(dropped), dict(suspicious), unread, file.notes)


def parse_stories(
    file: RowFile, strict: bool, stories: StoryTable | None = None, layout: Layout = Layout(), examples: bool = False
) -> Stories:
    """Read the stories of rows, as `read_stories` does; with `examples` those of triples and examples, too."""
    models = models_of(file, layout, examples)
    known = f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}" if examples else STORIES_KNOWN
    results, report = collect(file, models, known, strict)
    table = StoryTable() if stories is None else stories
    found = [(row, text, getattr(parsed, "id", None)) for row, parsed in results for text in parsed.texts]
    indices, ids = [table.add(text, id=id) for _, text, id in found], [id for *_, id in found]
    lines, values = [row.line for row, *_ in found], [row.value for row, *_ in found]
    return Stories(table, indices, report, ids, lines, values, getattr(models[0], "columns", {}))


def read_stories(
    path: str | Path, strict: bool = False, stories: StoryTable | None = None, layout: Layout = Layout()
) -> Stories:
    """Read stories from a file or folder, or from standard input (`-`).

    Args:
        path: a folder with a story a file (.txt, .md, .docx, .epub, .pdf) and perhaps a table with a column file_name;
            a table (.csv with any delimiter, .tsv, .xlsx, .parquet), JSON Lines of objects or strings, a JSON array,
            or a text file or document, which is one story.
        strict: refuse the first row that would be dropped.
        stories: a table to add to; None: a new one.
        layout: columns, and how a text file is divided.

    Raises:
        DataError: if the file can't be read, has no text column or several, no row can be used, or strict refuses one.
        OptionError: if the layout does not fit the file.
    """
    return parse_stories(read_rows(path, layout), strict, stories, layout)


def read_any(
    path: str | Path, strict: bool = False, stories: StoryTable | None = None, layout: Layout = Layout()
) -> Stories:
    """Read all stories of a file of triples, examples or stories, each with its row's line and value."""
    return parse_stories(read_rows(path, layout), strict, stories, layout, examples=True)


def read_triples(
    path: str | Path, labels: str | Path | None = None, strict: bool = False, stories: StoryTable | None = None
) -> Triples:
    """Read triples from JSON Lines, CSV or TSV, with their labels where there are any.

    Args:
        path: file of anchor_text, text_a, text_b and perhaps text_a_is_closer; or of anchor_story, similar_story and
            dissimilar_story, where the similar story is A and closer.
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


def read_labeled_triples(
    triples: str | Path | Triples, labels: str | Path | None = None, *, strict: bool = False, progress: bool = False
) -> Triples:
    """Read triples that all have a label, or check that given ones do.

    Args:
        triples: a file, as `read_triples` reads it, or triples.
        labels: a file of labels, for a file of triples without them.
        strict: refuse the first row that would be dropped.
        progress: print on stderr how many rows were read.

    Raises:
        DataError: as `read_triples` does.
        OptionError: if a triple has no label.
    """
    if isinstance(triples, Triples):
        if labels is not None:
            raise OptionError("`labels` belong to a file of triples; give them to read_triples instead")
        name, result = "the triples", triples
    else:
        name, result = str(triples), read_triples(triples, labels=labels, strict=strict)
    unlabeled = int((result.labels < 0).sum())
    if unlabeled:
        rows = f"{counted(unlabeled, 'row')} without a label"
        if labels is not None:
            raise OptionError(f"{labels} has {rows}: write true or false in each")
        raise OptionError(f"{name} has {rows}: give `labels`, a file of them")
    if progress:
        say_rows(result)
    return result


def say_rows(rows: Triples | TrainingExamples) -> None:
    """Print how many rows of a file were read, dropped or look suspicious."""
    if rows.report is not None:
        say(rows.report.summary())


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

    def add_to_table(row: ExampleRow) -> TrainingExample:
        texts, kinds = training_texts(row)
        anchor, positive, *negatives = map(table.add, texts)
        return TrainingExample(anchor, positive, tuple(negatives), tuple(kinds), row.group)

    results, report = collect(read_rows(path), [TripleRow, ExampleRow], EXAMPLES_KNOWN, strict, add_to_table)
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
    return RowFile(file.path, rows, file.notes)


# Texts inside raw rows -----------------------------------------------------------------------------------------------

Texts = dict[str, str]
"""Texts by their place in a row: "text", "negatives/0/text"; "" for a row that is itself a text."""


def row_texts(
    file: RowFile, layout: Layout = Layout()
) -> tuple[Literal["stories", "triples", "examples"], list[Texts]]:
    """Find the kind of a file's rows, and the texts of each that are not empty; views belong to their story."""
    model = _model(file, models_of(file, layout), f"{EXAMPLES_KNOWN} or {STORIES_KNOWN}")
    story = issubclass(model, StoryRow)
    known = _columns(model) | ({k: v for k, v in _columns(ViewsRow).items() if k in ASPECTS} if story else {})
    columns = [column for name, names in known.items() if name not in ("id", "group", LABEL) for column in names]

    def texts(value: Any) -> Texts:
        """Collect the texts of a row by their places."""
        if not isinstance(value, Mapping):
            return _texts(value, "")
        numbered = [name for name in value if not story and _NUMBERED.fullmatch(name)]
        return {p: t for n in dict.fromkeys([*columns, *numbered]) for p, t in _texts(value.get(n), n).items()}

    return "stories" if story else "triples" if model is TripleRow else "examples", [
        texts(row.value) for row in file.rows
    ]


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
