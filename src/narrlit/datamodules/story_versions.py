"""Training examples from versions of the same story, which have the same value in a column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from narrlit.console import counted
from narrlit.data.readers import ReadReport, Stories, parse_stories, read_stories
from narrlit.data.rows import column_names
from narrlit.data.schema import ASPECTS, StoryTable, TrainingExample, normal_form, normal_text
from narrlit.data.twice_told import training_rows
from narrlit.errors import DataError, OptionError, printable
from narrlit.preprocessing.passages import positions, split_passages

TWICE_TOLD = "twice-told"
"""Name of the training data of Twice Told, in place of a file of versions."""


@dataclass(frozen=True)
class Versions:
    """Stories with several versions, such as tales of a type, films of a work, or retellings of a plot.

    Attributes:
        files: tables of stories, or `twice-told`, the training data of the corpus that comes with narrlit.
        same: column with the same value for all versions of a story; stories without a value are not used.
        setting: column of a property that a story shares with stories that are not its versions, such as place, author
            or collection; None: no such column.
        setting_share: share of the examples, 0 to 1, that are put in batches with a single setting, so that the model
            learns to ignore the setting. Needs `setting`.
        versions: maximum number of other versions that each story is paired with per epoch.
        passage_words: number of words of the passages into which longer stories are split. Each passage is paired with
            the passage at the same relative position of the other version. None: stories are not split.
    """

    files: str | list[str] | None = None
    same: str = "plot"
    setting: str | None = None
    setting_share: float = 0.5
    versions: int = 3
    passage_words: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.setting_share <= 1:
            raise OptionError(f"versions.setting_share is {self.setting_share}: must be between 0 and 1")
        if self.versions < 1:
            raise OptionError(f"versions.versions is {self.versions}: must be a positive number")
        if self.passage_words is not None and self.passage_words < 1:
            raise OptionError(f"versions.passage_words is {self.passage_words}: must be a positive number")

    @property
    def sources(self) -> list[str]:
        """The files as a list."""
        return [self.files] if isinstance(self.files, str) else list(self.files or [])


@dataclass(frozen=True)
class Version:
    """A version of a story.

    Attributes:
        passages: (P,) story indices of its passages in order, or the single index of a story that is not split.
        setting: its setting; None: unknown.
    """

    passages: Sequence[int]
    setting: str | None

    def passage_at(self, position: float) -> int:
        """Return the story index of the passage at a relative position, at least 0 and below 1."""
        return self.passages[int(position * len(self.passages))]


@dataclass
class Group:
    """Versions of one story, and stories that differ from them in one aspect.

    Attributes:
        versions: distinct versions in the order of the files.
        changed: hard negatives, each with the aspect in which it differs.
    """

    versions: list[Version] = field(default_factory=list)
    changed: list[tuple[Version, str]] = field(default_factory=list)

    def add(self, story: Version, changed: str | None) -> None:
        """Add a version, unless it is already in the group, or a hard negative that differs in the aspect `changed`."""
        if changed is not None:
            self.changed.append((story, changed))
        elif not any(story.passages == other.passages for other in self.versions):
            self.versions.append(story)

    def negatives(self, positive: Version, position: float) -> tuple[list[int], list[str]]:
        """Select the hard negatives with the same setting as a positive.

        Args:
            positive: version that is the positive.
            position: relative position of the passage in its story.

        Returns:
            Story index of each negative's passage at this position, and the aspect in which each negative differs.
        """
        passages, aspects = [], []
        for story, aspect in self.changed:
            if story.setting == positive.setting:
                passages.append(story.passage_at(position))
                aspects.append(aspect)
        return passages, aspects


@dataclass(frozen=True)
class ReadVersions:
    """Training examples of versions, with reports on their files.

    Attributes:
        examples: pairs of versions, with changed stories as hard negatives.
        reports: report of the reader for each file.
        num_stories: number of versions in groups of at least two.
        num_groups: number of groups of at least two versions.
    """

    examples: list[TrainingExample]
    reports: list[ReadReport]
    num_stories: int
    num_groups: int

    def summary(self) -> str:
        """Summarize the numbers of stories, groups and examples in one line."""
        return (
            f"versions: {self.num_stories:,} stories in {counted(self.num_groups, 'group')} of two or more, "
            f"{counted(len(self.examples), 'training example')}"
        )


def read_versions(settings: Versions, strict: bool, stories: StoryTable) -> ReadVersions:
    """Read versions, and pair them.

    Args:
        settings: files and columns.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        stories: table to which the stories are added.

    Raises:
        DataError: if a file can't be read, a column is missing, or a story is in two groups.
        OptionError: if no group has two versions.
    """
    grouped = GroupedVersions()
    index_of: dict[str, int] = {}  # copies of a passage have the index of the first one
    reports = []
    for source in settings.sources:
        table = _read(source, strict)
        reports.append(table.report)
        columns = TWICE_TOLD_COLUMNS if source == TWICE_TOLD else Columns.of(settings)
        for row in _rows(table, columns):
            passages = []
            for text in _passages(row.text, settings.passage_words):
                normal = normal_text(text)
                if normal not in index_of:
                    index_of[normal] = stories.add(text)
                passages.append(index_of[normal])
            grouped.add(row, passages, columns.same)
    examples: list[TrainingExample] = []
    num_stories = num_groups = 0
    for name, group in grouped.groups.items():
        if len(group.versions) > 1:
            examples += pair_versions(group, name, settings.versions)
            num_stories += len(group.versions)
            num_groups += 1
    if settings.sources and not num_groups:
        raise OptionError("`data.versions.same`: no two stories have the same value; name another column")
    return ReadVersions(examples, reports, num_stories, num_groups)


def pair_versions(group: Group, name: str, versions: int) -> Iterator[TrainingExample]:
    """Create the training examples of a group.

    Each version is paired, as the anchor, with the versions after it; after the last version comes the first.

    Args:
        group: group of two or more versions.
        name: name of the group.
        versions: maximum number of other versions with which a version is paired.
    """
    count = len(group.versions)
    for number, anchor in enumerate(group.versions):
        for step in range(1, min(versions, count - 1) + 1):
            positive = group.versions[(number + step) % count]
            for passage, position in zip(anchor.passages, positions(anchor.passages), strict=True):
                negatives, aspects = group.negatives(positive, position)
                yield TrainingExample(
                    passage,
                    positive.passage_at(position),
                    tuple(negatives),
                    tuple(aspects),
                    group=name,
                    setting=anchor.setting,
                )


@dataclass(frozen=True)
class Columns:
    """Columns of a table of versions."""

    same: str
    setting: str | None

    @classmethod
    def of(cls, settings: Versions) -> "Columns":
        """Return the columns that settings name, in the form of metadata."""
        return cls(normal_form(settings.same), None if settings.setting is None else normal_form(settings.setting))


TWICE_TOLD_COLUMNS = Columns("plot", "world")
CHANGED = "changed"
"""Column with the aspect in which a story differs from the versions of its group; empty for versions."""


@dataclass(frozen=True)
class VersionRow:
    """Row of a table of versions; `place` is its file and line, for messages."""

    text: str
    group: str
    setting: str | None
    changed: str | None
    place: str


class GroupedVersions:
    """Groups of versions by name.

    Attributes:
        groups: groups by name, in the order of the files.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self._group_of: dict[int, str] = {}

    def add(self, row: VersionRow, passages: Sequence[int], column: str) -> None:
        """Add the story of a row to its group.

        Args:
            row: row of the story.
            passages: (P,) story indices of its passages.
            column: column with the names of groups, for messages.

        Raises:
            DataError: if a passage is also in another group.
        """
        for index in passages:
            group = self._group_of.setdefault(index, row.group)
            if group != row.group:
                raise DataError(
                    f"{row.place}: this story is in {column} {printable(group, 60)!r} as well as "
                    f"{printable(row.group, 60)!r}; leave one row out"
                )
        self.groups.setdefault(row.group, Group()).add(Version(passages, row.setting), row.changed)


def _read(source: str, strict: bool) -> Stories:
    return parse_stories(training_rows(), strict) if source == TWICE_TOLD else read_stories(source, strict)


def _rows(table: Stories, columns: Columns) -> Iterator[VersionRow]:
    """Read the columns of each row that has a group.

    Raises:
        DataError: if a column is missing, or a changed aspect is unknown.
    """
    _check_columns(table, columns)
    for story, line, row in zip(table, table.lines, table.metadata, strict=True):
        group = _value(row, columns.same)
        if group is None:
            continue
        place = f"{table.report.path}:{line}"
        changed = row.get(CHANGED) or None
        if changed is not None and changed not in ASPECTS:
            raise DataError(f"{place}: column {CHANGED!r} is {printable(changed, 60)!r}; give {', '.join(ASPECTS)}")
        setting = None if columns.setting is None else _value(row, columns.setting)
        yield VersionRow(story.text, group, setting, changed, place)


def _check_columns(table: Stories, columns: Columns) -> None:
    """Raise DataError if no row of a table has a column."""
    present = column_names(table.metadata)
    for name in (columns.same, columns.setting):
        if name is not None and name not in present:
            raise DataError(f"{table.report.path}: column {name!r} is missing; found: {', '.join(present) or 'none'}")


def _value(row: Mapping[str, object], column: str) -> str | None:
    """Return a row's value in a column as text; None if it is absent or empty."""
    value = row.get(column)
    return None if value in (None, "") else str(value)


def _passages(text: str, words: int | None) -> list[str]:
    """Split a text into passages of about `words` words; None: do not split it."""
    return [text] if words is None else split_passages(text, words)
