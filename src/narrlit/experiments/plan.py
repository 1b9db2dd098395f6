"""Plans: several fits in one folder, which can be interrupted and resumed, and one table of their accuracies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import yaml

from narrlit.console import say
from narrlit.data.writers import write_table
from narrlit.datamodules.fold_data import FoldDescription
from narrlit.errors import OptionError
from narrlit.experiments.fitting import Config, run_fit
from narrlit.experiments.outcome import Outcome, Scored
from narrlit.experiments.report import Entry, Report
from narrlit.experiments.run import Run
from narrlit.files import check_writable, exclusive, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = "`folder`"


@dataclass(frozen=True)
class PlannedFit:
    """Planned fit.

    Attributes:
        name: name of the directory of its run.
        config: whole configuration.
        about: description that is printed before the fit.
        system: name of the fitted system, for the table.
        fold: fold of a cross-validation that is evaluated.
        check: function that raises an error if a finished run used other data.
    """

    name: str
    config: Config
    about: str
    system: str = "trained"
    fold: FoldDescription | None = None
    check: Callable[[Run], None] | None = None

    @property
    def seed(self) -> int | None:
        """Seed of the fit."""
        seed: int | None = self.config["seed_everything"]
        return seed

    def check_data(self, run: Run) -> None:
        """Raise an error if the run used other data than planned."""
        if self.check is not None:
            self.check(run)


@dataclass(frozen=True)
class FinishedFit:
    """Planned fit and its finished run."""

    planned: PlannedFit
    run: Run

    @cached_property
    def outcome(self) -> Outcome:
        """Accuracies and wrong answers."""
        return self.run.outcome()

    @property
    def fold(self) -> FoldDescription:
        """Fold that was evaluated.

        Raises:
            ValueError: if the fit does not belong to a cross-validation.
        """
        if self.planned.fold is None:
            raise ValueError(f"{self.planned.name} evaluated no fold")
        return self.planned.fold

    def fold_as_dict(self) -> Entry:
        """Convert sizes and accuracies of the fold to JSON values."""
        fold = self.fold
        return {
            "fold": fold.fold,
            "groups": fold.groups,
            "trained": fold.trained,
            "evaluated": fold.evaluated,
            "left_out": fold.left_out,
            "run": self.planned.name,
            **self.outcome.as_dict(),
        }


@dataclass(frozen=True)
class Plan:
    """Fits in one folder: finished runs are kept, an interrupted one is repeated.

    Attributes:
        folder: folder that contains the directories of the runs.
        fits: fits in the order in which they run.
        configs: configurations by file name; the files identify the plan.
        place: option that names the folder, for messages.
    """

    folder: Path
    fits: Sequence[PlannedFit]
    configs: Mapping[str, Config]
    place: str = FOLDER

    def run(self) -> list[FinishedFit]:
        """Run the unfinished fits, while the folder is locked.

        Raises:
            OptionError: if the folder contains another plan, or another process writes to it.
            NarrlitError: if a fit fails.
        """
        with exclusive(self.folder, self.place):
            self.keep_configs()
            return self.run_fits()

    def keep_configs(self) -> None:
        """Write the configurations, or check that those in the folder are equal; a folder without any must be new."""
        is_new = not any((self.folder / f"{name}.yaml").is_file() for name in self.configs)
        for name, config in self.configs.items():
            folder = self.folder if is_new else self.folder / name
            keep_config(self.folder / f"{name}.yaml", config, folder, self.place)
            is_new = False

    def run_fits(self) -> list[FinishedFit]:
        """Run the unfinished fits; data are checked before the first fit and after each fit."""
        runs = {fit.name: Run.at(self.folder / fit.name) for fit in self.fits}
        for fit in self.fits:
            if runs[fit.name].finished:
                fit.check_data(runs[fit.name])
        for number, fit in enumerate(self.fits, 1):
            if runs[fit.name].finished:
                say(f"{fit.name}: already finished")
                continue
            say(f"\n{fit.name}, fit {number} of {len(self.fits)}: {fit.about}")
            runs[fit.name] = run_fit(self.folder / fit.name, fit.config)
            fit.check_data(runs[fit.name])
        return [FinishedFit(fit, runs[fit.name]) for fit in self.fits]


@dataclass(frozen=True)
class Accuracy:
    """Row of a plan's table.

    Attributes:
        system: name of the fitted system.
        fold: fold of a cross-validation; None for all folds, or without folds.
        seed: seed of the fit; None for all fits.
        metric: `accuracy_last_epoch`, `accuracy_best_epoch`, or `accuracy_reference` (the encoder before training).
        value: the accuracy; None if a score was NaN.
        n: number of triples.
        low: lower end of the 95 % confidence interval.
        high: upper end of the interval.
    """

    system: str
    fold: int | None
    seed: int | None
    metric: str
    value: float | None
    n: int
    low: float | None
    high: float | None

    @classmethod
    def of(cls, name: str, scored: Scored, system: str, fold: int | None, seed: int | None) -> "Accuracy":
        """Convert one evaluation."""
        low, high = scored.summary.interval if scored.accuracy is not None else (None, None)
        return cls(
            system=system,
            fold=fold,
            seed=seed,
            metric=f"accuracy_{name}",
            value=scored.accuracy,
            n=scored.summary.n,
            low=low,
            high=high,
        )


def pooled_accuracies(system: str, outcome: Outcome, seed: int | None = None) -> list[Accuracy]:
    """Tabulate accuracies that are pooled over folds."""
    rows = []
    for name, scored in outcome.scores.items():
        rows.append(Accuracy.of(name, scored, system, None, seed))
    return rows


def accuracies_of(fits: Sequence[FinishedFit]) -> list[Accuracy]:
    """Tabulate the accuracies of fits."""
    rows = []
    for fit in fits:
        planned = fit.planned
        fold = None if planned.fold is None else planned.fold.fold
        for name, scored in fit.outcome.scores.items():
            rows.append(Accuracy.of(name, scored, planned.system, fold, planned.seed))
    return rows


@dataclass(frozen=True, eq=False)
class PlanResult:
    """Runs of a plan, and a report on their accuracies.

    Attributes:
        name: name of the files of the report.
        folder: folder of the runs.
        runs: runs by name.
        accuracies: rows of the table.
        report: tables, notes and plain data.
    """

    name: str
    folder: Path
    runs: Mapping[str, Run]
    accuracies: Sequence[Accuracy]
    report: Report

    @classmethod
    def of(
        cls,
        name: str,
        folder: str | Path,
        fits: Sequence[FinishedFit],
        report: Report,
        further: Sequence[Accuracy] = (),
    ) -> "PlanResult":
        """Collect the finished fits of a plan, their report, and further rows of the table."""
        runs = {fit.planned.name: fit.run for fit in fits}
        return cls(name, Path(folder), runs, [*accuracies_of(fits), *further], report)

    def table(self) -> pd.DataFrame:
        """Tabulate every accuracy: system, fold, seed, metric, value, n, low, high (95 % interval)."""
        columns = [field.name for field in fields(Accuracy)]
        frame = pd.DataFrame(list(self.accuracies), columns=columns, dtype=object)
        return frame.where(frame.notna(), None)

    def plot(self) -> "Axes":
        """Plot the accuracies with 95 % intervals, and return the matplotlib axes."""
        return self.report.plot()

    def write(self, folder: str | Path | None = None) -> None:
        """Write NAME.json, .md, .csv (the table), .tex and (with matplotlib) .svg, by default next to the runs."""
        folder = self.folder if folder is None else Path(folder)
        self.report.write(folder, self.name)
        write_table(folder / f"{self.name}.csv", self.table().to_dict("records"))

    def __str__(self) -> str:
        """Format tables and notes in Markdown."""
        return self.report.markdown().rstrip("\n")


def keep_config(file: Path, config: Config, folder: Path, place: str = FOLDER) -> None:
    """Write a configuration to a YAML file, or check that the file contains the same configuration.

    Args:
        file: the file.
        config: the configuration.
        folder: folder that must be new if the file is new.
        place: option that names the folder, for messages.

    Raises:
        OptionError: if the file contains another configuration, or the file is new but the folder is not.
    """
    text = yaml.safe_dump(config, sort_keys=False)
    if not file.is_file():
        check_writable(folder, folder=True)
        write_text(file, text)
        return
    changes = config_changes(yaml.safe_load(file.read_text(encoding="utf-8")), yaml.safe_load(text))
    if changes:
        raise OptionError(f"{file} has another configuration ({changes[0]}): choose another {place} or remove {file}")


def config_changes(before: object, after: object, name: str = "") -> list[str]:
    """List the options in which two configurations differ.

    >>> config_changes({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}})
    ['b.c: 2 -> 3']
    """
    if before == after:
        return []
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [f"{name}: {before} -> {after}"]
    changes: list[str] = []
    for key in {**before, **after}:
        inner = f"{name}.{key}" if name else str(key)
        changes += config_changes(before.get(key), after.get(key), inner)
    return changes
