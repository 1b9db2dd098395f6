"""Requests and answers about a reader's work on a collection."""

from typing import Annotated

from pydantic import BaseModel, Field, RootModel

from narrlit.explore.analysis_answers import NamedStory
from narrlit.explore.pair_decisions import Decision
from narrlit.explore.project import Change, EditChange, ListChange, NoteChange, SettingChange, SettingName


class ChangeBody(
    RootModel[Annotated[ListChange | NoteChange | EditChange | SettingChange, Field(discriminator="kind")]]
):
    """Change of a list, a note, values of columns or a setting; decisions have routes of their own."""


class ListAnswer(BaseModel):
    """List of stories, in the order in which they were put on it; the list without a name has the name ""."""

    name: str
    stories: list[NamedStory]


class NoteAnswer(BaseModel):
    """Note and tags on a story or a passage, whose place is counted in characters."""

    story: NamedStory
    start: int | None
    end: int | None
    passage: str | None
    text: str
    tags: list[str]
    at: str | None


class ProjectAnswer(BaseModel):
    """A reader's work on a collection.

    Attributes:
        lists: lists of stories.
        notes: notes and tags.
        settings: what was chosen: the column beside titles (`label`), and that of a map's colors (`color`).
        changes: number of changes that can be undone.
        can_redo: the last step was an undo.
    """

    lists: list[ListAnswer]
    notes: list[NoteAnswer]
    settings: dict[SettingName, str]
    changes: int
    can_redo: bool


class HistoryAnswer(BaseModel):
    """The last changes, newest first, and the stories that they name."""

    changes: list[Change]
    stories: list[NamedStory]


class ImportedAnswer(BaseModel):
    """Number of changes that were added."""

    changes: int


class DecidedPair(BaseModel):
    """Pair that a reader has decided."""

    left: NamedStory
    right: NamedStory
    decision: Decision
    reader: str


class DecidedValue(BaseModel):
    """Story whose value in a column was accepted, or rejected (null)."""

    story: NamedStory
    value: str | None
