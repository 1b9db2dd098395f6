"""Versions: stories with a column that names what they are versions of become training examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from narrlit.console import counted
from narrlit.data.readers import ReadReport, Stories, parse_stories, read_stories
from narrlit.data.schema import ASPECTS, StoryTable, TrainingExample
from narrlit.data.twice_told import training_rows
from narrlit.errors import DataError, OptionError, printable
from narrlit.preprocessing.passages import positions, split_passages

TWICE_TOLD = "twice-told"
"""Name of the training part of Twice Told among the files of versions."""


@dataclass(frozen=True)
class Versions:
    """Stories told several times, such as tales by type, films by work, or retellings by plot.

    Attributes:
        files: tables of stories, or `twice-told`, the training part of the corpus that comes with narrlit.
        same: column that names what a story is a version of; stories without a value are left out.
        setting: column that names what a story shares with stories that are no versions of it, such as its place,
            author or collection; None: nothing.
        setting_share: share of the examples, 0 to 1, that are in batches of one setting each: all that the stories of
            such a batch share is what a model must not read. Needs `setting`.
        versions: other versions that each story is paired with in an epoch, at most.
        passage_words: longer stories are read as passages of about so many words, each paired with the one at the same
            relative position of the other version; None: stories are whole.
    """

    files: str | list[str] | None = None
    same: str = "plot"
    setting: str | None = None
    setting_share: float = 0.5
    versions: int = 3
    passage_words: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.setting_share <= 1:
            raise OptionError(f"versions.setting_share is {self.setting_share}: a share from 0 to 1 is needed")
        if self.versions < 1:
            raise OptionError(f"versions.versions is {self.versions}: a positive number is needed")
        if self.passage_words is not None and self.passage_words < 1:
            raise OptionError(f"versions.passage_words is {self.passage_words}: a positive number is needed")

    @property
    def sources(self) -> list[str]:
        """The files."""
        return [self.files] if isinstance(self.files, str) else list(self.files or [])


@dataclass(frozen=True)
class Version:
    """A story, as training reads it.

    Attributes:
        passages: (P,) story indices of its passages in order; of one story index if it is whole.
        setting: what it shares with others; None: nothing known.
    """

    passages: Sequence[int]
    setting: str | None

    def passage_at(self, position: float) -> int:
        """Return the passage at a relative position, from 0 to below 1."""
        return self.passages[int(position * len(self.passages))]


@dataclass
class Group:
    """Versions of one story, and stories that differ from it in one aspect, by setting.

    Attributes:
        versions: each different story once, in the order of the files.
        changed: hard negatives.
    """

    versions: list[Version] = field(default_factory=list)
    changed: list[tuple[Version, str]] = field(default_factory=list)

    def negatives(self, positive: Version, position: float) -> list[tuple[int, str]]:
        """Return the changed stories of a positive's setting, with their kinds, each at a relative position."""
        own = [(story, kind) for story, kind in self.changed if story.setting == positive.setting]
        return [(story.passage_at(position), kind) for story, kind in own]


@dataclass(frozen=True)
class ReadVersions:
    """Training examples of versions, with the files that they are from.

    Attributes:
        examples: pairs of versions, with changed stories as hard negatives.
        reports: of the readers.
        num_stories: stories that are a version.
        num_groups: groups of at least two of them.
    """

    examples: list[TrainingExample]
    reports: list[ReadReport]
    num_stories: int
    num_groups: int

    def summary(self) -> str:
        """One line: stories, groups, examples."""
        return (
            f"versions: {self.num_stories:,} stories in {counted(self.num_groups, 'group')} of two or more, "
            f"{counted(len(self.examples), 'training example')}"
        )


def read_versions(settings: Versions, strict: bool, stories: StoryTable) -> ReadVersions:
    """Read versions, and pair them.

    Args:
        settings: files and columns.
        strict: refuse the first row that can't be used.
        stories: the table to add the stories to.

    Raises:
        DataError: if a file can't be read, has no such column, or has a story in two groups.
        OptionError: if no group has two versions.
    """
    groups: dict[str, Group] = {}
    reports = []
    group_of: dict[int, str] = {}
    for source in settings.sources:
        read = _read(source, strict)
        reports.append(read.report)
        columns = TWICE_TOLD_COLUMNS if source == TWICE_TOLD else Columns(settings.same, settings.setting)
        for row in _rows(read, columns):
            passages = [stories.add(text) for text in _passages(row.text, settings.passage_words)]
            for index in passages:
                if group_of.setdefault(index, row.group) != row.group:
                    raise DataError(
                        f"{row.place}: this story is in {columns.same} {printable(group_of[index], 60)!r} as well as "
                        f"{printable(row.group, 60)!r}; leave one row out"
                    )
            _add(groups.setdefault(row.group, Group()), Version(passages, row.setting), row.changed)
    paired = {name: group for name, group in groups.items() if len(group.versions) > 1}
    if settings.sources and not paired:
        raise OptionError("`data.versions.same`: no two stories have the same value; name another column")
    examples: list[TrainingExample] = []
    for name, group in paired.items():
        examples += pair_versions(group, name, settings.versions)
    return ReadVersions(examples, reports, sum(len(group.versions) for group in paired.values()), len(paired))


def pair_versions(group: Group, name: str, versions: int) -> Iterator[TrainingExample]:
    """Make the training examples of a group: each story is the anchor with as many others, in turn.

    Args:
        group: two versions or more.
        name: of the group.
        versions: others that a story is paired with, at most.
    """
    count = len(group.versions)
    for number, anchor in enumerate(group.versions):
        for step in range(1, min(versions, count - 1) + 1):
            positive = group.versions[(number + step) % count]
            for passage, position in zip(anchor.passages, positions(anchor.passages), strict=True):
                negatives = group.negatives(positive, position)
                yield TrainingExample(
                    passage,
                    positive.passage_at(position),
                    tuple(index for index, _ in negatives),
                    tuple(kind for _, kind in negatives),
                    group=name,
                    setting=anchor.setting,
                )


@dataclass(frozen=True)
class Columns:
    """Columns of a table of versions."""

    same: str
    setting: str | None


TWICE_TOLD_COLUMNS = Columns("plot", "world")
CHANGED = "changed"
"""Column that names the aspect in which a story differs from its group, of which it then is no version."""


@dataclass(frozen=True)
class VersionRow:
    """A row of a table of versions."""

    text: str
    group: str
    setting: str | None
    changed: str | None
    place: str


def _read(source: str, strict: bool) -> Stories:
    return parse_stories(training_rows(), strict) if source == TWICE_TOLD else read_stories(source, strict)


def _rows(read: Stories, columns: Columns) -> Iterator[VersionRow]:
    """Read the columns of each row that has a group.

    Raises:
        DataError: if a column is missing, or a changed aspect is unknown.
    """
    path = read.report.path
    for name in (columns.same, columns.setting):
        if name is not None and not any(name in row for row in read.metadata):
            known = dict.fromkeys(column for row in read.metadata for column in row)
            raise DataError(f"{path}: column {name!r} is missing; found: {', '.join(known) or 'none'}")
    for story, line, row in zip(read, read.lines, read.metadata, strict=True):
        group = row.get(columns.same)
        if group is None or group == "":
            continue
        changed, place = row.get(CHANGED) or None, f"{path}:{line}"
        if changed is not None and changed not in ASPECTS:
            raise DataError(f"{place}: column {CHANGED!r} is {printable(changed, 60)!r}; give {', '.join(ASPECTS)}")
        setting = None if columns.setting is None else row.get(columns.setting)
        yield VersionRow(story.text, str(group), None if setting in (None, "") else str(setting), changed, place)


def _passages(text: str, words: int | None) -> list[str]:
    return [text] if words is None else split_passages(text, words)


def _add(group: Group, story: Version, changed: str | None) -> None:
    """Add a story to its group, unless it has that very text already."""
    if changed is not None:
        group.changed.append((story, changed))
    elif not any(story.passages == other.passages for other in group.versions):
        group.versions.append(story)
