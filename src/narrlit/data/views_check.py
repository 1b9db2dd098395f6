"""Check of views in files: stories without views, and views that look wrong (`narrlit.check_views`)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pandas as pd

from narrlit.console import counted
from narrlit.data.readers import Stories, counts, read_any
from narrlit.data.rows import Layout
from narrlit.data.schema import Story
from narrlit.data.views import StoryViews, ViewCoverage, ViewFiles, read_views, suspicious_views
from narrlit.errors import printable

SHOWN = 5
"""Largest number of stories without views that are listed."""


@dataclass(frozen=True)
class StoryWithoutViews:
    """Story that needs views: the line of its file on which it first occurs, and its text."""

    line: int
    text: str

    @property
    def beginning(self) -> str:
        """The first 60 characters, without control characters."""
        return printable(self.text[:60])


@dataclass(frozen=True, eq=False)
class ViewsCheck:
    """Result of `check_views`.

    Attributes:
        views: files of views.
        stories: file of the stories that need views.
        read: summary of how the views and the stories were read, by `views` and `stories`.
        coverage: numbers of stories with and without views.
        missing: distinct stories without views, in the order of their file.
        suspicious: number of views that look wrong, by reason.
        mean_words: mean number of words of the stories in the files of views, and of their views by aspect.
    """

    views: str
    stories: str
    read: Mapping[str, str]
    coverage: ViewCoverage
    missing: Sequence[StoryWithoutViews]
    suspicious: Mapping[str, int]
    mean_words: Mapping[str, float]

    @property
    def incomplete(self) -> bool:
        """True if views are missing."""
        return bool(self.missing)

    @property
    def record(self) -> dict[str, object]:
        """The result as plain data."""
        shown = [{"line": story.line, "beginning": story.beginning} for story in self.missing[:SHOWN]]
        return {
            "views": self.views,
            "stories": self.stories,
            "read": dict(self.read),
            "different_stories": self.coverage.stories,
            "with_views": self.coverage.viewed,
            "without_views": len(self.missing),
            "first_without_views": shown,
            "views_without_a_story": self.coverage.spare,
            "conflicts": self.coverage.conflicts,
            "suspicious": dict(self.suspicious),
            "mean_words": dict(self.mean_words),
        }

    def table(self) -> pd.DataFrame:
        """Tabulate the stories without views: line and text."""
        rows = [{"line": story.line, "text": story.text} for story in self.missing]
        return pd.DataFrame(rows, columns=["line", "text"])

    def __str__(self) -> str:
        """The result in several lines, with the first stories without views."""
        distinct, viewed, missing = self.coverage.stories, self.coverage.viewed, len(self.missing)
        share = f"{100 * viewed / distinct:.1f} %"
        lines = [*self.read.values()]
        lines.append(f"distinct stories: {distinct}, with views {viewed} ({share}), without {missing}")
        for story in self.missing[:SHOWN]:
            lines.append(f"  without views: {Path(self.stories).name}:{story.line}, '{story.beginning}'")
        if missing > SHOWN:
            lines.append(f"  and {missing - SHOWN} more")
        lines.append(f"views without a story: {self.coverage.spare}")
        conflicts = counted(self.coverage.conflicts, "row")
        lines.append(f"conflicts: {conflicts} with other views than an earlier row of the story")
        lines.append(f"suspicious: {counts(self.suspicious) or 'nothing'}")
        words = ", ".join(f"{name} {number:g}" for name, number in self.mean_words.items())
        lines.append(f"words on average: {words}")
        return "\n".join(lines)


def check_views(
    views: str | Path | Sequence[str | Path], stories: str | Path, *, layout: Layout = Layout()
) -> ViewsCheck:
    r"""Check that files of views cover the stories that need them, and count the views that look wrong.

    Args:
        views: file with the columns text, theme, plot_events (or course_of_action) and outcome; or several such files.
        stories: file of stories, triples or training examples.
        layout: columns of a file of stories, and how a text file is divided.

    Returns:
        A `ViewsCheck`: `.coverage`, `.missing`, `.suspicious`, `.table()`.

    Raises:
        DataError: if a file can't be read.

    >>> folder = getfixture("tmp_path")
    >>> row = '{"text": "A king fell ill. He died.", "theme": "Death.", "plot_events": ["He fell ill.", "He died."], '
    >>> _ = (folder / "views.jsonl").write_text(row + '"outcome": "He is dead."}')
    >>> _ = (folder / "stories.csv").write_text("text\nA king fell ill. He died.\nA queen rode out.\n")
    >>> check_views(folder / "views.jsonl", folder / "stories.csv").table()["text"].tolist()
    ['A queen rode out.']
    """
    files = ViewFiles.parse(views) if isinstance(views, str) else ViewFiles(_paths(views))
    viewed: list[Story] = []
    summaries = []
    for path in files.paths:
        source = read_views(path)
        viewed += source
        summaries.append(source.report.summary())
    needed = read_any(stories, layout=layout)
    coverage = StoryViews(files).coverage(needed.table)
    return ViewsCheck(
        views=", ".join(files.paths),
        stories=str(stories),
        read={
            "views": "; ".join(summaries),
            "stories": needed.report.summary(),
        },
        coverage=coverage,
        missing=_without_views(needed, coverage),
        suspicious=suspicious_views(viewed),
        mean_words=_mean_words(viewed),
    )


def _paths(views: Path | Sequence[str | Path]) -> list[str]:
    return [str(views)] if isinstance(views, Path) else [str(path) for path in views]


def _without_views(stories: Stories, coverage: ViewCoverage) -> list[StoryWithoutViews]:
    """Find the line on which each story without views first occurs."""
    lines: dict[int, int] = {}
    for index, line in zip(stories.rows, stories.lines, strict=True):
        lines.setdefault(index, line)
    return [StoryWithoutViews(lines[index], stories.table[index].text) for index in coverage.missing]


def _mean_words(stories: Sequence[Story]) -> dict[str, float]:
    """Compute the mean number of words of stories, and of their views by aspect."""
    num_words: defaultdict[str, list[int]] = defaultdict(list)
    for story in stories:
        num_words["story"].append(len(story.text.split()))
        if story.views is not None:
            for aspect, view in story.views.by_aspect.items():
                num_words[aspect].append(len(view.split()))
    return {name: round(mean(numbers), 1) for name, numbers in num_words.items()}
