"""Decisions on proposed values of a column: a file that only grows, and tables that are filled in."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from narrlit.data.row_file import FileRow, RowFile
from narrlit.data.rows import read_rows
from narrlit.data.schema import normal_form
from narrlit.errors import DataError, OptionError, printable
from narrlit.explore.decision_log import DecisionLog, EntryLog
from narrlit.explore.pair_decisions import require_columns

ACCEPTED, REJECTED = ("x", "yes", "y", "true", "1"), ("", "no", "n", "false", "0")
"""What the column `accepted` of a table may hold, in any case."""


class CatalogEntry(BaseModel):
    """Line of a file of decisions on proposed values.

    Attributes:
        id: id of the story.
        column: the column.
        value: the value; None: none of the proposed ones is right.
        accepted: True if the value is right; None: the decision is withdrawn.
        at: time of the decision in ISO format.
    """

    id: Annotated[str, Field(min_length=1)]
    column: str
    value: str | None
    accepted: bool | None
    at: str


class CatalogDecisions:
    """Decisions on proposed values in a file that only grows (JSON Lines), one for each story and column.

    A decision is on the disk when `add` returns, and survives a crash of the program. A later decision on a story
    replaces an earlier one.

    Attributes:
        path: the file, which need not exist.

    >>> decisions = CatalogDecisions(getfixture("tmp_path") / "catalog.jsonl")
    >>> decisions.add("ye_xian", "atu", "510A", accepted=True)
    >>> decisions.add("gilitrutt", "atu", None, accepted=False)
    >>> decisions.accepted("atu"), sorted(decisions.decided("atu"))
    ({'ye_xian': '510A'}, ['gilitrutt', 'ye_xian'])
    >>> decisions.delete("ye_xian", "atu")
    >>> decisions.accepted("atu"), sorted(decisions.decided("atu"))
    ({}, ['gilitrutt'])
    """

    def __init__(self, source: str | Path | EntryLog[CatalogEntry]) -> None:
        """Use a file of decisions, or another log of them."""
        self._log = DecisionLog(source, CatalogEntry) if isinstance(source, str | Path) else source
        self.path = self._log.path

    def add(self, id: str, column: str, value: str | None, *, accepted: bool) -> None:
        """Write a decision, which replaces an earlier one on the same story and column.

        Args:
            id: id of the story.
            column: the column.
            value: the value that is accepted or rejected; None: none of the proposed ones is right.
            accepted: True if the value is right.

        Raises:
            OptionError: if no value is accepted, or the file can't be written.
        """
        if accepted and not value:
            raise OptionError("no_accepted_value")
        self._append(id, column, value, accepted)

    def delete(self, id: str, column: str) -> None:
        """Withdraw the decision on a story and column; without one, nothing changes.

        Raises:
            OptionError: if the file can't be written.
        """
        if id in self._current(column):
            self._append(id, column, None, None)

    def _append(self, id: str, column: str, value: str | None, accepted: bool | None) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._log.append(CatalogEntry(id=id, column=column, value=value, accepted=accepted, at=now))

    def accepted(self, column: str) -> dict[str, str]:
        """Return the accepted values of a column, by id of the story.

        Raises:
            DataError: if the file is damaged.
        """
        values = {}
        for id, entry in self._current(column).items():
            if entry.accepted and entry.value is not None:
                values[id] = entry.value
        return values

    def decided(self, column: str) -> set[str]:
        """Return the ids of the stories whose value in a column has been accepted or rejected.

        Raises:
            DataError: if the file is damaged.
        """
        return set(self._current(column))

    def _current(self, column: str) -> dict[str, CatalogEntry]:
        """Return the last entry of each story, unless it withdraws the decision."""
        last = {entry.id: entry for entry in self._log if entry.column == column}
        return {id: entry for id, entry in last.items() if entry.accepted is not None}


def read_accepted(path: str | Path) -> dict[str, str]:
    r"""Read accepted values from a table of proposals that has been filled in.

    Args:
        path: table with the columns id, value and accepted: x, yes, true or 1 where the value is right. A value may be
            changed, too.

    Returns:
        The accepted value of each story, by id.

    Raises:
        DataError: if the table can't be read, a column is missing, or two values of a story are accepted.

    >>> table = getfixture("tmp_path") / "proposals.csv"
    >>> _ = table.write_text("id,value,accepted\na,510A,x\na,500,\nb,333,no\n")
    >>> read_accepted(table)
    {'a': '510A'}
    """
    file = read_rows(path)
    require_columns(file, ("id", "value", "accepted"))
    accepted: dict[str, str] = {}
    for row in file.rows:
        if not _is_accepted(file, row):
            continue
        id, value = normal_form(str(row.value["id"])), row.value.get("value")
        if value in (None, ""):
            raise DataError("empty_accepted_value", place=file.place(row))
        if id in accepted:
            raise DataError("second_accepted_value", place=file.place(row), id=printable(id, 60))
        accepted[id] = str(value)
    return accepted


def _is_accepted(file: RowFile, row: FileRow) -> bool:
    """Read the cell `accepted` of a row."""
    cell = row.value.get("accepted")
    word = "" if cell is None else str(cell).strip().lower()
    if word not in (*ACCEPTED, *REJECTED):
        raise DataError("invalid_acceptance", place=file.place(row), found=printable(word, 30))
    return word in ACCEPTED
