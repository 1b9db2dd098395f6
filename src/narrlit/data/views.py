"""Views of stories, read from files or cut by position, and attached to the stories of a table."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from narrlit.data.readers import ReadReport, Stories, ViewsRow, collect
from narrlit.data.rows import read_rows
from narrlit.data.schema import ASPECTS, Story, StoryTable, Views, normal_text
from narrlit.errors import DataError, OptionError, printable
from narrlit.preprocessing.sentences import positional_segments, split_sentences

VIEWS_KNOWN = "text (or story), theme, plot_events (or course_of_action, plot, action), outcome"
_POSITIONAL = "`missing_views=positional` (in a config data.views.missing: positional)"


@dataclass(frozen=True)
class ViewFiles:
    """Sources of stories' views.

    Attributes:
        files: a file of stories with theme, plot_events (or course_of_action) and outcome; or several.
        missing: stories without views there: `refuse` them, or cut `positional` views: the first quarter of the
            story's sentences, the middle half, the last quarter.
    """

    files: str | list[str] | None = None
    missing: Literal["refuse", "positional"] = "refuse"

    @property
    def paths(self) -> list[str]:
        """The files as a list; empty where all views are cut by position."""
        return [self.files] if isinstance(self.files, str) else list(self.files or [])

    @classmethod
    def parse(cls, files: str | None, missing: Literal["refuse", "positional"] = "refuse") -> "ViewFiles":
        """Parse files with commas between, as an option gives them.

        >>> ViewFiles.parse("a.jsonl, b.jsonl").paths
        ['a.jsonl', 'b.jsonl']
        """
        paths = [file.strip() for file in (files or "").split(",") if file.strip()]
        if files is not None and not paths:
            raise OptionError(f"'{files}' names no file of views: give one, or several with commas between")
        return cls(paths, missing)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of stories with and without views."""

    stories: int  # number of different stories, without regard to case and white space
    missing: tuple[int, ...]  # story indices of those without views in the files
    positional: int  # how many of these got positional views
    spare: int  # stories of the views files that are not among them
    conflicts: int  # rows with other views of a story than an earlier row; they are not used

    @property
    def viewed(self) -> int:
        """Number of stories that have views in the files."""
        return self.stories - len(self.missing)

    def summary(self, name: str) -> str:
        """Describe the coverage of a set in one line."""
        cut = f", {self.positional} with positional views" if self.positional else ""
        return f"views: {name}, {self.stories} different stories, {self.viewed} with views{cut}"


class StoryViews:
    """Views of stories, looked up by the stories' normalized text; where rows conflict, the first counts."""

    def __init__(self, options: ViewFiles, strict: bool = False) -> None:
        if not options.paths and options.missing == "refuse":
            raise OptionError(f"views are needed: give `views=FILE` (in a config data.views.files) or {_POSITIONAL}")
        self.options = options
        self.conflicts = 0
        self._reports: list[ReadReport] = []
        self._views: dict[str, Views] = {}
        for path in options.paths:
            stories = read_views(path, strict)
            self._reports.append(stories.report)
            for story in stories:
                if story.views is not None:
                    first_views = self._views.setdefault(normal_text(story.text), story.views)
                    self.conflicts += first_views != story.views

    def attach(self, stories: StoryTable, indices: Iterable[int], name: str, optional: Iterable[int] = ()) -> Coverage:
        """Give stories of a table their views, `optional` ones if there are any; those that have some keep them.

        Refuses a set (`name`) of which a story has no views, unless positional views are allowed.
        """
        positional = self.options.missing == "positional"
        needed = list(dict.fromkeys(indices))
        coverage = self.coverage(stories, needed)
        if coverage.missing and not positional:
            beginning = printable(stories[coverage.missing[0]].text, 60)
            raise DataError(
                f"{name}: {len(coverage.missing)} of {coverage.stories} different stories have no views in "
                f"{', '.join(self.options.paths)}, first '{beginning}'; add their views, or {_POSITIONAL}"
            )
        for index in dict.fromkeys([*needed, *optional]):
            text = stories[index].text
            views = self._views.get(normal_text(text)) or (positional_views(text) if positional else None)
            if views is not None and stories[index].views is None:
                stories.set_views(index, views)
        return coverage

    def coverage(self, stories: Sequence[Story], indices: Iterable[int] | None = None) -> Coverage:
        """Count how many of a table's stories have views."""
        first_index: dict[str, int] = {}
        for index in range(len(stories)) if indices is None else indices:
            first_index.setdefault(normal_text(stories[index].text), index)
        missing = tuple(
            index for text, index in first_index.items() if text not in self._views and stories[index].views is None
        )
        return Coverage(
            stories=len(first_index),
            missing=missing,
            positional=len(missing) if self.options.missing == "positional" else 0,
            spare=len(self._views.keys() - first_index.keys()),
            conflicts=self.conflicts,
        )

    def summary(self) -> str:
        """Describe the files in one line."""
        line = "; ".join(report.summary() for report in self._reports) or "no files of views"
        return f"{line}; conflicts: {self.conflicts} (the first views of a story count)" if self.conflicts else line

    def provenance(self) -> dict[str, object]:
        """Return plain data for run.json."""
        return {
            "files": [report.provenance() for report in self._reports],
            "stories": len(self._views),
            "conflicts": self.conflicts,
            "missing": self.options.missing,
        }


def read_views(path: str | Path, strict: bool = False) -> Stories:
    r"""Read stories with their views from JSON Lines, CSV or TSV; a list of events is joined by "\n".

    Each row is a story of its own, so that rows with different views of a story stay apart.
    """
    results, report = collect(read_rows(path), [ViewsRow], VIEWS_KNOWN, strict)
    stories = []
    for number, (_, parsed) in enumerate(results):
        views = Views(parsed.theme, parsed.action, parsed.outcome)
        stories.append(Story(parsed.id or str(number), parsed.text, views))
    return Stories(
        table=StoryTable(stories),
        rows=list(range(len(stories))),
        report=report,
        ids=[None] * len(stories),
        lines=[row.line for row, _ in results],
        values=[row.value for row, _ in results],
    )


def positional_views(text: str) -> Views:
    """Cut a story into its first quarter of sentences, the middle half, the last quarter.

    >>> positional_views("A king fell ill. His sons rode out. They met a fox. All came home.").outcome
    'All came home.'
    """
    return Views(*positional_segments(split_sentences(text)))


def suspicious_views(stories: Iterable[Story]) -> dict[str, int]:
    """Count views that look wrong, by reason.

    >>> suspicious_views([Story("0", "A king fell ill.", Views("Kings", "He fell ill.", "A king  fell ill."))])
    {'action of fewer than 2 events': 1, 'outcome equal to the story': 1}
    """
    viewed = [(story.text, story.views) for story in stories if story.views is not None]
    stories_of_view: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for text, views in viewed:
        for aspect, view in zip(ASPECTS, views.texts, strict=True):
            stories_of_view[aspect, normal_text(view)].add(normal_text(text))
    reasons: Counter[str] = Counter()
    for text, views in viewed:
        if _num_events(views.action) < 2:
            reasons["action of fewer than 2 events"] += 1
        for aspect, view in zip(ASPECTS, views.texts, strict=True):
            if normal_text(view) == normal_text(text):
                reasons[f"{aspect} equal to the story"] += 1
            elif len(view) > len(text):
                reasons[f"{aspect} longer than the story"] += 1
            if len(stories_of_view[aspect, normal_text(view)]) > 1:
                reasons[f"{aspect} shared with another story"] += 1
    return dict(reasons)


def _num_events(action: str) -> int:
    """Count the events of an action: its lines or its sentences, whichever are more."""
    lines = [line for line in action.splitlines() if line.strip()]
    return max(len(lines), len(split_sentences(action)))
