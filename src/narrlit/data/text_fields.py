"""The texts in raw rows, by the field they stand in: taken out, and put in again changed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from narrlit.data.fields import text_fault
from narrlit.data.layouts import (
    EXAMPLES_KNOWN,
    STORY_COLUMNS,
    Anchored,
    example_layout,
    is_numbered_negative,
    triple_layout,
)
from narrlit.data.rows import RawFile
from narrlit.errors import DataError

Texts = dict[str, str]
"""Texts by the place of their field in a row: "text", "negatives/0/text"; "" for a row that is a text itself."""

_VIEWS = ("theme", "plot_events", "course_of_action", "plot", "outcome")


@dataclass(frozen=True, slots=True)
class TextFields:
    """Where a file's rows hold texts.

    Attributes:
        kind: what a row is.
        fields: the fields of its texts, those of negatives not among them.
    """

    kind: Literal["stories", "triples", "examples"]
    fields: tuple[str, ...]

    def of(self, row: object) -> Texts:
        """The texts of a row, in order; a field that holds none that can be used is left out."""
        if isinstance(row, str):
            return {} if text_fault(row, "text") else {"": row}
        if not isinstance(row, Mapping):
            return {}
        names = [*self.fields, *(_VIEWS if self.kind == "stories" else ())]
        if self.kind != "stories":
            names += ["negatives", *(name for name in row if is_numbered_negative(name))]
        found: Texts = {}
        for name in names:
            found |= _texts_in(row.get(name), name)
        return found


def text_fields(raw: RawFile) -> TextFields:
    """Where the rows of a file of stories, triples or training examples hold texts; views stand beside their story.

    Raises:
        DataError: if the file is none of these.
    """
    found = raw.first_fit(_fields)
    if found is not None:
        return found
    if any(isinstance(row.value, str) for row in raw.rows):
        return TextFields("stories", ())
    first = raw.rows[0].value
    held = ",".join(map(str, first)) if isinstance(first, Mapping) else f"a JSON {type(first).__name__}"
    raise DataError(
        f"{raw.path}: no field of texts, its first row has {held or 'none'}; known: text or story or {EXAMPLES_KNOWN}"
    )


def with_texts(row: Any, texts: Texts) -> Any:
    """A copy of the row with these texts in their places, all else as it was.

    >>> with_texts({"id": 1, "negatives": [{"text": "a", "kind": "theme"}]}, {"negatives/0/text": "b"})
    {'id': 1, 'negatives': [{'text': 'b', 'kind': 'theme'}]}
    """
    return _changed(row, "", texts)


def _fields(columns: Collection[str]) -> TextFields | None:
    triple = triple_layout(columns)
    if triple is not None:
        return TextFields("triples", (triple.anchor, triple.a, triple.b))
    example = example_layout(columns)
    if isinstance(example, Anchored):
        return TextFields("examples", (example.anchor, example.positive))
    return TextFields("stories", STORY_COLUMNS) if any(name in columns for name in STORY_COLUMNS) else None


def _texts_in(value: object, place: str) -> Texts:
    """The texts of a field: its own, those of a list, or that of an object with a text."""
    if isinstance(value, str):
        return {} if text_fault(value, place) else {place: value}
    if isinstance(value, Mapping):
        return _texts_in(value.get("text"), f"{place}/text") if isinstance(value.get("text"), str) else {}
    found: Texts = {}
    for number, item in enumerate(value if isinstance(value, list) else ()):
        found |= _texts_in(item, f"{place}/{number}")
    return found


def _changed(value: Any, place: str, texts: Texts) -> Any:
    inside: Callable[[object], str] = lambda name: f"{place}/{name}" if place else str(name)  # noqa: E731
    if isinstance(value, str):
        return texts.get(place, value)
    if isinstance(value, Mapping):
        return {name: _changed(item, inside(name), texts) for name, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, inside(number), texts) for number, item in enumerate(value)]
    return value
