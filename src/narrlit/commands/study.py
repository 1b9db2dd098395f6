"""An Optuna study in a folder: which settings are tried next, how trials ended, and what a killed process left."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.commands.fits import read_record
from narrlit.optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

    import optuna

    from narrlit.commands.trials import Outcome

Entry = dict[str, Any]

FILE = "tune.db"
REPEATS = "repeats"


class Study:
    """Settings by TPE (Bergstra et al. 2011), trials pruned by the median of those before (Golovin et al. 2017).

    Each trial's sampler has a seed of its own, made of the study's and of how many trials have ended: a study that is
    stopped and goes on tries what the unbroken one would have tried.
    """

    def __init__(
        self, folder: Path, space: dict[str, "optuna.distributions.BaseDistribution"], seed: int, pruner: dict[str, int]
    ) -> None:
        """Open the folder's study, or begin it; trials that a killed process left running will be tried again.

        Args:
            folder: it exists.
            space: ranges by name.
            seed: of the samplers.
            pruner: arguments of Optuna's MedianPruner.
        """
        self._optuna: Any = require("optuna", "tune")
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        self.folder = folder
        self.space = space
        self.seed = seed
        self._study: optuna.Study = self._optuna.create_study(
            storage=self._optuna.storages.RDBStorage(f"sqlite:///{folder / FILE}"),
            study_name="tune",
            direction="maximize",
            pruner=self._optuna.pruners.MedianPruner(**pruner),
            load_if_exists=True,
        )
        self._take_up()

    @property
    def ended(self) -> int:
        """How many trials have ended by themselves: finished, pruned or failed."""
        return sum("status" in trial.user_attrs and trial.state.is_finished() for trial in self._study.trials)

    def ask(self) -> "optuna.Trial":
        """The next trial."""
        seed = int(np.random.SeedSequence((self.seed, self.ended)).generate_state(1)[0])
        self._study.sampler = self._optuna.samplers.TPESampler(seed=seed)
        trial: optuna.Trial = self._study.ask(self.space)
        return trial

    def advice(self, trial: "optuna.Trial") -> "Callable[[int, float], bool]":
        """Takes an epoch's accuracy of the trial, and says whether to end it."""

        def judge(epoch: int, accuracy: float) -> bool:
            trial.report(accuracy, epoch)
            return trial.should_prune()

        return judge

    def tell(self, trial: "optuna.Trial", outcome: "Outcome") -> Entry:
        """Note how a trial ended; returns its entry."""
        states = self._optuna.trial.TrialState
        trial.set_user_attr("looks", outcome.looks)
        trial.set_user_attr("reason", outcome.reason)
        trial.set_user_attr("status", outcome.status)  # last: with it the trial counts
        if outcome.status == "finished":
            self._study.tell(trial, max(look["accuracy"] for look in outcome.looks))
        else:
            self._study.tell(trial, state=states.PRUNED if outcome.status == "pruned" else states.FAIL)
        return next(entry for entry in self.entries() if entry["trial"] == trial.number)

    def entries(self) -> list[Entry]:
        """Every trial that has ended, as plain data."""
        return [self._entry(trial) for trial in self._study.trials if trial.state.is_finished()]

    def _entry(self, trial: "optuna.trial.FrozenTrial") -> Entry:
        kept, run = trial.user_attrs, run_name(trial.number)
        killed = "status" not in kept
        looks = read_record(self.folder / run).get("validations", []) if killed else kept["looks"]
        return {
            "trial": trial.number,
            "run": run,
            "settings": trial.params,
            "status": "interrupted" if killed else kept["status"],
            "reason": "its process was ended; its settings were tried again" if killed else kept["reason"],
            "looks": looks,
            "best": max((look for look in looks if look["accuracy"] is not None), key=_accuracy, default=None),
            "repeats": kept.get(REPEATS),
        }

    def _take_up(self) -> None:
        states = self._optuna.trial.TrialState
        repeated = {trial.user_attrs.get(REPEATS) for trial in self._study.trials}
        for trial in self._study.get_trials(states=(states.RUNNING,)):
            # Queued before it is closed: killed in between, the next process finds it still running.
            settings = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
            if settings and trial.number not in repeated:
                self._study.enqueue_trial(settings, user_attrs={REPEATS: trial.number})
            self._study.tell(trial.number, state=states.FAIL)


def _accuracy(look: Entry) -> float:
    return float(look["accuracy"])


def run_name(trial: int) -> str:
    """A trial's directory."""
    return f"trial_{trial:04d}"
