"""Views of stories: read from files, or cut by position, and joined with the stories for encoders that read them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from narrlit.data.leakage import normal_text
from narrlit.data.rows import file_digest
from narrlit.data.view_rows import ViewedStory, positional_views, read_views
from narrlit.errors import DataError, OptionError
from narrlit.text.joined import Views, join, split

__all__ = ["Coverage", "Joined", "ViewBook", "ViewFiles", "ViewedStory", "listed", "positional_views", "read_views"]

Missing = Literal["refuse", "positional"]
_POSITIONAL = "--missing-views positional (in a config data.views.missing: positional)"


@dataclass(frozen=True)
class ViewFiles:
    """Where the views of stories come from.

    Attributes:
        files: a file of stories with theme, plot_events (or course_of_action) and outcome; or several.
        missing: of a story that has no views there: refuse, or cut it by position (first quarter of its sentences,
            middle half, last quarter).
    """

    files: str | list[str] | None = None
    missing: Missing = "refuse"

    @property
    def paths(self) -> list[str]:
        """The files as a list; none at all where all views are cut by position."""
        return [self.files] if isinstance(self.files, str) else list(self.files or [])


def listed(files: str | None) -> list[str]:
    """The files that an option names, with commas between; none where it is not given.

    Raises:
        OptionError: if it names none.

    >>> listed("a.jsonl, b.jsonl")
    ['a.jsonl', 'b.jsonl']
    """
    found = [file.strip() for file in (files or "").split(",") if file.strip()]
    if files is not None and not found:
        raise OptionError(f"'{files}' names no file of views: give one, or several with commas between")
    return found


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far views go round among texts; stories are the same without regard to case and white space.

    Attributes:
        stories: how many different ones there are.
        missing: places of those without views, ascending, each where it stands first, counted from 0.
        by_position: how many of these are cut by position.
        spare: stories with views that are not among the texts.
        conflicts: rows with other views of a story than an earlier row; they are not used.
    """

    stories: int
    missing: tuple[int, ...]
    by_position: int
    spare: int
    conflicts: int

    @property
    def viewed(self) -> int:
        """How many stories have views."""
        return self.stories - len(self.missing)

    def summary(self, what: str) -> str:
        """One line for logs; `what` the texts are.

        >>> Coverage(stories=9, missing=(4, 7), by_position=2, spare=0, conflicts=0).summary("test triples")
        'views: test triples, 9 different stories, 7 with views, 2 cut by position'
        """
        cut = f", {self.by_position} cut by position" if self.by_position else ""
        return f"views: {what}, {self.stories} different stories, {self.viewed} with views{cut}"


@dataclass(frozen=True, slots=True)
class Joined:
    """Texts that are joined with their views.

    Attributes:
        texts: in the order in which they were given.
        provenance: plain data for records: the files of views, and how many different stories among these texts were
            cut by position.
        summary: one line for logs.
    """

    texts: list[str]
    provenance: dict[str, Any]
    summary: str


class ViewBook:
    """The views of stories, found by the stories' text.

    Attributes:
        conflicts: rows with other views of a story than an earlier row; the first counts.
    """

    def __init__(self, options: ViewFiles, strict: bool = False) -> None:
        """Read the files.

        Args:
            options: which files, and what to do without views.
            strict: refuse the first row that would be dropped.

        Raises:
            OptionError: if there are no files, and stories may not be cut by position.
            DataError: if a file can't be read or understood, or none of its rows used.
        """
        if not options.paths and options.missing == "refuse":
            raise OptionError(f"views are needed: give --views FILE (in a config data.views.files) or {_POSITIONAL}")
        self._options = options
        self._views: dict[str, Views] = {}
        self._files: list[dict[str, Any]] = []
        self._summaries: list[str] = []
        self.conflicts = 0
        for path in options.paths:
            reading = read_views(path, strict)
            for story in reading.records:
                self._add(story)
            told = {"path": path, "sha256": file_digest(path), "rows": reading.total, "dropped": reading.dropped}
            self._files.append(told)
            self._summaries.append(reading.summary())

    def __len__(self) -> int:
        """How many different stories have views."""
        return len(self._views)

    def joined(self, texts: Sequence[str], what: str, partly: bool = False) -> Joined:
        """Each text joined with its views, as `narrlit.text.joined` does it; what is joined already stays.

        Args:
            texts: of stories, in any order, repeated or not.
            what: they are, for errors and logs, such as `validation triples`.
            partly: a text without views may stay as it is.

        Raises:
            DataError: naming the first story without views, unless such stories are cut by position, or the first text
                that can't be joined.
        """
        coverage = self.coverage(texts, what)
        refused = self._options.missing == "refuse"
        if coverage.missing and refused and not partly:
            raise DataError(self._refusal(texts, what, coverage))
        found = [
            text if views is not None or (refused and key not in self._views) else join(text, self._views_of(key, text))
            for text, (key, views) in zip(texts, self._keyed(texts, what), strict=True)
        ]
        return Joined(found, {**self._provenance, "by_position": coverage.by_position}, coverage.summary(what))

    def coverage(self, texts: Sequence[str], what: str = "stories") -> Coverage:
        """How far the views go round among texts.

        Raises:
            DataError: naming the first text that can't be joined with views.
        """
        seen: set[str] = set()
        missing: dict[str, int] = {}
        for place, (key, views) in enumerate(self._keyed(texts, what)):
            seen.add(key)
            if views is None and key not in self._views:
                missing.setdefault(key, place)
        cut = len(missing) if self._options.missing == "positional" else 0
        spare = len(self._views.keys() - seen)
        return Coverage(len(seen), tuple(missing.values()), cut, spare, self.conflicts)

    def summary(self) -> str:
        """One line for logs about the files."""
        told = "; ".join(self._summaries) or "no files of views"
        if self.conflicts:
            told += f"; conflicts: {self.conflicts} (of different views of a story the first count)"
        return told

    @property
    def _provenance(self) -> dict[str, Any]:
        """Of the files, plain data for records."""
        return {
            "files": [dict(told) for told in self._files],
            "stories": len(self),
            "conflicts": self.conflicts,
            "missing": self._options.missing,
        }

    def _add(self, story: ViewedStory) -> None:
        if self._views.setdefault(normal_text(story.text), story.views) != story.views:
            self.conflicts += 1

    def _keyed(self, texts: Sequence[str], what: str) -> Iterator[tuple[str, Views | None]]:
        """By what each text is found, and the views that are joined with it already.

        Raises:
            DataError: for a text that can't be joined with views.
        """
        for place, text in enumerate(texts):
            try:
                story, views = split(text)
                if views is None:
                    join(story, Views("", "", ""))
            except ValueError as fault:
                raise DataError(f"{what}: text {place + 1}, {_beginning(text)}: {fault}; mend the text") from fault
            yield normal_text(story), views

    def _views_of(self, key: str, text: str) -> Views:
        found = self._views.get(key)
        return positional_views(text) if found is None else found

    def _refusal(self, texts: Sequence[str], what: str, coverage: Coverage) -> str:
        place = coverage.missing[0]
        first = f"text {place + 1}, {_beginning(texts[place])}"
        return (
            f"{what}: {len(coverage.missing)} of {coverage.stories} different stories have no views in "
            f"{', '.join(self._options.paths)}, first {first}; add their views, or cut such stories by {_POSITIONAL}"
        )


def _beginning(text: str) -> str:
    return f"'{' '.join(text[:60].split())}{'...' if len(text) > 60 else ''}'"
