"""Training examples from versions of the same story, which have the same value in a column."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from narrlit.console import counted
from narrlit.data.readers import ReadReport, Stories, parse_stories, read_stories
from narrlit.data.row_file import column_names
from narrlit.data.schema import ASPECTS, StoryTable, TrainingExample, normal_form, normal_text
from narrlit.data.twice_told import training_rows
from narrlit.errors import DataError, OptionError, printable, reading
from narrlit.preprocessing.passages import positions, split_passages
from narrlit.preprocessing.renaming import find_names, rename

TWICE_TOLD = "twice-told"
"""Name of the training data of Twice Told, in place of a file of versions."""
LEAST_DIFFERENCE = 0.01
"""Added to the differences of versions, so that copies are drawn too where there are no others."""


@dataclass(frozen=True)
class VersionSampling:
    """Stories with several versions, such as tales of a type, films of a work, or retellings of a plot.

    Attributes:
        files: tables of stories, or `twice-told`, the training data of the corpus that comes with narrlit.
        same: column with the same value for all versions of a story; stories without a value are not used.
        setting: column of a property that a story shares with stories that are not its versions, such as place, author
            or collection; None: no such column.
        setting_share: share of the examples, 0 to 1, that are put in batches with a single setting, so that the model
            learns to ignore the setting. Needs `setting`.
        versions: maximum number of other versions that each story is paired with per epoch, drawn in proportion to how
            much their words differ.
        renamed: share of the pairs, 0 to 1, in which all names are replaced, by other ones in each story, so that the
            model learns to ignore names. Names are found by their capitals, so not in German.
        near: table of two groups in each row, separated by tabs (.tsv) or commas, whose stories are too similar to be
            each other's negatives; they are never in one batch. None: there are none.
        passage_words: number of words of the passages into which longer stories are split. Each passage is paired with
            the passage at the same relative position of the other version. None: stories are not split.
    """

    files: str | list[str] | None = None
    same: str = "plot"
    setting: str | None = None
    setting_share: float = 0.5
    versions: int = 3
    renamed: float = 0.0
    near: str | None = None
    passage_words: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.renamed <= 1:
            raise OptionError("config_value", option="versions.renamed", found=self.renamed, needed="between 0 and 1")
        if not 0 <= self.setting_share <= 1:
            raise OptionError(
                "config_value", option="versions.setting_share", found=self.setting_share, needed="between 0 and 1"
            )
        if self.versions < 1:
            raise OptionError(
                "config_value", option="versions.versions", found=self.versions, needed="a positive number"
            )
        if self.passage_words is not None and self.passage_words < 1:
            raise OptionError(
                "config_value", option="versions.passage_words", found=self.passage_words, needed="a positive number"
            )

    @property
    def sources(self) -> list[str]:
        """The files as a list."""
        return [self.files] if isinstance(self.files, str) else list(self.files or [])


@dataclass(frozen=True)
class Version:
    """A version of a story.

    Attributes:
        passages: (P,) story indices of its passages in order, or the single index of a story that is not split.
        renamed: the same with other names.
        setting: its setting; None: unknown.
        words: its distinct words in lower case.
    """

    passages: Sequence[int]
    renamed: Sequence[int]
    setting: str | None
    words: frozenset[str]

    def parts(self, renamed: bool) -> Sequence[int]:
        """Return the story indices of its passages, with other names if `renamed`."""
        return self.renamed if renamed else self.passages

    def difference(self, other: "Version") -> float:
        """Compute the share of the words of both that only one of them has, from 0 to 1."""
        either = len(self.words | other.words)
        return len(self.words ^ other.words) / max(either, 1)


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

    def negatives(self, positive: Version) -> list[tuple[Version, str]]:
        """Select the hard negatives with the same setting as a positive, each with the aspect in which it differs."""
        return [(story, aspect) for story, aspect in self.changed if story.setting == positive.setting]


@dataclass(frozen=True)
class ReadVersions:
    """Training examples of versions, with reports on their files.

    Attributes:
        examples: pairs of versions, with changed stories as hard negatives.
        reports: report of the reader for each file.
        num_stories: number of versions in groups of at least two.
        num_groups: number of groups of at least two versions.
        originals: texts before their names were replaced; empty if they were not.
    """

    examples: list[TrainingExample]
    reports: list[ReadReport]
    num_stories: int
    num_groups: int
    originals: list[str]

    def summary(self) -> str:
        """Summarize the numbers of stories, groups and examples in one line."""
        return (
            f"versions: {self.num_stories:,} stories in {counted(self.num_groups, 'group')} of two or more, "
            f"{counted(len(self.examples), 'training example')}"
        )


def read_versions(settings: VersionSampling, strict: bool, stories: StoryTable) -> ReadVersions:
    """Read versions, and pair them.

    Args:
        settings: files and columns.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        stories: table to which the stories are added.

    Raises:
        DataError: if a file can't be read, a column is missing, or a story is in two groups.
        OptionError: if no group has two versions.
    """
    read = list(_read_rows(settings, strict))
    reports = [table.report for table, _ in read]
    rows = [row for _, of_table in read for row in of_table]
    names = find_names(row.text for row in rows) if settings.renamed else []
    rng = np.random.default_rng(0)
    grouped = GroupedVersions()
    index_of: dict[str, int] = {}  # copies of a passage have the index of the first one

    def add_passages(text: str) -> list[int]:
        passages = []
        for passage in _passages(text, settings.passage_words):
            normal = normal_text(passage)
            if normal not in index_of:
                index_of[normal] = stories.add(passage)
            passages.append(index_of[normal])
        return passages

    for row in rows:
        passages = add_passages(row.text)
        renamed = add_passages(rename(row.text, names, rng)) if settings.renamed else passages
        grouped.add(row, Version(passages, renamed, row.setting, frozenset(row.text.lower().split())))
    near = _read_near(settings.near)
    examples: list[TrainingExample] = []
    num_stories = num_groups = 0
    for name, group in grouped.groups.items():
        if len(group.versions) > 1:
            for example in pair_versions(group, name, settings, rng):
                examples.append(replace(example, near=tuple(near.get(normal_form(name), ()))))
            num_stories += len(group.versions)
            num_groups += 1
    if settings.sources and not num_groups:
        raise OptionError("no_same_value", option="data.versions.same", column=settings.same)
    originals = [row.text for row in rows] if settings.renamed else []
    return ReadVersions(examples, reports, num_stories, num_groups, originals)


def pair_versions(
    group: Group, name: str, settings: VersionSampling, rng: np.random.Generator
) -> Iterator[TrainingExample]:
    """Create the training examples of a group: each version, as the anchor, with some of the others.

    Args:
        group: group of two or more versions.
        name: name of the group.
        settings: number of other versions for each, and share of pairs with other names.
        rng: source of the choice.
    """
    count = len(group.versions)
    for number, anchor in enumerate(group.versions):
        others = [other for other in range(count) if other != number]
        differences = np.array([anchor.difference(group.versions[other]) for other in others]) + LEAST_DIFFERENCE
        size = min(settings.versions, len(others))
        for other in rng.choice(others, size, replace=False, p=differences / differences.sum()).tolist():
            positive, renamed = group.versions[other], bool(rng.random() < settings.renamed)
            changed = group.negatives(positive)
            aspects = tuple(aspect for _, aspect in changed)
            passages, of_positive = anchor.parts(renamed), positive.parts(renamed)
            for passage, position in zip(passages, positions(passages), strict=True):
                negatives = [_at(position, story.parts(renamed)) for story, _ in changed]
                yield TrainingExample(
                    passage,
                    _at(position, of_positive),
                    tuple(negatives),
                    aspects,
                    group=name,
                    setting=anchor.setting,
                )


def _at(position: float, passages: Sequence[int]) -> int:
    """Return the passage at a relative position, at least 0 and below 1."""
    return passages[int(position * len(passages))]


def _read_near(file: str | None) -> dict[str, list[str]]:
    """Read pairs of groups: the groups near each group, in both directions.

    Raises:
        DataError: if the file can't be read, or a row has fewer than two groups.
    """
    near: dict[str, list[str]] = {}
    if file is None:
        return near
    with reading("unreadable_pairs", file):
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    rows = (line.split("\t") for line in lines) if file.endswith(".tsv") else csv.reader(lines)
    for number, row in enumerate(rows, 1):
        if not any(row):
            continue
        if len(row) < 2:
            raise DataError("one_column", path=file, line=number)
        first, second = map(normal_form, row[:2])
        near.setdefault(first, []).append(second)
        near.setdefault(second, []).append(first)
    return near


@dataclass(frozen=True)
class Columns:
    """Columns of a table of versions."""

    same: str
    setting: str | None

    @classmethod
    def of(cls, settings: VersionSampling) -> "Columns":
        """Return the columns that settings name, in the form of metadata."""
        return cls(normal_form(settings.same), None if settings.setting is None else normal_form(settings.setting))


TWICE_TOLD_COLUMNS = Columns("plot", "world")
CHANGED = "changed"
"""Column with the aspect in which a story differs from the versions of its group; empty for versions."""


@dataclass(frozen=True)
class VersionRow:
    """Row of a table of versions; `place` is its file and line, and `column` that of its group, for messages."""

    text: str
    group: str
    column: str
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

    def add(self, row: VersionRow, story: Version) -> None:
        """Add the story of a row to its group.

        Args:
            row: row of the story.
            story: indices of its passages.

        Raises:
            DataError: if a passage is also in another group.
        """
        for index in story.passages:
            group = self._group_of.setdefault(index, row.group)
            if group != row.group:
                raise DataError(
                    "story_in_two_groups",
                    place=row.place,
                    column=row.column,
                    group=printable(group, 60),
                    other=printable(row.group, 60),
                )
        self.groups.setdefault(row.group, Group()).add(story, row.changed)


def _read_rows(settings: VersionSampling, strict: bool) -> Iterator[tuple[Stories, list[VersionRow]]]:
    """Read each file: its table, and its rows that have a group."""
    for source in settings.sources:
        if source == TWICE_TOLD:
            table, columns = parse_stories(training_rows(), strict), TWICE_TOLD_COLUMNS
        else:
            table, columns = read_stories(source, strict), Columns.of(settings)
        yield table, list(_rows(table, columns))


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
            raise DataError(
                "unknown_change", place=place, column=CHANGED, found=printable(changed, 60), known=list(ASPECTS)
            )
        setting = None if columns.setting is None else _value(row, columns.setting)
        yield VersionRow(story.text, group, columns.same, setting, changed, place)


def _check_columns(table: Stories, columns: Columns) -> None:
    """Raise DataError if no row of a table has a column."""
    present = column_names(table.metadata)
    for name in (columns.same, columns.setting):
        if name is not None and name not in present:
            raise DataError("missing_columns", path=table.report.path, column=name, found=present or "none")


def _value(row: Mapping[str, object], column: str) -> str | None:
    """Return a row's value in a column as text; None if it is absent or empty."""
    value = row.get(column)
    return None if value in (None, "") else str(value)


def _passages(text: str, words: int | None) -> list[str]:
    """Split a text into passages of about `words` words; None: do not split it."""
    return [text] if words is None else split_passages(text, words)
