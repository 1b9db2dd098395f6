"""Figures of fits: accuracies of single fits and over folds and seeds, and differences on the same triples."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from narrlit.data.schema import FloatArray
from narrlit.experiments.fitting import deciding_callbacks
from narrlit.experiments.plan import FinishedFit, FitsResult
from narrlit.experiments.run import BEST, LAST, REFERENCE
from narrlit.results import Note, Row, difference, estimate
from narrlit.results.formatting import ALL
from narrlit.statistics.significance import SharedStories

COLUMNS = ("system", "run", "fold", "seed", "metric", "epoch", "triple", "right", "stories", "ties")
LEVELS = ("seed", "fold")
"""Columns over which accuracies are summarized, the outer one first."""


def fit_answers(fits: Sequence[FinishedFit]) -> pd.DataFrame:
    """Tabulate the answers of fits to their validation triples.

    Returns:
        The columns of `Run.answers`, and system, run, fold (None without folds) and seed. The metric `reference` is
        left out for a system if not every fit of it has one.
    """
    parts = []
    for planned, run in fits:
        fold = None if planned.fold is None else planned.fold.fold
        parts.append(run.answers().assign(system=planned.system, run=planned.name, fold=fold, seed=planned.seed))
    answers = pd.concat(parts, ignore_index=True)[list(COLUMNS)]
    num_fits = answers.groupby("system")["run"].transform("nunique")
    num_evaluated = answers.groupby(["system", "metric"])["run"].transform("nunique")
    return answers[num_evaluated == num_fits]


def fit_figures(answers: pd.DataFrame) -> list[Row]:
    """Compute the accuracies of systems over all their fits, then by seed, and by fold, where there are several."""
    levels = _levels(answers)
    rows = []
    for depth in range(len(levels) + 1):
        rows += figures_by(answers, levels[:depth])
    return rows


def figures_by(answers: pd.DataFrame, keys: Sequence[str] = (), subset: str = ALL) -> list[Row]:
    """Compute the accuracies of systems by the given columns.

    An accuracy over several seeds is the mean share of seeds that answer a triple correctly. Over all fits, `deviation`
    is the sample standard deviation between the seeds or, without several, the folds.
    """
    rows = []
    for (system, *values, metric), part in answers.groupby(["system", *keys, "metric"], sort=False):
        columns = dict(zip(keys, values, strict=True))
        levels = _levels(part)
        if levels and not keys:
            columns["deviation"] = _accuracies(part, levels[0]).std(skipna=False)
        if not levels:
            columns["epoch"] = part["epoch"].iloc[0]
        if subset == ALL:  # ties are only known of whole evaluations
            columns["ties"] = int(part.drop_duplicates("run")["ties"].sum())
        right, shared = _over_fits(part)
        rows.append(estimate(right, shared).row(system, f"accuracy_{metric}", subset, **columns))
    return rows


def fit_differences(answers: pd.DataFrame, against: str) -> list[Row]:
    """Compare systems with one of them on the same triples, after the last and in the best epoch, over all fits.

    `deviation` is the sample standard deviation of the difference between the seeds or, without several, the folds.
    """
    levels = _levels(answers)
    rows = []
    for metric in (LAST, BEST):
        evaluated = answers[answers["metric"] == metric]
        base = evaluated[evaluated["system"] == against]
        right_of_base, shared = _over_fits(base)
        for system, part in evaluated[evaluated["system"] != against].groupby("system", sort=False):
            right, _ = _over_fits(part)
            columns = {}
            if levels:
                differences = _accuracies(part, levels[0]) - _accuracies(base, levels[0])
                columns["deviation"] = differences.std(skipna=False)
            found = difference(right, right_of_base, shared)
            rows.append(found.row(str(system), against, f"accuracy_{metric}", **columns))
    return rows


def reference_differences(answers: pd.DataFrame) -> list[Row]:
    """Compare a system with the encoder before training, which is the same in every epoch; no rows without one."""
    before = answers[answers["metric"] == REFERENCE].assign(system=REFERENCE)
    if before.empty:
        return []
    in_every_epoch = [before.assign(metric=metric) for metric in (LAST, BEST)]
    return fit_differences(pd.concat([answers, *in_every_epoch]), REFERENCE)


def fit_notes(fits: Sequence[FinishedFit], answers: pd.DataFrame) -> list[Note]:
    """Say which epochs the accuracies are of and what selected these, and what else they depend on."""
    notes = []
    trained: dict[str, None] = {}
    flags: dict[str, dict[str, None]] = {}
    deciding: dict[str, None] = {}
    for planned, run in fits:
        flags.setdefault(planned.system, {}).update(dict.fromkeys(run.record.flags.names))
        if run.record.flags.trained_on_validation:
            trained[planned.system] = None
        deciding.update(dict.fromkeys(f"{name} in {planned.system}" for name in deciding_callbacks(planned.config)))
    if trained:
        notes.append(Note.of("no_result", systems=list(trained)))
    undefined = answers.loc[answers["right"].isna(), "system"]
    if len(undefined):
        notes.append(Note.of("nan_scores", systems=list(dict.fromkeys(undefined))))
    notes.append(Note.of("last_epoch_decided", callbacks=list(deciding)) if deciding else Note.of("last_epoch"))
    notes.append(Note.of("best_epoch", n=sum(len(run.record.validations) for _, run in fits)))
    if (answers["metric"] == REFERENCE).any():
        notes.append(Note.of("reference"))
    for level in _levels(answers)[:1]:
        notes.append(Note.of("deviation_over_seeds" if level == "seed" else "deviation_over_folds"))
    for system, names in flags.items():
        if names:
            notes.append(Note.of("flags", system=system, flags=list(names)))
    tied = answers[answers["ties"] > 0].drop_duplicates(["run", "metric"])
    if len(tied):
        notes.append(Note.of("ties", n=int(tied["ties"].sum()), systems=list(dict.fromkeys(tied["system"]))))
    return notes


def fits_result(
    name: str,
    folder: Path,
    fits: Sequence[FinishedFit],
    answers: pd.DataFrame,
    differences: Sequence[Row],
    *,
    figures: Sequence[Row] = (),
    settings: Mapping[str, object] | None = None,
    notes: Sequence[Note] = (),
) -> FitsResult:
    """Make the result of fits.

    Args:
        name: name of the experiment.
        folder: folder of the runs.
        fits: the fits.
        answers: their answers.
        differences: differences of systems.
        figures: figures in addition to those of the fits.
        settings: settings in addition to those of the fits: run, system, seed, fold, number of evaluations and flags.
        notes: notes in addition to those of the fits.
    """
    described = []
    for planned, run in fits:
        row = {"run": planned.name, "system": planned.system, "seed": planned.seed}
        if planned.fold is not None:
            sizes = ("fold", "groups", "trained", "evaluated", "left_out", "synthetic")
            row |= {size: getattr(planned.fold, size) for size in sizes}
        described.append(row | {"num_evaluations": len(run.record.validations), "flags": run.record.flags.names})
    shown = answers.drop(columns=["stories", "ties"] if answers["fold"].notna().any() else ["stories", "ties", "fold"])
    shown = shown.astype({"epoch": "Int64", "right": "Int64"})  # whole numbers, also with empty cells
    return FitsResult.of(
        name,
        [*fit_figures(answers), *figures],
        differences,
        answers=shown,
        settings={**(settings or {}), "fits": described},
        notes=[*fit_notes(fits, answers), *notes],
        folder=folder,
        runs={planned.name: run for planned, run in fits},
    )


def _levels(answers: pd.DataFrame) -> list[str]:
    """List the columns of which a system has several values: seed, fold."""
    by_system = answers.groupby("system")
    return [level for level in LEVELS if by_system[level].nunique().max() > 1]


def _accuracies(answers: pd.DataFrame, level: str) -> "pd.Series[float]":
    """Compute the accuracy of each seed or fold; NaN if a score was NaN."""
    return answers.groupby(level)["right"].agg(lambda right: right.mean(skipna=False))


def _over_fits(answers: pd.DataFrame) -> tuple[FloatArray, SharedStories]:
    """Return the share of fits that answer each of N triples correctly, and which triples share stories.

    The shares (N,) are NaN if a score was NaN; triples whose stories are unknown count as independent.
    """
    triples = answers.groupby(["fold", "triple"], dropna=False).agg({"right": "mean", "stories": "first"})
    right = triples["right"].to_numpy(np.float64)
    if answers["right"].isna().any():
        right = np.full(len(triples), np.nan)
    known = triples["stories"].notna().all()
    return right, SharedStories(triples["stories"].tolist() if known else np.arange(len(triples))[:, None])
