"""Result of a reproduction: each cell next to the published figure, and the difference with its interval."""

import math
from collections.abc import Sequence
from typing import Any

from narrlit.errors import DataError
from narrlit.experiments.reproduction.record import RecordedCell, ReproductionRecord
from narrlit.experiments.reproduction.tables import PaperTables, TableCell
from narrlit.experiments.systems import flag_words
from narrlit.results import Difference, Note, Result, Row
from narrlit.statistics.significance import difference_interval

PUBLISHED = "published"
UNLABELED = str(DataError("labels_not_given"))
"""Reason why a cell of test triples without labels was not run."""


def reproduction_result(tables: PaperTables, record: ReproductionRecord, cells: Sequence[TableCell]) -> Result:
    """Compare cells with the published figures; cells that are not in the record are omitted.

    Args:
        tables: tables of the paper.
        record: record of the reproduction.
        cells: cells in the order of the result.
    """
    computed = [cell for cell in cells if cell.key in record.cells]
    figures: list[Row] = []
    differences: list[Row] = []
    for cell in computed:
        recorded = record.cells[cell.key]
        accuracy = recorded.estimate
        reason = why_not_compared(cell, recorded)
        about: dict[str, Any] = {
            PUBLISHED: cell.published,
            "deviation": recorded.standard_deviation,
            "flags": ", ".join(flag_words(recorded.flags)) or None,
            "reason": reason,
        }
        figures.append(accuracy.row(cell.name, subset=subset_of(record, cell), **about))
        if reason is None and cell.published is not None:
            ends = (math.nan, math.nan)
            if cell.published_n:
                ends = difference_interval(accuracy.value, accuracy.n, cell.published, cell.published_n)
            difference = Difference(accuracy.value - cell.published, *ends, math.nan, "none", accuracy.n)
            differences.append(difference.row(cell.name, PUBLISHED, subset=subset_of(record, cell)))
    shown = {number: tables.tables[number].shows for number in dict.fromkeys(cell.table for cell in computed)}
    settings = {**record.model_dump(exclude={"cells"}), "tables": shown}
    notes = [Note.of("paper_table", number=number, shows=shows) for number, shows in shown.items()]
    notes += [*_input_notes(record, computed), *_accuracy_notes(record, computed), *_gap_notes(record, computed)]
    if differences:
        notes.append(Note.of("to_published"))
    return Result.of("reproduce", figures, differences, settings=settings, notes=notes)


def subset_of(record: ReproductionRecord, cell: TableCell) -> str:
    """Name the subset of a cell's figure by its system, table and column."""
    return f"{record.system}, table {cell.table}: {cell.column}"


def why_not_compared(cell: TableCell, recorded: RecordedCell) -> str | None:
    """Return the reason why a cell has no difference to the published figure; None if it has one."""
    if recorded.not_run is not None:
        return UNLABELED if recorded.not_run == UNLABELED else "not run"
    if recorded.accuracy is None:
        return "scores are NaN"
    if cell.split == "dev" and {"trained_on_validation", "mined_validation"} & recorded.flags.keys():
        return "trained on validation: no result"
    return "no published figure" if cell.published is None else None


def _input_notes(record: ReproductionRecord, cells: Sequence[TableCell]) -> list[Note]:
    """List the stand-ins for the paper's encoder and files, and the options of the fits."""
    notes = []
    encoders = sorted({record.cells[cell.key].stand_in or "" for cell in cells} - {""})
    if encoders:
        notes.append(Note.of("stand_in", name="encoder", text=encoders))
    for name, text in record.stand_ins.items():
        notes.append(Note.of("stand_in", name=name, text=text))
    if record.options:
        notes.append(Note.of("fit_options", options=record.options_text))
    return notes


def _accuracy_notes(record: ReproductionRecord, cells: Sequence[TableCell]) -> list[Note]:
    """Explain the accuracies."""
    notes = []
    if record.seeds > 1:
        notes.append(Note.of("mean_of_seeds", n=record.seeds))
    if any(cell.split == "CV" for cell in cells):
        notes.append(Note.of("paper_cross_validation"))
    if any(cell.split == "dev" and "num_evaluations" in record.cells[cell.key].flags for cell in cells):
        notes.append(Note.of("paper_best_epoch"))
    return notes


def _gap_notes(record: ReproductionRecord, cells: Sequence[TableCell]) -> list[Note]:
    """Explain cells without a result, with a remedy."""
    reasons = list(dict.fromkeys(record.cells[cell.key].not_run or "" for cell in cells))
    notes = [Note.of("not_run", reason=reason) for reason in reasons if reason not in ("", UNLABELED)]
    if any(reason.endswith("is not available") for reason in reasons):
        notes.append(Note.of("absent_encoders"))
    if UNLABELED in reasons:
        notes.append(Note.of("absent_labels"))
    return notes
