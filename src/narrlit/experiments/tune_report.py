"""Report on a hyperparameter search: its trials, and the winner and the unchanged config on the other folds."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from narrlit.datamodules.fold_data import FoldDescription
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.crossval import accuracies_as_dict, except_by
from narrlit.experiments.outcome import EVALUATIONS, REFERENCE, Outcome, compared
from narrlit.experiments.plan import FinishedFit
from narrlit.experiments.report import Entry, Report
from narrlit.experiments.run import Run
from narrlit.metrics.significance import PairedComparison, summary_of
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
        status = "finished"
        if run.reason is not None:
            status = run.status or "failed"
        return cls(
            trial=number,
            run=run.folder.name,
            settings=dict(settings),
            status=status,
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
        return {"pooled": accuracies_as_dict(self.pooled), "by_fold": list(map(_fold_as_dict, self.fits))}


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
        reasons = sorted({str(trial.reason) for trial in trials})
        raise OptionError(
            f"no trial has finished ({'; '.join(reasons)}): give more `trials`, or another `space` and `folder`"
        )
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
    comparisons = _comparisons(held_out)
    notes = _notes(len(trials), num_evaluations, fold.evaluated, others, deciding)
    sides: dict[str, Entry] = {}
    intervals: dict[str, Entry] = {}
    for name, side in held_out.items():
        sides[name] = side.as_dict()
        intervals[name] = side.pooled.last.as_dict()
    return Report(
        content={
            "folds": fold.folds,
            "fold_seed": fold.fold_seed,
            "evaluated": fold.evaluated,
            "statuses": dict(Counter(trial.status for trial in trials)),
            "num_evaluations": num_evaluations,
            "winner": _winner_as_dict(winner),
            "trials": [trial.as_dict() for trial in trials],
            "held_out": sides,
            "comparison": {name: comparison.as_dict() for name, comparison in comparisons.items()},
            "notes": notes,
            "space": dict(space),
            "earlier_winners": list(earlier_winners),
            "command": command,
        },
        tables={"Trials": _trial_rows(trials, winner), "Held-out folds": _held_out_rows(held_out, others, comparisons)},
        notes=[*report.note_lines(notes), *_further_notes(held_out, earlier_winners, command)],
        records=[],
        intervals=intervals,
    )


def _comparisons(held_out: Mapping[str, HeldOut]) -> dict[str, PairedComparison]:
    """Compare the winner with the unchanged config, by evaluation."""
    tuned, unchanged = held_out["winner"].pooled, held_out["given"].pooled
    return {name: compared(tuned.scores[name], unchanged.scores[name]) for name in EVALUATIONS}


def _winner_as_dict(winner: Trial) -> Entry:
    """Convert the winner and its best evaluation to JSON values."""
    content: Entry = {"trial": winner.trial, "settings": winner.settings}
    if winner.best is not None:
        content |= winner.best.model_dump(exclude_unset=True)
    return content


def _notes(trials: int, evaluations: int, evaluated: int, others: str, deciding: Sequence[str]) -> dict[str, str]:
    """Explain the accuracies, by name."""
    return {
        "fold_0": f"accuracy in the best epoch of each trial; that of the winner is the highest of {trials} trials and "
        f"{evaluations} evaluations on the same {evaluated} examples: too high because of this selection",
        "last_epoch": f"accuracy on {others}, on which no trial was evaluated, after the last epoch; not selected by "
        f"any evaluation{except_by(deciding)}",
        "best_epoch": "accuracy on them in the epoch that the evaluated examples themselves selected: too high",
    }


def _further_notes(held_out: Mapping[str, HeldOut], earlier_winners: Sequence[str], command: str) -> list[str]:
    """Explain the tests, list earlier winners, and print the command that fits the winner."""
    lines = [report.method_note(held_out["winner"].pooled.is_by_story)]
    if earlier_winners:
        earlier = ", ".join(earlier_winners)
        lines.append(f"These folds also evaluated earlier winners, of fewer trials: {earlier}.")
    return [*lines, f"Settings of the winner: `{command}`"]


def _trial_rows(trials: Sequence[Trial], winner: Trial) -> list[Entry]:
    """Format the trials."""
    short_names = _short_names(winner.settings)
    rows: list[Entry] = []
    for trial in trials:
        accuracy, ended = outcome_cells(trial)
        row: Entry = {"trial": trial.trial}
        for name, short_name in short_names.items():
            row[short_name] = report.number(trial.settings.get(name, ""))
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
    difference: Entry = {others: "difference"}
    titles = report.accuracy_cells(held_out["given"].pooled)
    for title, comparison in zip(titles, comparisons.values(), strict=True):
        difference[title] = report.difference_cell(comparison)
    return [*rows, difference]


def outcome_cells(trial: Trial) -> tuple[str, str]:
    """Format the accuracy of a trial, and how it ended."""
    accuracy = "no accuracy" if trial.best is None else report.accuracy_cell(summary_of(trial.best).as_dict())
    ended = trial.status if trial.reason is None else f"{trial.status} ({trial.reason})"
    return accuracy, ended


def settings_text(settings: Mapping[str, object]) -> str:
    """Format settings for a message, with the shortest unique endings of their names.

    >>> settings_text({"model.rate": 1 / 3, "data.size": 32, "model.more.rate": 1})
    'model.rate=0.3333, size=32, more.rate=1'
    """
    texts = []
    for name, short_name in _short_names(settings).items():
        texts.append(f"{short_name}={report.number(settings[name])}")
    return ", ".join(texts)


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the shortest ending of each name, in whole parts, that no other name has; else the whole name."""
    endings = {name: _endings(name) for name in names}
    num_names = Counter(chain.from_iterable(endings.values()))
    short_names = {}
    for name, endings_of_name in endings.items():
        unique = [ending for ending in endings_of_name if num_names[ending] == 1]
        short_names[name] = unique[0] if unique else name
    return short_names


def _endings(name: str) -> list[str]:
    """List the endings of a name in whole parts, the shortest first.

    >>> _endings("model.more.rate")
    ['rate', 'more.rate', 'model.more.rate']
    """
    parts = name.split(".")
    return [".".join(parts[start:]) for start in reversed(range(len(parts)))]
