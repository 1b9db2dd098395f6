"""Decisions of readers whether two stories are versions of one story, in a file that only grows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import pandas as pd
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from narrlit.data.row_file import JSON_SUFFIXES, RowFile
from narrlit.data.rows import read_rows
from narrlit.data.schema import normal_form
from narrlit.data.writers import write_table
from narrlit.errors import DataError, OptionError, printable
from narrlit.explore.decision_log import DecisionLog, EntryLog
from narrlit.files import FRAME_SUFFIXES, check_writable
from narrlit.json_records import first_problem

Decision = Literal["same", "different", "unsure"]
"""Two stories are versions of one story; they are not; the reader can't tell."""
COLUMNS = ["id_a", "id_b", "decision", "reader"]
"""Columns of a table of decisions; other columns are ignored."""
ANONYMOUS = "reader"
"""Name of a reader who gave none."""


def _decision(value: object) -> object:
    """Read the cell of a decision, in any case; None: there is none."""
    if isinstance(value, str):
        return value.strip().lower() or None
    return value


def _text(value: object) -> object:
    """Read the cell of a name."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else value


CellText = Annotated[str, Field(coerce_numbers_to_str=True), BeforeValidator(_text), AfterValidator(normal_form)]
StoryId = Annotated[CellText, Field(min_length=1)]


@dataclass(frozen=True, order=True)
class StoryPair:
    """Two stories by their ids, in no order: `StoryPair.of("b", "a") == StoryPair.of("a", "b")`."""

    a: str
    b: str

    @classmethod
    def of(cls, one: str, other: str) -> "StoryPair":
        """Make a pair.

        Raises:
            OptionError: if both are the same story.
        """
        one, other = normal_form(one), normal_form(other)
        if one == other:
            raise OptionError("pair_of_itself", id=printable(one, 60))
        return cls(min(one, other), max(one, other))


@dataclass(frozen=True)
class PairDecision:
    """Decision of a reader on a pair of stories."""

    pair: StoryPair
    decision: Decision
    reader: str


class DecisionEntry(BaseModel):
    """Line of a file of decisions, or row of a table of them.

    Attributes:
        id_a: id of a story.
        id_b: id of the other.
        decision: the decision; None: it is withdrawn, or not made yet.
        reader: name of the reader.
        at: time of the decision in ISO format; None: unknown.
    """

    id_a: StoryId
    id_b: StoryId
    decision: Annotated[Decision | None, BeforeValidator(_decision)] = None
    reader: CellText = ""
    at: str | None = None

    @model_validator(mode="after")
    def _two_stories(self) -> Self:
        if self.id_a == self.id_b:
            raise ValueError("id_a and id_b are the same story")
        return self


class PairDecisions:
    """Decisions on pairs in a file that only grows (JSON Lines), one for each pair and reader.

    A decision is on the disk when `add` returns, and survives a crash of the program. A later decision of the same
    reader replaces an earlier one.

    Attributes:
        path: the file, which need not exist.

    >>> decisions = PairDecisions(getfixture("tmp_path") / "decisions.jsonl")
    >>> decisions.add("cinderella", "ye_xian", "same", "anna")
    >>> decisions.add("cinderella", "gilitrutt", "different", "anna")
    >>> decisions.delete("gilitrutt", "cinderella", "anna")
    >>> decisions.table().to_dict("records")
    [{'id_a': 'cinderella', 'id_b': 'ye_xian', 'decision': 'same', 'reader': 'anna'}]
    """

    def __init__(self, source: str | Path | EntryLog[DecisionEntry]) -> None:
        """Use a file of decisions, or another log of them."""
        self._log = DecisionLog(source, DecisionEntry) if isinstance(source, str | Path) else source
        self.path = self._log.path

    def __iter__(self) -> Iterator[PairDecision]:
        """Read the current decisions, in the order in which pairs were first decided.

        Raises:
            DataError: if the file is damaged.
        """
        return iter(current_decisions(self._log))

    def add(self, id_a: str, id_b: str, decision: Decision, reader: str = ANONYMOUS) -> None:
        """Write a decision, which replaces an earlier one of the same reader on the same pair.

        Args:
            id_a: id of a story.
            id_b: id of the other; their order has no meaning.
            decision: `same`: versions of one story; `different`; `unsure`.
            reader: name of the reader.

        Raises:
            OptionError: if there is no such decision, both ids are the same, or the file can't be written.
        """
        if decision not in get_args(Decision):
            raise OptionError("unknown_choice", option="decision", found=decision, known=get_args(Decision))
        self._append(id_a, id_b, decision, reader)

    def delete(self, id_a: str, id_b: str, reader: str = ANONYMOUS) -> None:
        """Withdraw the decision of a reader on a pair.

        Raises:
            OptionError: if there is none, or the file can't be written.
        """
        pair, name = StoryPair.of(id_a, id_b), _name(reader)
        decided = {(made.pair, made.reader) for made in self}
        if (pair, name) not in decided:
            raise OptionError("no_decision", name=printable(name, 60), a=pair.a, b=pair.b)
        self._append(id_a, id_b, None, reader)

    def table(self) -> pd.DataFrame:
        """Tabulate the current decisions: id_a, id_b, decision, reader."""
        return decision_table(self)

    def write(self, path: str | Path) -> None:
        """Write the current decisions as a table, which `read_decisions` reads back.

        Raises:
            DataError: if there is no decision.
            OptionError: if the suffix is not one of .csv, .tsv, .xlsx, .jsonl, .parquet.
        """
        check_writable(path, *FRAME_SUFFIXES)
        write_table(path, self.table().to_dict("records"))

    def _append(self, id_a: str, id_b: str, decision: Decision | None, reader: str) -> None:
        pair = StoryPair.of(id_a, id_b)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._log.append(DecisionEntry(id_a=pair.a, id_b=pair.b, decision=decision, reader=_name(reader), at=now))


def read_decisions(paths: Sequence[str | Path]) -> list[PairDecision]:
    r"""Read decisions from tables that readers have filled in, and from files of `PairDecisions`.

    Args:
        paths: tables with the columns id_a, id_b, decision (same, different, unsure, or empty) and, optionally, reader.
            Where a row names no reader, it is the name of the file without its suffix.

    Raises:
        DataError: if a file can't be read, or a row is invalid.

    >>> _ = (getfixture("tmp_path") / "anna.csv").write_text("id_a,id_b,decision\nx,y,same\nx,z,\n")
    >>> read_decisions([getfixture("tmp_path") / "anna.csv"])
    [PairDecision(pair=StoryPair(a='x', b='y'), decision='same', reader='anna')]
    """
    entries: list[DecisionEntry] = []
    for path in map(Path, paths):
        for entry in _entries(path):
            entries.append(entry if entry.reader else entry.model_copy(update={"reader": path.stem}))
    return current_decisions(entries)


def current_decisions(entries: Iterable[DecisionEntry]) -> list[PairDecision]:
    """Return the last decision of each reader on each pair, without those that are withdrawn."""
    current: dict[tuple[StoryPair, str], PairDecision] = {}
    for entry in entries:
        pair, reader = StoryPair.of(entry.id_a, entry.id_b), _name(entry.reader)
        if entry.decision is None:
            current.pop((pair, reader), None)
        else:
            current[pair, reader] = PairDecision(pair, entry.decision, reader)
    return list(current.values())


def decision_table(decisions: Iterable[PairDecision]) -> pd.DataFrame:
    """Tabulate decisions: id_a, id_b, decision, reader."""
    rows = [(made.pair.a, made.pair.b, made.decision, made.reader) for made in decisions]
    return pd.DataFrame(rows, columns=COLUMNS)


def require_columns(file: RowFile, names: Sequence[str]) -> None:
    """Check that a table has columns.

    Raises:
        DataError: if one is missing.
    """
    columns = file.columns
    for name in names:
        if name not in columns:
            present = ", ".join(printable(column, 30) for column in columns) or "none"
            raise DataError("missing_columns", path=file.path, column=name, found=present)


def _name(reader: str) -> str:
    """Return the name of a reader, also of one who gave none."""
    return normal_form(reader).strip() or ANONYMOUS


def _entries(path: Path) -> Iterator[DecisionEntry]:
    """Read the rows of a table, or the lines of a file of decisions.

    Raises:
        DataError: if the file can't be read, or a row is invalid.
    """
    if path.suffix.lower() in JSON_SUFFIXES and path.exists():
        yield from DecisionLog(path, DecisionEntry)
        return
    file = read_rows(path)
    require_columns(file, COLUMNS[:3])
    for row in file.rows:
        yield _entry(row.value, file.place(row))


def _entry(row: object, place: str) -> DecisionEntry:
    """Validate a row of a table of decisions."""
    try:
        return DecisionEntry.model_validate(row)
    except ValidationError as error:
        choices = ", ".join(get_args(Decision))
        raise DataError("invalid_decision", place=place, problem=first_problem(error), known=choices) from error
