"""narrlit views: check a file of stories' views."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Literal

from narrlit.data.reading import counts
from narrlit.errors import printable

SHOWN = 5
"""Stories without views that are listed."""


def views(action: Literal["check"], file: str, stories: str, *, json: bool = False) -> int:
    """Check that a file of views covers the stories that need them; the exit code is 1 where it does not.

    Args:
        action: check counts the views, and lists what is missing or suspicious.
        file: rows of text, theme, plot_events (or course_of_action) and outcome; or several files with commas between.
        stories: a file of stories, triples or training examples.
        json: print one JSON object, and nothing else, to stdout.
    """
    result = {"views": file, "stories": stories, **_checked(file, stories)}
    print(json_format.dumps(result) if json else _report(result))
    return int(bool(result["without_views"]))


def _checked(file: str, stories: str) -> dict[str, Any]:
    """Collect coverage, conflicts and suspicious views, as plain data."""
    from narrlit.data.readers import read_texts
    from narrlit.data.view_rows import suspicions
    from narrlit.data.views import ViewBook, ViewFiles, listed, read_views
    from narrlit.text.joined import VIEWS

    readings, needed = [read_views(path) for path in listed(file)], read_texts(stories)
    viewed = [story for reading in readings for story in reading.records]
    lines = [row.line for row in needed.records for _ in row.texts]
    texts = [text for row in needed.records for text in row.texts]
    coverage = ViewBook(ViewFiles(listed(file))).coverage(texts)
    lengths = {"story": [story.text for story in viewed]}
    lengths |= {view: [story.views.texts[place] for story in viewed] for place, view in enumerate(VIEWS)}
    return {
        "read": {"views": "; ".join(reading.summary() for reading in readings), "stories": needed.summary()},
        "different_stories": coverage.stories,
        "with_views": coverage.viewed,
        "without_views": len(coverage.missing),
        "first_without_views": [_place(lines[place], texts[place]) for place in coverage.missing[:SHOWN]],
        "views_without_a_story": coverage.spare,
        "conflicts": coverage.conflicts,
        "suspicious": suspicions(viewed),
        "mean_words": {name: _mean_words(written) for name, written in lengths.items()},
    }


def _place(line: int, text: str) -> dict[str, Any]:
    return {"line": line, "beginning": printable(text[:60])}


def _mean_words(texts: Sequence[str]) -> float:
    return round(mean(len(text.split()) for text in texts), 1)


def _report(result: dict[str, Any]) -> str:
    """Format the result for a person."""
    different, viewed, bare = (result[name] for name in ("different_stories", "with_views", "without_views"))
    share = f"{viewed / different:.1%}".replace("%", " %")
    lines = [result["read"]["views"], result["read"]["stories"]]
    lines.append(f"different stories: {different}, with views {viewed} ({share}), without {bare}")
    lines += [
        f"  without views: {Path(result['stories']).name}:{story['line']}, '{story['beginning']}'"
        for story in result["first_without_views"]
    ]
    if bare > SHOWN:
        lines.append(f"  and {bare - SHOWN} more")
    lines.append(f"views without a story: {result['views_without_a_story']}")
    lines.append(f"conflicts: {result['conflicts']} rows with other views of a story than an earlier row")
    lines.append(f"suspicious: {counts(result['suspicious']) or 'nothing'}")
    words = ", ".join(f"{name} {number:g}" for name, number in result["mean_words"].items())
    return "\n".join([*lines, f"words on average: {words}"])
