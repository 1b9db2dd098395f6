"""Views of stories, read from files or cut by position, and attached to the stories of a table."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from narrlit.data.readers import ReadReport, Stories, ViewsRow, collect
from narrlit.data.rows import read_rows
from narrlit.data.schema import Story, StoryTable, Views, normal_text
from narrlit.errors import DataError, OptionError, printable
from narrlit.preprocessing.sentences import positional_segments, split_sentences

VIEWS_KNOWN = "text (or story), theme, plot_events (or course_of_action, plot, action), outcome"


@dataclass(frozen=True)
class ViewFiles:
    """Sources of the views of stories.

    Attributes:
        files: file of stories with theme, plot_events (or course_of_action) and outcome; or several such files.
        missing: what happens to stories without views in the files. `refuse`: an error; `positional`: they get
            positional views, that is, the first quarter of their sentences, the middle half and the last quarter.
    """

    files: str | list[str] | None = None
    missing: Literal["refuse", "positional"] = "refuse"

    @property
    def paths(self) -> list[str]:
        """The files as a list; empty if all views are positional."""
        return [self.files] if isinstance(self.files, str) else list(self.files or [])

    @classmethod
    def parse(cls, files: str | None, missing: Literal["refuse", "positional"] = "refuse") -> "ViewFiles":
        """Parse comma-separated files, as given to an option.

        >>> ViewFiles.parse("a.jsonl, b.jsonl").paths
        ['a.jsonl', 'b.jsonl']
        """
        names = map(str.strip, (files or "").split(","))
        paths = list(filter(None, names))
        if files is not None and not paths:
            raise OptionError("no_view_file", files=files)
        return cls(paths, missing)


@dataclass(frozen=True, slots=True)
class ViewCoverage:
    """Numbers of stories with and without views.

    Attributes:
        stories: number of distinct stories, without regard to case and white space.
        missing: story indices of the stories without views in the files.
        positional: number of stories that get positional views.
        spare: number of stories in the files of views that are not needed.
        conflicts: number of rows whose views differ from those of an earlier row of the same story, and are not used.
    """

    stories: int
    missing: tuple[int, ...]
    positional: int
    spare: int
    conflicts: int

    @property
    def viewed(self) -> int:
        """Number of stories with views in the files."""
        return self.stories - len(self.missing)

    def summary(self, name: str) -> str:
        """Summarize the coverage of a set, given by its name, in one line."""
        cut = f", {self.positional} with positional views" if self.positional else ""
        return f"views: {name}, {self.stories} distinct stories, {self.viewed} with views{cut}"


class StoryViews:
    """Views of stories by the normalized text of the story; of conflicting rows, the first is used.

    Attributes:
        options: sources of the views.
        conflicts: number of conflicting rows.
    """

    def __init__(self, options: ViewFiles, strict: bool = False) -> None:
        """Read the files.

        Args:
            options: sources of the views.
            strict: raise an error at the first row that would be dropped.

        Raises:
            DataError: if a file can't be read.
            OptionError: if there are no files, and positional views are not allowed.
        """
        if not options.paths and options.missing == "refuse":
            raise OptionError("views_needed")
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

    def attach(
        self, stories: StoryTable, indices: Iterable[int], name: str, optional: Iterable[int] = ()
    ) -> ViewCoverage:
        """Attach views to stories of a table; stories that already have views keep them.

        Args:
            stories: table of the stories.
            indices: indices of the stories that need views.
            name: name of the set, for messages.
            optional: indices of further stories that may remain without views.

        Returns:
            The coverage of the stories that need views.

        Raises:
            DataError: if a story that needs views has none, and positional views are not allowed.
        """
        needed = list(dict.fromkeys(indices))
        coverage = self.coverage(stories, needed)
        if coverage.missing and not self._allows_positional:
            beginning = printable(stories[coverage.missing[0]].text, 60)
            raise DataError(
                "stories_without_views",
                name=name,
                n=len(coverage.missing),
                stories=coverage.stories,
                paths=list(self.options.paths),
                first=beginning,
            )
        for index in dict.fromkeys([*needed, *optional]):
            story = stories[index]
            views = self._views_of(story.text)
            if views is not None and story.views is None:
                stories.set_views(index, views)
        return coverage

    @property
    def _allows_positional(self) -> bool:
        """True if stories without views in the files get positional views."""
        return self.options.missing == "positional"

    def _views_of(self, text: str) -> Views | None:
        """Return the views of a story in the files, or its positional views; None if it has neither."""
        views = self._views.get(normal_text(text))
        if views is None and self._allows_positional:
            return positional_views(text)
        return views

    def coverage(self, stories: Sequence[Story], indices: Iterable[int] | None = None) -> ViewCoverage:
        """Count the stories with and without views, among all stories of a table or those at `indices`."""
        counted_indices = range(len(stories)) if indices is None else indices
        first_index: dict[str, int] = {}
        for index in counted_indices:
            first_index.setdefault(normal_text(stories[index].text), index)
        missing = []
        for text, index in first_index.items():
            if text not in self._views and stories[index].views is None:
                missing.append(index)
        return ViewCoverage(
            stories=len(first_index),
            missing=tuple(missing),
            positional=len(missing) if self._allows_positional else 0,
            spare=len(self._views.keys() - first_index.keys()),
            conflicts=self.conflicts,
        )

    def summary(self) -> str:
        """Summarize the reports on the files in one line."""
        line = "; ".join(report.summary() for report in self._reports) or "no files of views"
        if self.conflicts:
            return f"{line}; conflicts: {self.conflicts} (the first views of a story are used)"
        return line

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

    Each row becomes a story of its own, so that rows with different views of the same story are kept separate.

    Args:
        path: file with the columns text, theme, plot_events (or course_of_action, plot, action) and outcome.
        strict: raise an error at the first row that would be dropped.

    Raises:
        DataError: if the file can't be read, no row can be used, or `strict` is set and a row can't be used.
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
    """Cut positional views from a story: the first quarter of its sentences, the middle half and the last quarter.

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
        for aspect, view in views.by_aspect.items():
            stories_of_view[aspect, normal_text(view)].add(normal_text(text))
    reasons: Counter[str] = Counter()
    for text, views in viewed:
        reasons.update(_suspicions(text, views, stories_of_view))
    return dict(reasons)


def _suspicions(text: str, views: Views, stories_of_view: Mapping[tuple[str, str], Collection[str]]) -> Iterator[str]:
    """Yield the reasons why views of a story look wrong.

    Args:
        text: text of the story.
        views: views of the story.
        stories_of_view: normalized texts of the stories that share a view, by its aspect and normalized text.
    """
    if _num_events(views.action) < 2:
        yield "action of fewer than 2 events"
    for aspect, view in views.by_aspect.items():
        if normal_text(view) == normal_text(text):
            yield f"{aspect} equal to the story"
        elif len(view) > len(text):
            yield f"{aspect} longer than the story"
        if len(stories_of_view[aspect, normal_text(view)]) > 1:
            yield f"{aspect} shared with another story"


def _num_events(action: str) -> int:
    """Count the events of an action as its lines or its sentences, whichever are more."""
    lines = [line for line in action.splitlines() if line.strip()]
    return max(len(lines), len(split_sentences(action)))
