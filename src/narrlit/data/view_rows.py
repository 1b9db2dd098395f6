"""Rows of files of views: a story with its theme, course of action and outcome, and views cut by position instead."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrlit.data.fields import RowError, mapping_of, text_fault, text_of
from narrlit.data.layouts import STORY_COLUMNS
from narrlit.data.leakage import normal_text
from narrlit.data.reading import Parsed, Reading, collect
from narrlit.data.rows import read_raw
from narrlit.errors import DataError
from narrlit.preprocessing.segments import positional_segments as positional_slices
from narrlit.preprocessing.sentences import split_sentences as sentences
from narrlit.text.joined import VIEWS, Views, join

_PLOTS = ("plot_events", "course_of_action", "plot")
VIEWS_KNOWN = "text,theme,plot_events,outcome; story stands for text, and course_of_action or plot for plot_events"


@dataclass(frozen=True, slots=True)
class ViewedStory:
    """A story's text and its views."""

    text: str
    views: Views


def read_views(path: str | Path, strict: bool = False) -> Reading[ViewedStory]:
    r"""Read stories with their views from JSON Lines, CSV or TSV.

    The course of action is a text, or a list of events, which are joined by "\n". Of plot_events,
    course_of_action and plot the first that holds something is read.

    Args:
        path: the file; its suffix says how it is read.
        strict: refuse the first row that would be dropped.

    Raises:
        DataError: if the file can't be read or understood, no row can be used, or strict refuses one.
    """
    raw = read_raw(path)
    if raw.first_fit(_has_views) is None:
        first = raw.rows[0].value
        found = ",".join(first) or "no fields" if isinstance(first, Mapping) else "no fields at all"
        raise DataError(f"{raw.path}: no views, its first row has {found}; known: {VIEWS_KNOWN}")
    return collect(raw, _viewed_story, strict=strict)


def positional_views(text: str) -> Views:
    """Views of a story that has none: its first quarter of sentences, the middle half, the last quarter.

    Raises:
        ValueError: if the text is white space alone.

    >>> positional_views("A king fell ill. His sons rode out. They met a fox. All came home.").outcome
    'All came home.'
    """
    return Views(*positional_slices(sentences(text)))


def suspicions(stories: Sequence[ViewedStory]) -> dict[str, int]:
    """What looks wrong with views, and in how many rows: reasons to look at them, none to refuse them.

    >>> suspicions([ViewedStory("A king fell ill.", Views("Kings", "He fell ill.", "A king  fell ill."))])
    {'plot of fewer than 2 events': 1, 'outcome equal to the story': 1}
    """
    told_of: dict[tuple[str, str], set[str]] = {}
    for story in stories:
        for name, view in zip(VIEWS, story.views.texts, strict=True):
            told_of.setdefault((name, normal_text(view)), set()).add(normal_text(story.text))
    found: Counter[str] = Counter()
    for story in stories:
        if _events(story.views.plot) < 2:
            found["plot of fewer than 2 events"] += 1
        for name, view in zip(VIEWS, story.views.texts, strict=True):
            if normal_text(view) == normal_text(story.text):
                found[f"{name} equal to the story"] += 1
            elif len(view) > len(story.text):
                found[f"{name} longer than the story"] += 1
            if len(told_of[name, normal_text(view)]) > 1:
                found[f"{name} shared with another story"] += 1
    return dict(found)


def _has_views(columns: Collection[str]) -> bool | None:
    """Whether a row's keys are those of a story with views; None if not."""
    one_of = (STORY_COLUMNS, ("theme",), _PLOTS, ("outcome",))
    return True if all(any(name in columns for name in names) for names in one_of) else None


def _viewed_story(value: object) -> Parsed[ViewedStory]:
    row = mapping_of(value)
    text = text_of(row, _first(row, STORY_COLUMNS))
    views = Views(text_of(row, "theme"), _plot_of(row, _first(row, _PLOTS)), text_of(row, "outcome"))
    try:
        join(text, views)
    except ValueError as fault:
        raise RowError("text with a line that marks views") from fault
    return ViewedStory(text, views), {"text": text, **dict(zip(VIEWS, views.texts, strict=True))}


def _first(row: Mapping[str, object], names: Sequence[str]) -> str:
    """The first of these fields that holds something; else the first that the row has, or should have."""
    there = [name for name in names if name in row]
    return next((name for name in there if _holds(row[name])), there[0] if there else names[0])


def _holds(value: object) -> bool:
    """Whether a field is more than null, an empty text, or a list of such."""
    if isinstance(value, list):
        return any(map(_holds, value))
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _plot_of(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, list):
        return text_of(row, name)
    if not value:
        raise RowError(f"empty {name}")
    return "\n".join(_texts(value, f"event in {name}"))


def _texts(values: list[object], name: str) -> Iterator[str]:
    for value in values:
        reason = text_fault(value, name)
        if reason is not None or not isinstance(value, str):
            raise RowError(reason)
        yield value


def _events(plot: str) -> int:
    """Events of a course of action: its lines or, where it is prose, its sentences."""
    return max(sum(bool(line.strip()) for line in plot.splitlines()), len(sentences(plot)))
