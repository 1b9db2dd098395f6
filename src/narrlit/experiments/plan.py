"""Plans: several fits in one folder, which can be interrupted and resumed, and their result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from narrlit.console import say
from narrlit.datamodules.fold_data import FoldDescription
from narrlit.errors import OptionError
from narrlit.experiments.fitting import Config, run_fit
from narrlit.experiments.run import Run
from narrlit.files import check_writable, exclusive, write_text
from narrlit.json_records import changed_settings
from narrlit.results import Result

FOLDER = "out"


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
    check: Callable[[Run], None] = lambda run: None

    @property
    def seed(self) -> int | None:
        """Seed of the fit."""
        seed: int | None = self.config["seed_everything"]
        return seed


class FinishedFit(NamedTuple):
    """Planned fit and its finished run."""

    planned: PlannedFit
    run: Run


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
                fit.check(runs[fit.name])
        for number, fit in enumerate(self.fits, 1):
            if runs[fit.name].finished:
                say(f"{fit.name}: already finished")
                continue
            say(f"\n{fit.name}, fit {number} of {len(self.fits)}: {fit.about}")
            runs[fit.name] = run_fit(self.folder / fit.name, fit.config)
            fit.check(runs[fit.name])
        return [FinishedFit(fit, runs[fit.name]) for fit in self.fits]


@dataclass(frozen=True, eq=False)
class FitsResult(Result):
    """Result of several fits in one folder.

    Attributes:
        folder: folder of the runs.
        runs: runs by name.
    """

    folder: Path
    runs: Mapping[str, Run]

    def write(self, folder: str | Path | None = None) -> None:
        """Write the files of a `Result`, by default next to the runs."""
        super().write(self.folder if folder is None else folder)


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds of a plan.

    Raises:
        OptionError: if there are fewer than two, or one is negative or repeated.
    """
    if len(seeds) < 2 or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise OptionError("invalid_seeds", seeds=list(seeds))
    return list(seeds)


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
    changes = changed_settings(yaml.safe_load(file.read_text(encoding="utf-8")), yaml.safe_load(text))
    if changes:
        raise OptionError("other_configuration", path=file, change=changes[0], option=place)
