"""`narrlit.tune`: hyperparameter search with Optuna on fold 0, and evaluation of the winner on the other folds.

Source: TPE (Bergstra et al. 2011); median pruning (Golovin et al. 2017).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from narrlit import lightning_cli
from narrlit.configuration import Configs, FitSettings, read_configs
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.experiments.crossval import DividedConfig, Division, divide_examples, divided_config
from narrlit.experiments.fit_figures import fit_answers, fit_differences, fits_result
from narrlit.experiments.fitting import Config, quiet_fit
from narrlit.experiments.plan import FitsResult, Plan, keep_config
from narrlit.experiments.run import BEST
from narrlit.experiments.search_space import SearchSpace
from narrlit.experiments.trials import (
    ENTRY,
    ask,
    best_of,
    ended_trials,
    how_it_ended,
    is_finished,
    open_study,
    run_trial,
    settings_text,
    short_names,
    winner_of,
)
from narrlit.files import exclusive, write_text
from narrlit.results import Note, Row
from narrlit.results.formatting import value_text
from narrlit.statistics.estimates import estimate_text

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

PURPOSE = "a search"


def tune(  # noqa: PLR0913 (options)
    config: Configs,
    settings: FitSettings | None = None,
    *,
    space: str | Path | Mapping[str, Mapping[str, Any]],
    trials: int,
    out: str | Path,
    folds: int = 5,
    fold_seed: int = 0,
    epochs_before_pruning: int = 1,
    trials_before_pruning: int = 5,
) -> FitsResult:
    """Search hyperparameters on fold 0, and evaluate the winner and the unchanged config on the other folds.

    Every trial trains on the other folds and is evaluated on fold 0 at its best epoch; a trial below the median of
    earlier trials is pruned. The winner's accuracy on fold 0 is too high, because the winner was selected by it.
    Finished trials and runs in the folder are kept; a killed one is repeated.

    Args:
        config: a config, or several, as in `narrlit.fit`.
        settings: settings that override the config, as in `narrlit.fit`.
        space: settings of `narrlit.fit`, each with {low, high} and optionally step or log, or with {choices}; or a YAML
            file with them.
        trials: number of trials, including pruned and failed ones; a larger number continues a search.
        out: folder for the study (tune.db), the runs and the result (tune.json, ...); new, or that of the same search.
        folds: number of folds; fold 0 selects the winner, the others evaluate it.
        fold_seed: seed of the division into folds, separate from `seed_everything`, which seeds the trials.
        epochs_before_pruning: minimum number of epochs before a trial can be pruned.
        trials_before_pruning: minimum number of finished trials before one can be pruned.

    Returns:
        A `Result` with the accuracies of `winner` and `given` (the unchanged config) on the other folds, their
        difference, and the best accuracy of each trial on fold 0 (subset `trials`); also `.runs` and
        `.folder`. The config of the winner is in the folder, as winner.yaml.

    Raises:
        DataError: if a file can't be read.
        MissingExtraError: if Optuna is not installed.
        OptionError: if a setting is invalid, or the folder contains another search.

    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> settings = {"data": "StoryWorldData", "data.train": 4, "trainer.max_epochs": 1}
    >>> space = {"model.init_args.margin": {"low": 0.5, "high": 2.0}}
    >>> config = "configs/mendel292_linear.yaml"
    >>> result = tune(config, settings, space=space, trials=1, out="runs/search", folds=2)
    >>> list(result.runs), list(result.settings["winner"]["settings"])
    (['given_fold_1', 'winner_0000_fold_1'], ['model.init_args.margin'])
    """
    counts = {"trials": (trials, 1), "epochs_before_pruning": (epochs_before_pruning, 1)}
    for name, (number, least) in (counts | {"trials_before_pruning": (trials_before_pruning, 0)}).items():
        if number < least:
            raise OptionError("at_least", option=name, found=number, least=least)
    search_space = SearchSpace.read(space)
    pruner = {"n_warmup_steps": epochs_before_pruning - 1, "n_startup_trials": trials_before_pruning}
    with exclusive(out):
        layers, division = read_configs(config, settings), Division(folds, fold_seed)
        search = Search.begin(layers, search_space, Path(out), division, pruner)
        result = search.evaluate_winner(search.run(trials))
        result.write()
        return result


@dataclass(frozen=True)
class Search:
    """Hyperparameter search in a folder.

    Attributes:
        layers: configs and settings, of which later ones override earlier ones.
        space: search space.
        folder: folder of the study and the runs.
        division: division of the training examples into folds.
        given: unchanged config, with its folds.
        study: trials so far.
    """

    layers: Sequence[FitSettings]
    space: SearchSpace
    folder: Path
    division: Division
    given: DividedConfig
    study: "optuna.Study"

    @classmethod
    def begin(
        cls,
        layers: Sequence[FitSettings],
        space: SearchSpace,
        folder: Path,
        division: Division,
        pruner: Mapping[str, int],
    ) -> "Search":
        """Begin a search in a new folder, or resume the search in an existing one.

        Raises:
            OptionError: if the folder contains another search, or a fit refuses a value of the space.
        """
        divided = divide_examples(layers, division, PURPOSE)
        given = DividedConfig(_on_one_device(divided.config), divided.descriptions)
        space.check(lambda settings: _config_with(layers, division, settings), given.config)
        examples = {f"fold_{fold.fold}": fold.sha256 for fold in given.descriptions}
        plan = {"fit": given.config, "space": space.written, "pruner": dict(pruner), "examples": examples}
        keep_config(folder / "plan.yaml", plan, folder)
        return cls(layers, space, folder, division, given, open_study(folder, pruner))

    def config_of(self, settings: FitSettings) -> Config:
        """Return the configuration of a fit on fold 0 with these settings."""
        return _config_with(self.layers, self.division, settings)

    def run(self, trials: int) -> "list[FrozenTrial]":
        """Run trials until the given number has ended; return all ended trials."""
        fold = self.given.descriptions[0]
        say(f"fold 0: {fold.trained} training examples and {fold.evaluated} evaluated examples in every trial")
        while len(ended_trials(self.study)) < trials:
            trial = ask(self.study, self.space.distributions, int(self.given.config["seed_everything"] or 0))
            run_trial(self.study, trial, self.folder, self.config_of)
            _print_progress(ended_trials(self.study))
        return ended_trials(self.study)

    def evaluate_winner(self, trials: "Sequence[FrozenTrial]") -> FitsResult:
        """Fit the winner and the unchanged config on the other folds, and compare them there."""
        winner = winner_of(trials)
        name = f"winner_{winner.number:04d}"
        earlier = {run.name.partition("_fold_")[0] for run in self.folder.glob("winner_*_fold_*")} - {name}
        tuned = DividedConfig(self.config_of(winner.params), self.given.descriptions)
        planned = self.given.fits("given_", "given", first=1) + tuned.fits(f"{name}_", "winner", first=1)
        fits = Plan(self.folder, planned, {}).run_fits()
        answers = fit_answers(fits)

        first, *others = self.given.descriptions
        num_evaluations = sum(len(trial.user_attrs[ENTRY]["evaluations"]) for trial in trials)
        command = f"narrlit fit --config {self._write_config(winner.params)}"
        notes = [
            Note.of("trials", trials=len(trials), evaluations=num_evaluations, n=first.evaluated),
            Note.of("held_out", folds=[fold.fold for fold in others]),
        ]
        if earlier:
            notes.append(Note.of("earlier_winners", winners=sorted(earlier)))
        records = []
        for trial in trials:
            repeats = trial.user_attrs.get("repeats")
            numbers = {"trial": trial.number, "run": f"trial_{trial.number:04d}", "repeats": repeats}
            records.append({**numbers, "settings": trial.params, **trial.user_attrs[ENTRY]})
        settings = {
            "folds": first.folds,
            "fold_seed": first.fold_seed,
            "evaluated": first.evaluated,
            "space": dict(self.space.written),
            "winner": {"trial": winner.number, "settings": winner.params},
            "trials": records,
            "command": command,
        }
        return fits_result(
            "tune",
            self.folder,
            fits,
            answers,
            fit_differences(answers, "given"),
            figures=[_trial_figure(trial, first.evaluated, trial is winner) for trial in trials],
            settings=settings,
            notes=[*notes, Note.of("winner_command", command=command)],
        )

    def _write_config(self, settings: FitSettings) -> Path:
        """Write the whole config with the settings of a trial, and return its file."""
        with quiet_fit():
            config = lightning_cli.parse_fit([*self.layers, settings]).as_dict()
        file = self.folder / "winner.yaml"
        write_text(file, yaml.safe_dump(config, sort_keys=False))
        return file


def _config_with(layers: Sequence[FitSettings], division: Division, settings: FitSettings) -> Config:
    """Return the configuration of a fit on fold 0 with the given settings."""
    config, _ = divided_config([*layers, settings], division, PURPOSE)
    return _on_one_device(config)


def _on_one_device(config: Config) -> Config:
    """Return the configuration of a fit on one device.

    Raises:
        OptionError: if it has several devices.
    """
    trainer = config["trainer"]
    devices = trainer["devices"]
    is_one = len(devices) == 1 if isinstance(devices, list) else devices in ("auto", 1, "1")
    if trainer["num_nodes"] != 1 or not is_one:
        raise OptionError("search_on_several_devices")
    if devices != "auto":
        return config
    return {**config, "trainer": {**trainer, "devices": 1}}


def _trial_figure(trial: "FrozenTrial", n: int, is_winner: bool) -> Row:
    """Return the accuracy of a trial on fold 0, with its settings and how it ended."""
    settings = {short_name: trial.params[name] for name, short_name in short_names(trial.params).items()}
    return best_of(trial, n).row(
        f"trial_{trial.number:04d}",
        f"accuracy_{BEST}",
        "trials",
        **settings,
        epochs=len(trial.user_attrs[ENTRY]["evaluations"]),
        ended=f"{how_it_ended(trial)}, winner" if is_winner else how_it_ended(trial),
    )


def _print_progress(trials: "Sequence[FrozenTrial]") -> None:
    """Print how the last trial ended, and the best accuracy so far."""
    last = trials[-1]
    finished = [trial for trial in trials if is_finished(trial.user_attrs[ENTRY])]
    best = value_text(max((best_of(trial).value for trial in finished), default=None)) or "none"
    accuracy = estimate_text(*best_of(last)[:3])
    say(f"trial {last.number}: {accuracy}, {how_it_ended(last)}; {settings_text(last.params)}; best so far: {best}")
