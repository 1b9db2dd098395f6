"""Report on a hyperparameter search: its trials, and the winner and the unchanged config on the other folds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from narrlit.datamodules.fold_data import FoldDescription
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.outcome import EVALUATIONS, REFERENCE, Outcome, compared, summary_of
from narrlit.experiments.plan import FinishedFit
from narrlit.experiments.report import Entry, Report
from narrlit.experiments.run import Run
from narrlit.metrics.significance import PairedComparison
from narrlit.models.run_file import Evaluation, Part


class Trial(Part):
    """Trial that has ended, and was not killed.

    Attributes:
        trial: number of the trial.
        run: name of the directory of its run.
        settings: settings by name.
        status: finished, pruned, failed or diverged.
        reason: reason why it ended early.
        best: evaluation with the highest accuracy; None if there is no accuracy.
        evaluations: evaluations on fold 0, by epoch.
        repeats: number of the killed trial that is repeated with the same settings.
    """

    trial: int
    run: str
    settings: dict[str, Any]
    status: str
    reason: str | None
    best: Evaluation | None
    evaluations: list[Evaluation]
    repeats: int | None

    @classmethod
    def of(cls, run: Run, number: int, settings: Mapping[str, object], repeats: int | None) -> "Trial":
        """Describe a trial by the run of its fit."""
        evaluations = run.record.validations
        known = [evaluation for evaluation in evaluations if evaluation.accuracy is not None]
        return cls(
            trial=number,
            run=run.folder.name,
            settings=dict(settings),
            status="finished" if run.reason is None else run.status or "failed",
            reason=run.reason,
            best=max(known, key=lambda evaluation: evaluation.accuracy or 0, default=None),
            evaluations=evaluations,
            repeats=repeats,
        )

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the best epoch."""
        return None if self.best is None else self.best.accuracy

    def as_dict(self) -> Entry:
        """Convert to JSON values."""
        return self.model_dump(exclude_unset=True)


@dataclass(frozen=True)
class HeldOut:
    """Fits of a system on the held-out folds, and their pooled outcome."""

    fits: Sequence[FinishedFit]
    pooled: Outcome

    def as_dict(self) -> Entry:
        """Convert to JSON values, with wrong answers."""
        pooled = {name: self.pooled.scores[name].as_dict() for name in EVALUATIONS}
        return {"pooled": pooled, "by_fold": [_fold_as_dict(fit) for fit in self.fits]}


def _fold_as_dict(fit: FinishedFit) -> Entry:
    """Convert a fit on one fold to JSON values, with wrong answers."""
    wrong: dict[str, list[Any] | None] = {REFERENCE: None}
    for name, scored in fit.outcome.scores.items():
        wrong[name] = None if scored.wrong is None else sorted(scored.wrong)
    return {**fit.fold_as_dict(), "wrong": wrong}


def winner_of(trials: Sequence[Trial]) -> Trial:
    """Select the finished trial with the highest accuracy in its best epoch; the first of equal ones.

    Raises:
        OptionError: if no trial has finished.
    """
    finished = [trial for trial in trials if trial.status == "finished"]
    if not finished:
        reasons = "; ".join(sorted({str(trial.reason) for trial in trials}))
        raise OptionError(f"no trial has finished ({reasons}): give more `trials`, or another `space` and `folder`")
    return max(finished, key=lambda trial: (trial.accuracy or 0, -trial.trial))


def tune_report(
    trials: Sequence[Trial],
    held_out: Mapping[str, HeldOut],
    fold: FoldDescription,
    deciding: Sequence[str],
    *,
    space: Mapping[str, object],
    earlier_winners: Sequence[str],
    command: str,
) -> Report:
    """Summarize a search.

    Args:
        trials: ended trials.
        held_out: fits of the winner (`winner`) and the unchanged config (`given`) on all folds except the first.
        fold: the first fold, on which the trials are evaluated.
        deciding: names of callbacks whose decisions depend on the evaluated examples.
        space: search space, as the user wrote it.
        earlier_winners: names of the runs of earlier winners.
        command: command that fits the settings of the winner.
    """
    winner = winner_of(trials)
    num_evaluations = sum(len(trial.evaluations) for trial in trials)
    others = f"folds 1 to {fold.folds - 1}" if fold.folds > 2 else "fold 1"
    tuned, unchanged = held_out["winner"].pooled, held_out["given"].pooled
    comparisons = {name: compared(tuned.scores[name], unchanged.scores[name]) for name in EVALUATIONS}
    notes = _notes(len(trials), num_evaluations, fold.evaluated, others, deciding)
    lines = [*report.note_lines(notes), report.INDEPENDENCE]
    if earlier_winners:
        earlier = ", ".join(earlier_winners)
        lines.append(f"These folds also evaluated earlier winners, of fewer trials: {earlier}.")
    lines.append(f"Settings of the winner: `{command}`")
    best = {} if winner.best is None else winner.best.model_dump(exclude_unset=True)
    return Report(
        content={
            "folds": fold.folds,
            "fold_seed": fold.fold_seed,
            "evaluated": fold.evaluated,
            "statuses": dict(Counter(trial.status for trial in trials)),
            "num_evaluations": num_evaluations,
            "winner": {"trial": winner.trial, "settings": winner.settings, **best},
            "trials": [trial.as_dict() for trial in trials],
            "held_out": {name: side.as_dict() for name, side in held_out.items()},
            "comparison": {name: comparison.as_dict() for name, comparison in comparisons.items()},
            "notes": notes,
            "space": dict(space),
            "earlier_winners": list(earlier_winners),
            "command": command,
        },
        tables={"Trials": _trial_rows(trials, winner), "Held-out folds": _held_out_rows(held_out, others, comparisons)},
        notes=lines,
        records=[],
        intervals={name: side.pooled.last.as_dict() for name, side in held_out.items()},
    )


def _notes(trials: int, evaluations: int, evaluated: int, others: str, deciding: Sequence[str]) -> dict[str, str]:
    """Explain the accuracies, by name."""
    decided = f", except by {', '.join(deciding)}, which used the evaluated examples" if deciding else ""
    return {
        "fold_0": f"accuracy in the best epoch of each trial; that of the winner is the highest of {trials} trials and "
        f"{evaluations} evaluations on the same {evaluated} examples: too high because of this selection",
        "last_epoch": f"accuracy on {others}, on which no trial was evaluated, after the last epoch; not selected by "
        f"any evaluation{decided}",
        "best_epoch": "accuracy on them in the epoch that the evaluated examples themselves selected: too high",
    }


def _trial_rows(trials: Sequence[Trial], winner: Trial) -> list[Entry]:
    """Format the trials."""
    names = _short(winner.settings)
    rows: list[Entry] = []
    for trial in trials:
        accuracy, ended = outcome_cells(trial)
        row: Entry = {"trial": trial.trial}
        for name, short in names.items():
            row[short] = report.number(trial.settings.get(name, ""))
        row["accuracy on fold 0, best epoch"] = accuracy
        row["epochs"] = len(trial.evaluations)
        row["ended"] = f"{ended}, winner" if trial is winner else ended
        rows.append(row)
    return rows


def _held_out_rows(
    held_out: Mapping[str, HeldOut], others: str, comparisons: Mapping[str, PairedComparison]
) -> list[Entry]:
    """Format both systems on the other folds, and their difference."""
    rows: list[Entry] = []
    for name, side in held_out.items():
        rows.append({others: name, "n": side.pooled.last.summary.n, **report.accuracy_cells(side.pooled)})
    titles = report.accuracy_cells(held_out["given"].pooled)
    cells = [report.difference_cell(comparison) for comparison in comparisons.values()]
    rows.append({others: "difference", **dict(zip(titles, cells, strict=True))})
    return rows


def outcome_cells(trial: Trial) -> tuple[str, str]:
    """Format the accuracy of a trial, and how it ended."""
    accuracy = "no accuracy" if trial.best is None else report.accuracy_cell(summary_of(trial.best).as_dict())
    return accuracy, trial.status if trial.reason is None else f"{trial.status} ({trial.reason})"


def settings_text(settings: Mapping[str, object]) -> str:
    """Format settings for a message, with the shortest unique endings of their names.

    >>> settings_text({"model.rate": 1 / 3, "data.size": 32, "model.more.rate": 1})
    'model.rate=0.3333, size=32, more.rate=1'
    """
    return ", ".join(f"{short}={report.number(settings[name])}" for name, short in _short(settings).items())


def _short(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the shortest unique ending of each name, in whole parts."""
    names = {name: name.split(".") for name in settings}
    return {name: _shortest_ending(parts, list(names.values())) for name, parts in names.items()}


def _shortest_ending(parts: Sequence[str], names: Sequence[Sequence[str]]) -> str:
    """Return the shortest ending of a name that no other name has."""
    for length in range(1, len(parts)):
        same = [other for other in names if other[-length:] == parts[-length:]]
        if len(same) == 1:
            return ".".join(parts[-length:])
    return ".".join(parts)
