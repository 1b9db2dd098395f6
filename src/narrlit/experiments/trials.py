"""Trials of `narrlit.tune` in an Optuna study: how they start, end, are resumed, and win.

Source: TPE (Bergstra et al. 2011); median pruning (Golovin et al. 2017).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.errors import NarrlitError, OptionError
from narrlit.experiments.fitting import run_fit
from narrlit.experiments.search_space import MakeConfig, Space
from narrlit.models.run_file import Evaluation
from narrlit.optional import require
from narrlit.results import Estimate
from narrlit.results.formatting import DETAILS, DIFFERENCES, FIGURES, KEYS, value_text
from narrlit.statistics.evaluations import estimate_of

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

ENTRY = "entry"
"""Attribute of a trial that has ended and was not killed: status, reason, best evaluation, evaluations by epoch."""
COLUMNS = frozenset({*FIGURES, *DIFFERENCES, *KEYS, *DETAILS, "epochs", "ended"})
"""Columns of a result, after which settings of trials are not named."""


def open_study(folder: Path, pruner: Mapping[str, int]) -> "optuna.Study":
    """Create or open the study in a folder; settings of killed trials are queued again.

    Args:
        folder: folder of the study.
        pruner: settings of Optuna's `MedianPruner`.
    """
    library = require("optuna", "tune")
    library.logging.set_verbosity(library.logging.WARNING)
    study: optuna.Study = library.create_study(
        storage=f"sqlite:///{folder / 'tune.db'}",
        study_name="tune",
        direction="maximize",
        pruner=library.pruners.MedianPruner(**pruner),
        load_if_exists=True,
    )
    states = library.trial.TrialState
    queued = {trial.user_attrs.get("repeats") for trial in study.trials}
    for trial in study.get_trials(states=(states.RUNNING,)):
        # Queued before it is closed, so that it is still found as running if this process is killed in between.
        if ENTRY in trial.user_attrs:  # it had ended when this process was killed
            tell(study, trial.number, trial.user_attrs[ENTRY])
            continue
        if trial.params and trial.number not in queued:
            study.enqueue_trial(trial.params, user_attrs={"repeats": trial.number})
        study.tell(trial.number, state=states.FAIL)
    return study


def tell(study: "optuna.Study", trial: int, entry: Mapping[str, Any]) -> None:
    """Close a trial: with its accuracy if it has finished with one, else as pruned or failed."""
    states = require("optuna", "tune").trial.TrialState
    if is_finished(entry):
        study.tell(trial, entry["best"]["accuracy"])
    else:
        study.tell(trial, state=states.PRUNED if entry["status"] == "pruned" else states.FAIL)


def is_finished(entry: Mapping[str, Any]) -> bool:
    """Return True if a trial has run to its end and has an accuracy; scores that are NaN give none."""
    return entry["status"] == "finished" and entry["best"] is not None


def ask(study: "optuna.Study", space: Space, seed: int) -> "optuna.Trial":
    """Start the next trial; the seed of the sampler depends on the number of trials, so that searches can resume."""
    sequence = np.random.SeedSequence((seed, len(ended_trials(study))))
    sampler_seed = int(sequence.generate_state(1)[0])
    study.sampler = require("optuna", "tune").samplers.TPESampler(seed=sampler_seed)
    return study.ask(space)


def run_trial(study: "optuna.Study", trial: "optuna.Trial", folder: Path, config_of: MakeConfig) -> None:
    """Fit the settings of a trial, and store how it ended."""

    def prune(epoch: int, accuracy: float) -> bool:
        trial.report(accuracy, epoch)
        return trial.should_prune()

    directory = folder / f"trial_{trial.number:04d}"
    try:
        run = run_fit(directory, config_of(trial.params), prune)
        run.check_evaluated()
    except NarrlitError as error:
        settings = settings_text(trial.params)
        raise type(error)("trial_failed", trial=trial.number, settings=settings, problem=error) from error
    evaluations = run.record.validations
    known = [evaluation for evaluation in evaluations if evaluation.accuracy is not None]
    best = max(known, key=lambda evaluation: evaluation.accuracy or 0, default=None)
    status = "finished" if run.reason is None else run.status or "failed"
    entry = {
        "status": status,
        "reason": run.reason,
        "best": None if best is None else best.model_dump(exclude_unset=True),
        "evaluations": [evaluation.model_dump(exclude_unset=True) for evaluation in evaluations],
    }
    trial.set_user_attr(ENTRY, entry)
    tell(study, trial.number, entry)


def ended_trials(study: "optuna.Study") -> "list[FrozenTrial]":
    """Return all trials that have ended: finished, pruned or failed, not killed."""
    return [trial for trial in study.trials if ENTRY in trial.user_attrs]


def settings_text(settings: Mapping[str, object]) -> str:
    """Format settings for a message, with the shortest unique endings of their names.

    >>> settings_text({"model.rate": 1 / 3, "data.size": 32, "model.more.rate": 1})
    'model.rate=0.3333, size=32, more.rate=1'
    """
    endings = short_names(settings)
    return ", ".join(f"{endings[name]}={value_text(value)}" for name, value in settings.items())


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the shortest ending of each name, in whole parts, that no other name and no column has; else the name."""
    endings = {}
    for name in names:
        parts = name.split(".")
        endings[name] = [".".join(parts[start:]) for start in reversed(range(len(parts)))]
    num_names = Counter(chain.from_iterable(endings.values()))
    short_names = {}
    for name, endings_of_name in endings.items():
        unique = [ending for ending in endings_of_name if num_names[ending] == 1 and ending not in COLUMNS]
        short_names[name] = unique[0] if unique else name
    return short_names


def winner_of(trials: "Sequence[FrozenTrial]") -> "FrozenTrial":
    """Select the finished trial with the highest accuracy in its best epoch; the first of equal ones.

    Raises:
        OptionError: if no trial has finished.
    """
    finished = [trial for trial in trials if is_finished(trial.user_attrs[ENTRY])]
    if not finished:
        reasons = sorted({str(trial.user_attrs[ENTRY]["reason"]) for trial in trials})
        raise OptionError("no_finished_trial", reasons="; ".join(reasons))
    return max(finished, key=lambda trial: (best_of(trial).value, -trial.number))


def best_of(trial: "FrozenTrial", n: int = 0) -> Estimate:
    """Return the accuracy of a trial in its best epoch; NaN without one, on n triples."""
    best = trial.user_attrs[ENTRY]["best"]
    return Estimate(math.nan, math.nan, math.nan, n) if best is None else estimate_of(Evaluation.model_validate(best))


def how_it_ended(trial: "FrozenTrial") -> str:
    """Say how a trial ended."""
    status, reason = trial.user_attrs[ENTRY]["status"], trial.user_attrs[ENTRY]["reason"]
    return status if reason is None else f"{status} ({reason})"
