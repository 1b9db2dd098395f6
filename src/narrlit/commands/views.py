"""narrlit views: check a file of stories' views."""

import json as json_format
from pathlib import Path
from statistics import mean
from typing import Any, Literal

from narrlit.data.readers import Stories, counts, read_any
from narrlit.data.schema import ASPECTS
from narrlit.data.views import StoryViews, ViewFiles, read_views, suspicious_views
from narrlit.errors import printable
from narrlit.options import InputOptions

SHOWN = 5
"""Stories without views that are listed."""


def views(action: Literal["check"], file: str, stories: str, *, inputs: InputOptions, json: bool = False) -> int:
    """Check that a file of views covers the stories that need them; the exit code is 1 where it does not.

    Args:
        action: check counts the views, and lists what is missing or suspicious.
        file: rows of text, theme, plot_events (or course_of_action) and outcome; or several files with commas between.
        stories: a file of stories, triples or training examples.
        inputs: how the file of stories is read.
        json: print one JSON object, and nothing else, to stdout.
    """
    result = {"views": file, "stories": stories, **_checked(file, read_any(stories, layout=inputs.layout))}
    print(json_format.dumps(result) if json else _report(result))
    return int(bool(result["without_views"]))


def _checked(file: str, needed: Stories) -> dict[str, Any]:
    """Collect coverage, conflicts and suspicious views, as plain data."""
    files = ViewFiles.parse(file)
    known = [read_views(path) for path in files.paths]
    viewed = [story for each in known for story in each]
    lines = dict(zip(reversed(needed.rows), reversed(needed.lines), strict=True))  # the first line of each story
    coverage = StoryViews(files).coverage(needed.table)
    missing = [{"line": lines[i], "beginning": printable(needed.table[i].text[:60])} for i in coverage.missing[:SHOWN]]
    texts = [(story.text, *(story.views.texts if story.views else ())) for story in viewed]
    words = {
        name: round(mean(len(text.split()) for text in column), 1)
        for name, column in zip(("story", *ASPECTS), zip(*texts, strict=True), strict=True)
    }
    return {
        "read": {"views": "; ".join(each.report.summary() for each in known), "stories": needed.report.summary()},
        "different_stories": coverage.stories,
        "with_views": coverage.viewed,
        "without_views": len(coverage.missing),
        "first_without_views": missing,
        "views_without_a_story": coverage.spare,
        "conflicts": coverage.conflicts,
        "suspicious": suspicious_views(viewed),
        "mean_words": words,
    }


def _report(result: dict[str, Any]) -> str:
    """Format the result for a person."""
    different, viewed, bare = (result[name] for name in ("different_stories", "with_views", "without_views"))
    share = f"{viewed / different:.1%}".replace("%", " %")
    name = Path(result["stories"]).name
    listed = [f"  without views: {name}:{s['line']}, '{s['beginning']}'" for s in result["first_without_views"]]
    words = ", ".join(f"{name} {number:g}" for name, number in result["mean_words"].items())
    return "\n".join(
        [
            result["read"]["views"],
            result["read"]["stories"],
            f"different stories: {different}, with views {viewed} ({share}), without {bare}",
            *listed,
            *([f"  and {bare - SHOWN} more"] if bare > SHOWN else []),
            f"views without a story: {result['views_without_a_story']}",
            f"conflicts: {result['conflicts']} rows with other views of a story than an earlier row",
            f"suspicious: {counts(result['suspicious']) or 'nothing'}",
            f"words on average: {words}",
        ]
    )
