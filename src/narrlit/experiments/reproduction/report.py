"""Report of a reproduction: each cell beside the published figure, the difference with its interval, and notes."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from narrlit.experiments.report import Entry, Report
from narrlit.experiments.reproduction.inputs import UNLABELED
from narrlit.experiments.reproduction.record import CellResult, Record
from narrlit.experiments.reproduction.tables import Cell, PaperTables
from narrlit.metrics.significance import difference_interval

NOT_RUN = "not run"
TRAINED = "trained on validation: no result"
CROSS_VALIDATED = (
    "CV: folds that share no story and evaluate no synthetic triple, after the last epoch; the paper says neither "
    "which triples its folds evaluate nor how many."
)
BEST_EPOCH = "Dev: of trained rows the best epoch on these very triples, too high by this selection."
ABSENT = "Absent encoders: `backbones` names folders of them, which are recognized by their names."
NO_LABELS = "Test labels: test/labels/ in the folder of `data`, or the files of `labels_a` and `labels_b`."
DIFFERENCE = (
    "Ours - published: with the 95 % interval of a difference between independent answers (Newcombe), as a rule too "
    "wide where both answer the same triples. With 0 in it neither a difference nor equality is shown."
)


@dataclass(frozen=True)
class ComparedCell:
    """A cell and its result, which are compared.

    >>> from narrlit.experiments.reproduction.tables import read_tables
    >>> cell = read_tables("mendel292").cells()[0]
    >>> compared = ComparedCell(cell, CellResult(n=200, accuracy=0.6))
    >>> cell.published, round(compared.difference, 3), [round(end, 3) for end in compared.difference_interval]
    (0.55, 0.05, [-0.047, 0.145])
    """

    cell: Cell
    result: CellResult

    @property
    def incomparable(self) -> str | None:
        """Reason why there is no difference to the published figure; None if there is one."""
        cell, result = self.cell, self.result
        if result.not_run is not None:
            return UNLABELED if result.not_run == UNLABELED else f"{NOT_RUN}: {result.not_run}"
        if result.accuracy is None:
            return "none: scores are NaN"
        trained = "trained_on_validation" in result.flags or "mined_validation" in result.flags
        if cell.split == "dev" and trained:
            return TRAINED
        return "no published figure" if cell.published is None else None

    @property
    def difference(self) -> float | None:
        """Our accuracy minus the published one; None where they are not comparable."""
        published, accuracy = self.cell.published, self.result.accuracy
        if self.incomparable is not None or published is None or accuracy is None:
            return None
        return accuracy - published

    @property
    def difference_interval(self) -> list[float] | None:
        """The 95 % interval of the difference; None where the paper's n is unknown."""
        cell, result = self.cell, self.result
        if self.difference is None or not cell.published_n:
            return None
        ends = difference_interval(result.accuracy or 0, result.n or 0, cell.published or 0, cell.published_n)
        return list(ends)

    def as_dict(self) -> Entry:
        """Convert to JSON values."""
        cell = self.cell
        entry: Entry = {
            "table": cell.table,
            "row": cell.name,
            "column": cell.column,
            "published": cell.published,
            "published_n": cell.published_n,
            **self.result.model_dump(exclude_unset=True),
            "incomparable": self.incomparable,
        }
        if self.difference is not None:
            entry |= {"difference": self.difference, "difference_interval": self.difference_interval}
        return entry

    def cells(self) -> dict[str, str]:
        """Format as a row of the report."""
        known = self.result.accuracy is not None
        flags = [name if value is True else f"{name} {value}" for name, value in self.result.flags.items()]
        published = self.cell.published
        return {
            "row": self.cell.name,
            "column": self.cell.column,
            "published": "" if published is None else f"{published:.4f}".removesuffix("0"),
            "ours": self._accuracy_cell() if known else "",
            "95 % interval": _interval(self.result.interval or [], "{:.3f}") if known else "",
            "n": str(self.result.n) if known else "",
            "ours - published": self._difference_cell(),
            "flags": ", ".join(flags),
        }

    def _accuracy_cell(self) -> str:
        """Format the accuracy, with its standard deviation where there is one."""
        spread = self.result.standard_deviation
        return f"{self.result.accuracy:.3f}" + ("" if spread is None else f" ± {spread:.3f}")

    def _difference_cell(self) -> str:
        """Format the difference, or why there is none."""
        reason = self.incomparable
        if reason is not None:
            return NOT_RUN if reason.startswith(NOT_RUN) else reason
        if self.difference_interval is None:
            return f"{self.difference:+.3f} (the paper's n is unknown)"
        return f"{self.difference:+.3f} {_interval(self.difference_interval, '{:+.3f}')}"


def _interval(ends: Sequence[float], form: str) -> str:
    """Format the ends of an interval."""
    return f"[{', '.join(form.format(end) for end in ends)}]"


def reproduction_report(system: str, tables: PaperTables, record: Record, cells: Sequence[Cell]) -> Report:
    """Compare cells with the published figures; those that the record lacks are left out.

    Args:
        system: whose tables are computed.
        tables: of its paper.
        record: of the reproduction.
        cells: in the order of the report.
    """
    compared = [ComparedCell(cell, record.cells[cell.key]) for cell in cells if cell.key in record.cells]
    records = [each.as_dict() for each in compared]
    content = record.model_dump(exclude={"cells"})
    intervals = {}
    for each, entry in zip(compared, records, strict=True):
        if each.result.accuracy is not None:
            intervals[f"{each.cell.name}, {each.cell.column}"] = entry
    return Report(
        content={**content, "cells": records},
        tables=_tables(system, tables, compared),
        notes=_notes(record, compared),
        records=records,
        intervals=intervals,
    )


def _tables(system: str, tables: PaperTables, compared: Sequence[ComparedCell]) -> dict[str, list[dict[str, object]]]:
    """Format the cells by the title of their table; without any flag there is no such column."""
    flagged = any(each.result.flags for each in compared)
    formatted: dict[str, list[dict[str, object]]] = {}
    for each in compared:
        number = each.cell.table
        row: dict[str, object] = {**each.cells()}
        if not flagged:
            del row["flags"]
        formatted.setdefault(f"{system}, table {number}: {tables.tables[number].shows}", []).append(row)
    return formatted


def _notes(record: Record, compared: Sequence[ComparedCell]) -> list[str]:
    """Explain the tables: what stood in, what was not run, what the figures are."""
    return [*_notes_on_inputs(record, compared), *_notes_on_accuracies(record, compared), *_notes_on_gaps(compared)]


def _notes_on_inputs(record: Record, compared: Sequence[ComparedCell]) -> list[str]:
    """Name what stood in for the paper's encoder and files, and the options of the fits."""
    notes = []
    encoders = sorted({each.result.stand_in for each in compared if each.result.stand_in})
    if encoders:
        notes.append(f"Encoder: {', '.join(encoders)}.")
    for name, text in record.stand_ins.items():
        notes.append(f"{name.capitalize()}: {text}.")
    if record.options:
        notes.append(f"Options of the fits, beside those of the tables: {shlex.join(record.options)}.")
    return notes


def _notes_on_accuracies(record: Record, compared: Sequence[ComparedCell]) -> list[str]:
    """Say what the accuracies are."""
    notes = []
    if record.seeds > 1:
        notes.append(f"Trained rows: mean ± standard deviation of {record.seeds} seeds; interval of one evaluation.")
    if any(each.cell.split == "CV" for each in compared):
        notes.append(CROSS_VALIDATED)
    if any(each.cell.split == "dev" and "num_evaluations" in each.result.flags for each in compared):
        notes.append(BEST_EPOCH)
    return notes


def _notes_on_gaps(compared: Sequence[ComparedCell]) -> list[str]:
    """Say why cells are empty and what to do about it, and what the differences are."""
    reasons = list(dict.fromkeys(each.incomparable or "" for each in compared))
    notes = [f"{reason[:1].upper()}{reason[1:]}." for reason in reasons if reason.startswith(NOT_RUN)]
    if any(reason.endswith("is absent") for reason in reasons):
        notes.append(ABSENT)
    if UNLABELED in reasons:
        notes.append(NO_LABELS)
    if any(each.difference is not None for each in compared):
        notes.append(DIFFERENCE)
    return notes
