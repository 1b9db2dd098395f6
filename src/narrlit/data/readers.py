"""Files of stories, triples and training examples, read into records; rows that can't be used are counted.

Nothing is repaired on the way: what a file holds is what a record holds, or the row is dropped, or named as suspicious.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from narrlit.data.fields import RowError, id_of, label_of, text_fault, text_of
from narrlit.data.layouts import (
    EXAMPLES_KNOWN,
    LABEL,
    STORY_COLUMNS,
    TRIPLES_KNOWN,
    ExampleLayout,
    TripleLayout,
    example_layout,
    triple_layout,
)
from narrlit.data.reading import Parsed, Reading, collect
from narrlit.data.records import Example, Story, Triple
from narrlit.data.rows import RawFile, RawRow, file_digest, read_raw
from narrlit.errors import DataError

__all__ = ["Reading", "StoryRow", "file_digest", "read_examples", "read_stories", "read_texts", "read_triples"]

_STORIES_KNOWN = "text[,id] or story[,id] or, in JSON Lines, bare strings"


@dataclass(frozen=True, slots=True)
class StoryRow:
    """The texts of one row of any file of stories, and the line that it starts on."""

    line: int
    texts: tuple[str, ...]


def read_stories(path: str | Path, strict: bool = False) -> Reading[Story]:
    """Read stories from JSON Lines (objects or bare strings), CSV, TSV, or text with a story a line.

    Args:
        path: the file; its suffix says how it is read.
        strict: refuse the first row that would be dropped.

    Raises:
        DataError: if the file can't be read or understood, no row can be used, or strict refuses one.
    """
    raw = read_raw(path)
    column = raw.first_fit(_story_column)
    if column is None and not any(isinstance(row.value, str) for row in raw.rows):
        raise _no_layout(raw, _STORIES_KNOWN)
    return collect(raw, lambda value: _story(value, column or STORY_COLUMNS[0]), strict=strict)


def read_triples(path: str | Path, labels: str | Path | None = None, strict: bool = False) -> Reading[Triple]:
    """Read triples from JSON Lines, CSV or TSV, with their labels where there are any.

    Args:
        path: the file of triples; anchor_text,text_a,text_b[,text_a_is_closer], or
            anchor_story,similar_story,dissimilar_story, of which the similar story is A and the closer.
        labels: a file with one text_a_is_closer for each row of `path`, in its order; takes the place of labels there.
        strict: refuse the first row that would be dropped.

    Raises:
        DataError: if a file can't be read or understood, the labels don't fit, no row can be used, or strict refuses
            one.
    """
    raw = read_raw(path)
    layout = raw.first_fit(triple_layout)
    if layout is None:
        raise _no_layout(raw, TRIPLES_KNOWN)
    if labels is not None:
        raw = _with_labels(raw, layout, labels)
    return collect(raw, layout.parse, strict=strict)


def read_examples(path: str | Path, strict: bool = False) -> Reading[Example]:
    """Read training examples from JSON Lines, CSV or TSV.

    Args:
        path: labelled triples as `read_triples` reads them, or rows of anchor, positive and negatives: a list of texts
            or of objects with text and kind (or dimension), or numbered fields such as neg_theme_1, any of them empty.
        strict: refuse the first row that would be dropped.

    Raises:
        DataError: if the file can't be read or understood, no row can be used, or strict refuses one.
    """
    raw = read_raw(path)
    layout = raw.first_fit(example_layout)
    if layout is None:
        raise _no_layout(raw, EXAMPLES_KNOWN)
    return collect(raw, layout.parse, strict=strict)


def read_texts(path: str | Path, strict: bool = False) -> Reading[StoryRow]:
    """Read the texts of a file of triples, training examples or stories, whichever it is; labels don't matter.

    Args:
        path: the file, as `read_triples`, `read_examples` or `read_stories` reads it.
        strict: refuse the first row that would be dropped.

    Raises:
        DataError: if the file can't be read or understood, no row can be used, or strict refuses one.
    """
    raw = read_raw(path)
    triples, examples = raw.first_fit(triple_layout), raw.first_fit(example_layout)
    column = raw.first_fit(_story_column)
    bare = any(isinstance(row.value, str) for row in raw.rows)
    if examples is None and column is None and not bare:
        raise _no_layout(raw, f"{EXAMPLES_KNOWN} or {_STORIES_KNOWN}")

    lines = iter([row.line for row in raw.rows])  # each row is parsed once, in their order

    def parse(value: object) -> Parsed[StoryRow]:
        line = next(lines)
        texts, named = _row_texts(value, triples, examples, column or STORY_COLUMNS[0])
        return StoryRow(line, texts), named

    return collect(raw, parse, strict=strict)


def _row_texts(
    value: object, triples: TripleLayout | None, examples: ExampleLayout | None, column: str
) -> Parsed[tuple[str, ...]]:
    if examples is None:
        story, named = _story(value, column)
        return (story.text,), named
    try:
        example, named = examples.parse(value)
    except RowError:
        if triples is None:
            raise
        triple, named = triples.parse(value)  # which may lack what an example needs, such as a label
        return triple.texts, named
    return example.texts, named


def _story(value: object, name: str) -> Parsed[Story]:
    if isinstance(value, Mapping):
        text = text_of(value, name)
        return Story(text, id_of(value)), {name: text}
    reason = text_fault(value, name)
    if reason is not None or not isinstance(value, str):
        raise RowError(reason)
    return Story(value), {name: value}


def _story_column(columns: Collection[str]) -> str | None:
    return next((name for name in STORY_COLUMNS if name in columns), None)


def _no_layout(raw: RawFile, known: str) -> DataError:
    first = raw.rows[0]
    if isinstance(first.value, Mapping):
        found = ",".join(first.value) or "no fields"
        return DataError(f"{raw.path}: unknown layout, its first row has {found}; known: {known}")
    kind = "a line of text" if isinstance(first.value, str) else f"a JSON {type(first.value).__name__}"
    return DataError(f"{raw.at(first.line)}: unknown layout, {kind} where a row of fields is due; known: {known}")


def _with_labels(raw: RawFile, layout: TripleLayout, labels: str | Path) -> RawFile:
    if layout.label is None:
        raise DataError(f"{raw.path} says itself which story is the similar one; leave the file of labels out")
    given = read_raw(labels)
    if len(given.rows) != len(raw.rows):
        raise DataError(
            f"{given.path} has {len(given.rows)} labels but {raw.path} has {len(raw.rows)} rows; "
            "give one label for each row, in the same order"
        )
    rows = []
    for row, label_row in zip(raw.rows, given.rows, strict=True):
        label = _label_in(given, label_row)
        if not isinstance(row.value, Mapping):  # dropped and counted later, as it is without labels
            rows.append(row)
            continue
        _check_same_texts(raw, row, given, label_row)
        rows.append(RawRow(row.line, {**row.value, layout.label: label}))
    return RawFile(raw.path, rows)


def _label_in(given: RawFile, row: RawRow) -> bool | None:
    value = row.value
    if isinstance(value, Mapping):
        if LABEL not in value:
            raise DataError(f"{given.at(row.line)}: no {LABEL}; give one label a row, or null where there is none")
        value = value[LABEL]
    try:
        return label_of(value, LABEL)
    except RowError as fault:
        raise DataError(f"{given.at(row.line)}: {fault}; write true, false or null") from fault


def _check_same_texts(raw: RawFile, row: RawRow, given: RawFile, label_row: RawRow) -> None:
    """Where the labels' file repeats the stories they must agree, or each label would go to another triple."""
    if not isinstance(row.value, Mapping) or not isinstance(label_row.value, Mapping):
        return
    for name in ("anchor_text", "text_a", "text_b"):
        if name in label_row.value and label_row.value[name] != row.value.get(name):
            raise DataError(
                f"{given.at(label_row.line)}: its {name} is not the one at {raw.at(row.line)}; "
                "put the labels in the order of the stories"
            )
