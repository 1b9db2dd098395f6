"""A reader's work on a collection in one file that only grows: lists, notes, decisions, edits, settings."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from threading import RLock
from typing import Annotated, Generic, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, Field, RootModel

from narrlit.explore.catalog_decisions import CatalogDecisions, CatalogEntry
from narrlit.explore.decision_log import DecisionLog
from narrlit.explore.pair_decisions import DecisionEntry, PairDecisions, StoryId

SUFFIX = ".project.jsonl"
"""End of the name of the file, which begins with the name of the index and lies beside it."""
ShortText = Annotated[str, Field(max_length=200)]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]
SettingName = Literal["label", "color"]
"""The column beside titles; the column by which a map is colored."""


class _Recorded(BaseModel):
    """Line of a project.

    Attributes:
        at: time in ISO format; None: unknown.
        batch: name of the changes that are undone together; None: this one is undone alone.
    """

    at: str | None = None
    batch: str | None = None


class PairChange(DecisionEntry, _Recorded):
    """Decision on a pair of stories."""

    kind: Literal["pair"] = "pair"


class ValueChange(CatalogEntry, _Recorded):
    """Decision on a proposed value of a column."""

    kind: Literal["value"] = "value"
    at: str


class ListChange(_Recorded):
    """Change of a list of stories.

    Attributes:
        name: name of the list; empty: the one that needs no name.
        add: ids of stories that are put on it, in order.
        remove: ids of stories that are taken off it.
        deleted: the list itself is deleted.
    """

    kind: Literal["list"] = "list"
    name: ShortText
    add: list[StoryId] = []
    remove: list[StoryId] = []
    deleted: bool = False


class NoteChange(_Recorded):
    """Note and tags on a story or on a passage of it; without text and tags, it is removed.

    Attributes:
        id: id of the story.
        start: first character of the passage in the text; None: the note is on the story.
        end: character after the passage.
        passage: text of the passage.
        text: the note.
        tags: words by which notes are found.
    """

    kind: Literal["note"] = "note"
    id: StoryId
    start: Annotated[int | None, Field(ge=0)] = None
    end: Annotated[int | None, Field(ge=0)] = None
    passage: Annotated[str | None, Field(max_length=10_000)] = None
    text: Annotated[str, Field(max_length=100_000)] = ""
    tags: list[ShortText] = []

    @property
    def place(self) -> tuple[str, int | None, int | None]:
        """The story and its passage, of which each has one note."""
        return self.id, self.start, self.end


class EditChange(_Recorded):
    """Values that a reader has written into columns of stories.

    Attributes:
        ids: ids of the stories.
        values: the value of each column, which may be a new one; `title` is the title; empty: the cell is emptied.
    """

    kind: Literal["edit"] = "edit"
    ids: Annotated[list[StoryId], Field(min_length=1)]
    values: Annotated[dict[ColumnName, Annotated[str, Field(max_length=10_000)]], Field(min_length=1)]


class SettingChange(_Recorded):
    """Setting of the page; an empty value is a choice, too."""

    kind: Literal["setting"] = "setting"
    name: SettingName
    value: ShortText


class Undo(_Recorded):
    """The last change, or batch of changes, is undone."""

    kind: Literal["undo"] = "undo"


class Redo(_Recorded):
    """Redo of the change that was undone last."""

    kind: Literal["redo"] = "redo"


Change = PairChange | ValueChange | ListChange | NoteChange | EditChange | SettingChange
Entry = Change | Undo | Redo


class ProjectEntry(RootModel[Annotated[Entry, Field(discriminator="kind")]]):
    """Line of a project of any kind."""


Kind = TypeVar("Kind", PairChange, ValueChange)


class Project:
    """A reader's work on a collection, in a file that only grows (JSON Lines) beside its index.

    A change is on the disk when the method returns, and survives a crash of the program.

    Attributes:
        path: the file, which need not exist.

    >>> project = Project(getfixture("tmp_path") / f"tales.index{SUFFIX}")
    >>> project.add(ListChange(name="shoes", add=["cinderella", "ye_xian"]))
    >>> project.pairs.add("cinderella", "ye_xian", "same", "anna")
    >>> project.lists(), len(project.pairs.table())
    ({'shoes': ['cinderella', 'ye_xian']}, 1)
    >>> project.undo(), len(project.pairs.table())
    (True, 0)
    >>> project.redo(), len(project.pairs.table())
    (True, 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._log = DecisionLog(self.path, ProjectEntry)
        self._lock = RLock()
        self._read: tuple[tuple[int, int], list[list[Change]], list[list[Change]]] = ((0, 0), [], [])

    @property
    def revision(self) -> tuple[int, int]:
        """Size and time of the file, which differ after each change."""
        if not self.path.exists():
            return 0, 0
        status = self.path.stat()
        return status.st_size, status.st_mtime_ns

    def history(self) -> list[Change]:
        """List the changes that are not undone, oldest first.

        Raises:
            DataError: if the file is damaged.
        """
        done, _ = self._batches()
        return [change for batch in done for change in batch]

    @property
    def can_redo(self) -> bool:
        """True if the last step was an undo."""
        _, undone = self._batches()
        return bool(undone)

    @property
    def pairs(self) -> PairDecisions:
        """Decisions on pairs."""
        return PairDecisions(ChangesOfKind(self, PairChange))

    @property
    def values(self) -> CatalogDecisions:
        """Decisions on values of columns."""
        return CatalogDecisions(ChangesOfKind(self, ValueChange))

    def accepted(self) -> dict[str, dict[str, str]]:
        """Return the accepted values of each column, by id of the story, unless a later edit has replaced them."""
        accepted: dict[str, dict[str, str]] = defaultdict(dict)
        for change in self.history():
            if isinstance(change, EditChange):
                for column, id in product(change.values, change.ids):
                    accepted[column].pop(id, None)
            elif isinstance(change, ValueChange):
                accepted[change.column].pop(change.id, None)
                if change.accepted and change.value is not None:
                    accepted[change.column][change.id] = change.value
        return {column: values for column, values in accepted.items() if values}

    def edited(self) -> dict[str, dict[str, str]]:
        """Return the values that were written into each column, by id of the story; empty: the cell was emptied."""
        edited: dict[str, dict[str, str]] = defaultdict(dict)
        for change in self.history():
            if isinstance(change, EditChange):
                for column, value in change.values.items():
                    edited[column].update(dict.fromkeys(change.ids, value))
        return dict(edited)

    def lists(self) -> dict[str, list[str]]:
        """Return the ids of the stories of each list, in the order in which they were put on it."""
        lists: dict[str, dict[str, None]] = {}
        for change in self.history():
            if not isinstance(change, ListChange):
                continue
            if change.deleted:
                lists.pop(change.name, None)
                continue
            ids = lists.setdefault(change.name, {})
            for id in change.remove:
                ids.pop(id, None)
            ids.update(dict.fromkeys(change.add))
        return {name: list(ids) for name, ids in lists.items()}

    def notes(self) -> list[NoteChange]:
        """Return the notes, in the order in which they were first made."""
        notes: dict[tuple[str, int | None, int | None], NoteChange] = {}
        for change in self.history():
            if not isinstance(change, NoteChange):
                continue
            if change.text or change.tags:
                notes[change.place] = change
            else:
                notes.pop(change.place, None)
        return list(notes.values())

    def settings(self) -> dict[SettingName, str]:
        """Return the settings that were chosen."""
        return {change.name: change.value for change in self.history() if isinstance(change, SettingChange)}

    def add(self, change: Change) -> None:
        """Write a change.

        Raises:
            OptionError: if the file can't be written.
        """
        self._append(change if change.at else change.model_copy(update={"at": _now()}))

    def undo(self) -> bool:
        """Undo the last change, or batch of changes; return False if there is none.

        Raises:
            OptionError: if the file can't be written.
        """
        with self._lock:
            if not self.history():
                return False
            self._append(Undo(at=_now()))
            return True

    def redo(self) -> bool:
        """Do again what was undone last; return False if there is nothing.

        Raises:
            OptionError: if the file can't be written.
        """
        with self._lock:
            if not self.can_redo:
                return False
            self._append(Redo(at=_now()))
            return True

    def merge(self, path: str | Path) -> int:
        """Add the changes of another project, which are undone together; return their number.

        A later decision, note or setting replaces an earlier one of this project; lists of the same name are united.

        Raises:
            DataError: if the file can't be read, or is no project; nothing is added then.
            OptionError: if this project can't be written.
        """
        batch = uuid4().hex
        changes = [change.model_copy(update={"batch": batch}) for change in Project(path).history()]
        with self._lock:
            for change in changes:
                self.add(change)
        return len(changes)

    def _append(self, entry: Entry) -> None:
        self._log.append(ProjectEntry(entry))

    def _batches(self) -> tuple[list[list[Change]], list[list[Change]]]:
        """Read the changes that hold, and those that can be done again, by batches."""
        with self._lock:
            revision = self.revision
            if self._read[0] != revision:
                self._read = (revision, *_replay(entry.root for entry in self._log))
            _, done, undone = self._read
            return done, undone


class ChangesOfKind(Generic[Kind]):
    """Changes of one kind in a project, as a log of their own.

    Attributes:
        path: file of the project.
    """

    def __init__(self, project: Project, kind: type[Kind]) -> None:
        self.path = project.path
        self._project = project
        self._kind: type[Kind] = kind

    def __iter__(self) -> Iterator[Kind]:
        """Read the changes that are not undone."""
        return (change for change in self._project.history() if isinstance(change, self._kind))

    def append(self, entry: BaseModel) -> None:
        """Write a change.

        Raises:
            OptionError: if the file can't be written.
        """
        self._project.add(self._kind.model_validate(entry.model_dump()))


def adopt_decisions(project: Project, pairs: str | Path, values: str | Path) -> None:
    """Take over decisions from the separate files of earlier releases, if the project does not exist yet.

    Args:
        project: the project.
        pairs: file of `PairDecisions`.
        values: file of `CatalogDecisions`.
    """
    if project.path.exists():
        return
    for decision in DecisionLog(pairs, DecisionEntry):
        project.add(PairChange.model_validate(decision.model_dump()))
    for value in DecisionLog(values, CatalogEntry):
        project.add(ValueChange.model_validate(value.model_dump()))


def _replay(entries: Iterable[Entry]) -> tuple[list[list[Change]], list[list[Change]]]:
    """Follow changes, undone and redone ones; return the batches that hold, and those that can be done again."""
    done: list[list[Change]] = []
    undone: list[list[Change]] = []
    for entry in entries:
        if isinstance(entry, Undo):
            _move_last(done, undone)
        elif isinstance(entry, Redo):
            _move_last(undone, done)
        else:
            undone.clear()
            if entry.batch is not None and done and done[-1][-1].batch == entry.batch:
                done[-1].append(entry)
            else:
                done.append([entry])
    return done, undone


def _move_last(source: list[list[Change]], target: list[list[Change]]) -> None:
    if source:
        target.append(source.pop())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
