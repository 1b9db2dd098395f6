"""Report on a reproduction: each cell next to the published figure, differences with intervals, and notes."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from narrlit.experiments.report import Entry, Report
from narrlit.experiments.reproduction.inputs import UNLABELED
from narrlit.experiments.reproduction.record import CellResult, Record
from narrlit.experiments.reproduction.tables import Cell, PaperTables
from narrlit.experiments.systems import flag_words
from narrlit.metrics.significance import difference_interval

NOT_RUN = "not run"
TRAINED = "trained on validation: no result"
CROSS_VALIDATED = (
    "CV: accuracy after the last epoch; folds share no stories, and synthetic triples are not evaluated. The paper "
    "does not say which or how many triples its folds evaluate."
)
BEST_EPOCH = "Dev: for trained rows, the best epoch on the same triples, which is too high because of this selection."
ABSENT = "Encoders that are not available: give their folders with `backbones`; they are recognized by name."
NO_LABELS = "Test labels: put them into test/labels/ in the folder of `data`, or give `labels_a` and `labels_b`."
DIFFERENCE = (
    "Ours - published: difference with its 95 % interval for independent answers (Newcombe), which is usually too wide "
    "if both answer the same triples. If it contains 0, neither a difference nor equality is shown."
)


@dataclass(frozen=True)
class ComparedCell:
    """Published figure and our result.

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
    def is_of_best_epoch(self) -> bool:
        """True if the result is that of the best epoch on the same triples."""
        return self.cell.split == "dev" and "num_evaluations" in self.result.flags

    @property
    def difference(self) -> float | None:
        """Our accuracy minus the published one; None if they are not comparable."""
        published, accuracy = self.cell.published, self.result.accuracy
        if self.incomparable is not None or published is None or accuracy is None:
            return None
        return accuracy - published

    @property
    def difference_interval(self) -> list[float] | None:
        """95 % interval of the difference; None if the paper's n is unknown."""
        cell, result = self.cell, self.result
        if self.difference is None or not cell.published_n:
            return None
        return list(difference_interval(result.accuracy or 0, result.n or 0, cell.published or 0, cell.published_n))

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
        published, result = self.cell.published, self.result
        cells = {
            "row": self.cell.name,
            "column": self.cell.column,
            "published": "" if published is None else f"{published:.4f}".removesuffix("0"),
            "ours": "",
            "95 % interval": "",
            "n": "",
            "ours - published": self._difference_cell(),
            "flags": ", ".join(flag_words(result.flags)),
        }
        if result.accuracy is not None:
            cells["ours"] = self._accuracy_cell()
            cells["95 % interval"] = _interval(result.interval or [], "{:.3f}")
            cells["n"] = str(result.n)
        return cells

    def _accuracy_cell(self) -> str:
        """Format the accuracy with its standard deviation, if any."""
        accuracy, deviation = self.result.accuracy, self.result.standard_deviation
        return f"{accuracy:.3f}" if deviation is None else f"{accuracy:.3f} ± {deviation:.3f}"

    def _difference_cell(self) -> str:
        """Format the difference, or the reason why there is none."""
        reason = self.incomparable
        if reason is not None:
            return NOT_RUN if reason.startswith(NOT_RUN) else reason
        if self.difference_interval is None:
            return f"{self.difference:+.3f} (the paper's n is unknown)"
        return f"{self.difference:+.3f} {_interval(self.difference_interval, '{:+.3f}')}"


def _interval(ends: Sequence[float], form: str) -> str:
    """Format the ends of an interval."""
    return f"[{', '.join(map(form.format, ends))}]"


def reproduction_report(system: str, tables: PaperTables, record: Record, cells: Sequence[Cell]) -> Report:
    """Compare cells with the published figures; cells that are not in the record are omitted.

    Args:
        system: system whose tables are computed.
        tables: tables of its paper.
        record: record of the reproduction.
        cells: cells in the order of the report.
    """
    compared = [ComparedCell(cell, record.cells[cell.key]) for cell in cells if cell.key in record.cells]
    records = [comparison.as_dict() for comparison in compared]
    intervals = {}
    for entry in records:
        if entry.get("accuracy") is not None:
            intervals[f"{entry['row']}, {entry['column']}"] = entry
    return Report(
        content={**record.model_dump(exclude={"cells"}), "cells": records},
        tables=_tables(system, tables, compared),
        notes=_notes(record, compared),
        records=records,
        intervals=intervals,
    )


def _tables(system: str, tables: PaperTables, compared: Sequence[ComparedCell]) -> dict[str, list[dict[str, object]]]:
    """Format the cells by the title of their table; the column of flags is omitted if there are none."""
    flagged = any(comparison.result.flags for comparison in compared)
    formatted: dict[str, list[dict[str, object]]] = {}
    for comparison in compared:
        number = comparison.cell.table
        row: dict[str, object] = {**comparison.cells()}
        if not flagged:
            del row["flags"]
        formatted.setdefault(f"{system}, table {number}: {tables.tables[number].shows}", []).append(row)
    return formatted


def _notes(record: Record, compared: Sequence[ComparedCell]) -> list[str]:
    """Explain the tables: stand-ins, figures, and cells without a result."""
    return [*_notes_on_inputs(record, compared), *_notes_on_accuracies(record, compared), *_notes_on_gaps(compared)]


def _notes_on_inputs(record: Record, compared: Sequence[ComparedCell]) -> list[str]:
    """List the stand-ins for the paper's encoder and files, and the options of the fits."""
    notes = []
    encoders = set()
    for comparison in compared:
        if comparison.result.stand_in:
            encoders.add(comparison.result.stand_in)
    if encoders:
        notes.append(f"Encoder: {', '.join(sorted(encoders))}.")
    for name, text in record.stand_ins.items():
        notes.append(f"{name.capitalize()}: {text}.")
    if record.options:
        notes.append(f"Options of the fits, in addition to those of the tables: {shlex.join(record.options)}.")
    return notes


def _notes_on_accuracies(record: Record, compared: Sequence[ComparedCell]) -> list[str]:
    """Explain the accuracies."""
    notes = []
    if record.seeds > 1:
        notes.append(
            f"Trained rows: mean ± standard deviation over {record.seeds} seeds; interval of a single evaluation."
        )
    if any(comparison.cell.split == "CV" for comparison in compared):
        notes.append(CROSS_VALIDATED)
    if any(comparison.is_of_best_epoch for comparison in compared):
        notes.append(BEST_EPOCH)
    return notes


def _notes_on_gaps(compared: Sequence[ComparedCell]) -> list[str]:
    """Explain empty cells with a remedy, and differences."""
    reasons = dict.fromkeys(comparison.incomparable or "" for comparison in compared)
    notes = []
    for reason in reasons:
        if reason.startswith(NOT_RUN):
            notes.append(f"{reason[:1].upper()}{reason[1:]}.")
    if any(reason.endswith("is not available") for reason in reasons):
        notes.append(ABSENT)
    if UNLABELED in reasons:
        notes.append(NO_LABELS)
    if any(comparison.difference is not None for comparison in compared):
        notes.append(DIFFERENCE)
    return notes
