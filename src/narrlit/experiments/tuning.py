"""`narrlit.tune`: hyperparameter search with Optuna on fold 0, and evaluation of the winner on the other folds.

Source: TPE (Bergstra et al. 2011); median pruning (Golovin et al. 2017).
"""

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.configuration import find_config, read_yaml
from narrlit.console import say
from narrlit.errors import NarrlitError, OptionError, mistake_behind, reading
from narrlit.experiments.crossval import DividedConfig, Division, divide, divided_config
from narrlit.experiments.fit_figures import answers_of, fit_differences, fits_result
from narrlit.experiments.fitting import Config, Configs, Options, fit_arguments, run_fit, setting_arguments
from narrlit.experiments.plan import FOLDER, FitsResult, Plan, keep_config
from narrlit.experiments.run import BEST
from narrlit.files import exclusive
from narrlit.metrics.estimates import estimate_text
from narrlit.metrics.evaluations import estimate_of
from narrlit.models.run_file import Evaluation
from narrlit.optional import require
from narrlit.results import Estimate, Note, Row
from narrlit.results.formatting import DETAILS, DIFFERENCES, FIGURES, KEYS, value_text

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

Space = dict[str, "BaseDistribution"]
Settings = Mapping[str, Any]
MakeConfig = Callable[[Settings], Config]
PURPOSE = "a search"
SECTIONS = ("model", "data", "trainer", "seed_everything")
DATA_SETTINGS = ("loading", "hard_examples", "pseudo_labels")
"""Parts of the data settings that determine how examples are used; all others select the examples."""
ENTRY = "entry"
"""Attribute of a trial that has ended and was not killed: status, reason, best evaluation, evaluations by epoch."""
COLUMNS = frozenset({*FIGURES, *DIFFERENCES, *KEYS, *DETAILS, "epochs", "ended"})
"""Columns of a result, after which settings of trials are not named."""


def tune(  # noqa: PLR0913 (options)
    config: Configs,
    options: Options | None = None,
    *,
    space: str | Path | Mapping[str, Mapping[str, Any]],
    trials: int,
    folder: str | Path,
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
        options: settings that override the config, as in `narrlit.fit`.
        space: settings of `narrlit.fit`, each with {low, high} and optionally step or log, or with {choices}; or a YAML
            file with them.
        trials: number of trials, including pruned and failed ones; a larger number continues a search.
        folder: folder for the study (tune.db) and the runs; new, or that of the same search.
        folds: number of folds; fold 0 selects the winner, the others evaluate it.
        fold_seed: seed of the division into folds, separate from `seed_everything`, which seeds the trials.
        epochs_before_pruning: minimum number of epochs before a trial can be pruned.
        trials_before_pruning: minimum number of finished trials before one can be pruned.

    Returns:
        A `Result` with the accuracies of `winner` and `given` (the unchanged config) on the other folds, their
        difference, and the best accuracy of each trial on fold 0 (subset `trials`); also `.runs` and `.folder`, to
        which `.write()` writes.

    Raises:
        DataError: if a file can't be read.
        MissingExtraError: if Optuna is not installed.
        OptionError: if a setting is invalid, or the folder contains another search.

    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> options = {"data": "StoryWorldData", "data.train": 4, "trainer.max_epochs": 1}
    >>> space = {"model.init_args.margin": {"low": 0.5, "high": 2.0}}
    >>> config = "configs/mendel292_linear.yaml"
    >>> result = tune(config, options, space=space, trials=1, folder="runs/search", folds=2)
    >>> list(result.runs), list(result.settings["winner"]["settings"])
    (['given_fold_1', 'winner_0000_fold_1'], ['model.init_args.margin'])
    """
    counts = {"trials": (trials, 1), "epochs_before_pruning": (epochs_before_pruning, 1)}
    for name, (number, least) in (counts | {"trials_before_pruning": (trials_before_pruning, 0)}).items():
        if number < least:
            raise OptionError("at_least", option=name, found=number, least=least)
    search_space = SearchSpace.read(space)
    pruner = Pruner(epochs_before_pruning - 1, trials_before_pruning)
    with exclusive(folder, FOLDER):
        arguments, division = fit_arguments(config, options), Division(folds, fold_seed)
        search = Search.begin(arguments, search_space, Path(folder), division, pruner)
        return search.evaluate_winner(search.run(trials))


@dataclass(frozen=True)
class Pruner:
    """Settings of Optuna's median pruner: minimum numbers of epochs and of trials before pruning."""

    n_warmup_steps: int
    n_startup_trials: int


@dataclass(frozen=True)
class SearchSpace:
    """Search space: ranges of settings.

    Attributes:
        written: ranges by name, as the user wrote them.
        distributions: distributions for Optuna; with integer limits, only integers are sampled.
        source: file of the space, for messages; empty without one.
    """

    written: Mapping[str, object]
    distributions: Space
    source: str = ""

    @classmethod
    def read(cls, space: str | Path | Mapping[str, Any]) -> "SearchSpace":
        """Read a search space, sorted by name.

        Raises:
            OptionError: if a setting is invalid; the message names it.
        """
        if isinstance(space, str | Path):
            source = find_config(str(space), "space")
            content = read_yaml(source)
        else:
            source = ""
            content = space
        if not isinstance(content, Mapping) or not content:
            raise OptionError("no_ranges", source=source)
        written: dict[str, object] = {}
        distributions: Space = {}
        for name in sorted(content, key=str):
            written[str(name)] = content[name]
            distributions[str(name)] = _range(source, str(name), content[name])
        return cls(written, distributions, source)

    def check(self, config_of: MakeConfig, given: Config) -> None:
        """Check before the first trial that fits accept the limits or choices of each range.

        Raises:
            OptionError: if a fit refuses a value, or a setting has no effect or changes the examples.
        """
        shared_settings = _choosing_examples(given)
        for name, distribution in self.distributions.items():
            configs = [self._config_with(config_of, name, value) for value in _ends(distribution)]
            if all(config == configs[0] for config in configs):
                raise OptionError("range_without_effect", source=self.source, name=name)
            for config in configs:
                if _choosing_examples(config) != shared_settings:
                    raise OptionError("range_of_examples", source=self.source, name=name, known=DATA_SETTINGS)

    def _config_with(self, config_of: MakeConfig, name: str, value: object) -> Config:
        try:
            return config_of({name: value})
        except (NarrlitError, ValueError) as error:
            problem = mistake_behind(error) or str(error)
            raise OptionError("refused_value", source=self.source, name=name, value=value, problem=problem) from error


def _range(source: str, name: str, spec: Any) -> "BaseDistribution":
    """Read the range of a setting."""
    if name.partition(".")[0] not in SECTIONS:
        raise OptionError("not_a_setting", source=source, name=name)
    with reading("broken_range", source, error=OptionError, name=name):
        distribution = _distribution(**spec)
    if distribution.single():
        raise OptionError("single_value", source=source, name=name)
    return distribution


def _distribution(**spec: Any) -> "BaseDistribution":
    library = require("optuna", "tune").distributions
    if "choices" in spec:
        kind = library.CategoricalDistribution
    elif isinstance(spec.get("low"), int) and isinstance(spec.get("high"), int):
        kind = library.IntDistribution
    else:
        kind = library.FloatDistribution
        for end in ("low", "high"):
            spec[end] = float(spec[end])  # YAML reads 1e-5, without a point, as text
    distribution: BaseDistribution = kind(**spec)
    return distribution


def _ends(distribution: Any) -> Sequence[object]:
    """Return the choices of a range, or its limits."""
    if hasattr(distribution, "choices"):
        return list(distribution.choices)
    return distribution.low, distribution.high


def _choosing_examples(config: Config) -> dict[str, object]:
    """Return the settings of a configuration that select its examples."""
    source = config["data"]["init_args"]["source"]["init_args"]
    return {name: value for name, value in source.items() if name not in DATA_SETTINGS}


@dataclass(frozen=True)
class Search:
    """Hyperparameter search in a folder.

    Attributes:
        arguments: arguments of `narrlit fit`.
        space: search space.
        folder: folder of the study and the runs.
        division: division of the training examples into folds.
        given: unchanged config, with its folds.
        study: trials so far.
    """

    arguments: Sequence[str]
    space: SearchSpace
    folder: Path
    division: Division
    given: DividedConfig
    study: "optuna.Study"

    @classmethod
    def begin(
        cls, arguments: Sequence[str], space: SearchSpace, folder: Path, division: Division, pruner: Pruner
    ) -> "Search":
        """Begin a search in a new folder, or resume the search in an existing one.

        Raises:
            OptionError: if the folder contains another search, or a fit refuses a value of the space.
        """
        divided = divide(arguments, division, PURPOSE)
        given = DividedConfig(_on_one_device(divided.config), divided.descriptions)
        space.check(lambda settings: _config_with(arguments, division, settings), given.config)
        examples = {f"fold_{fold.fold}": fold.sha256 for fold in given.descriptions}
        plan = {"fit": given.config, "space": space.written, "pruner": asdict(pruner), "examples": examples}
        keep_config(folder / "plan.yaml", plan, folder)
        return cls(arguments, space, folder, division, given, open_study(folder, pruner))

    def config_of(self, settings: Settings) -> Config:
        """Return the configuration of a fit with these settings."""
        return _config_with(self.arguments, self.division, settings)

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
        answers = answers_of(fits)

        first, *others = self.given.descriptions
        num_evaluations = sum(len(trial.user_attrs[ENTRY]["evaluations"]) for trial in trials)
        command = shlex.join(["narrlit", "fit", *self.arguments, *setting_arguments(winner.params)])
        notes = [
            Note.of("trials", trials=len(trials), evaluations=num_evaluations, n=first.evaluated),
            Note.of("held_out", folds=[fold.fold for fold in others]),
        ]
        if earlier:
            notes.append(Note.of("earlier_winners", winners=sorted(earlier)))
        settings = {
            "folds": first.folds,
            "fold_seed": first.fold_seed,
            "evaluated": first.evaluated,
            "space": dict(self.space.written),
            "winner": {"trial": winner.number, "settings": winner.params},
            "trials": [_trial_record(trial) for trial in trials],
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


def _config_with(arguments: Sequence[str], division: Division, settings: Settings) -> Config:
    """Return the configuration of a fit on fold 0 with the given settings."""
    config, _ = divided_config([*arguments, *setting_arguments(settings)], division, PURPOSE)
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


def winner_of(trials: "Sequence[FrozenTrial]") -> "FrozenTrial":
    """Select the finished trial with the highest accuracy in its best epoch; the first of equal ones.

    Raises:
        OptionError: if no trial has finished.
    """
    finished = [trial for trial in trials if _is_finished(trial.user_attrs[ENTRY])]
    if not finished:
        reasons = sorted({str(trial.user_attrs[ENTRY]["reason"]) for trial in trials})
        raise OptionError("no_finished_trial", reasons="; ".join(reasons))
    return max(finished, key=lambda trial: (best_of(trial).value, -trial.number))


def best_of(trial: "FrozenTrial", n: int = 0) -> Estimate:
    """Return the accuracy of a trial in its best epoch; NaN without one, on n triples."""
    best = trial.user_attrs[ENTRY]["best"]
    return Estimate(math.nan, math.nan, math.nan, n) if best is None else estimate_of(Evaluation.model_validate(best))


def _ended(trial: "FrozenTrial") -> str:
    """Say how a trial ended."""
    status, reason = trial.user_attrs[ENTRY]["status"], trial.user_attrs[ENTRY]["reason"]
    return status if reason is None else f"{status} ({reason})"


def _trial_figure(trial: "FrozenTrial", n: int, is_winner: bool) -> Row:
    """Return the accuracy of a trial on fold 0, with its settings and how it ended."""
    settings = {short_name: trial.params[name] for name, short_name in _short_names(trial.params).items()}
    return best_of(trial, n).row(
        f"trial_{trial.number:04d}",
        f"accuracy_{BEST}",
        "trials",
        **settings,
        epochs=len(trial.user_attrs[ENTRY]["evaluations"]),
        ended=f"{_ended(trial)}, winner" if is_winner else _ended(trial),
    )


def _trial_record(trial: "FrozenTrial") -> Row:
    """Describe a trial as plain data."""
    numbers = {"trial": trial.number, "run": f"trial_{trial.number:04d}", "repeats": trial.user_attrs.get("repeats")}
    return {**numbers, "settings": trial.params, **trial.user_attrs[ENTRY]}


def _print_progress(trials: "Sequence[FrozenTrial]") -> None:
    """Print how the last trial ended, and the best accuracy so far."""
    last = trials[-1]
    finished = [trial for trial in trials if _is_finished(trial.user_attrs[ENTRY])]
    best = value_text(max((best_of(trial).value for trial in finished), default=None)) or "none"
    accuracy = estimate_text(*best_of(last)[:3])
    say(f"trial {last.number}: {accuracy}, {_ended(last)}; {settings_text(last.params)}; best so far: {best}")


def open_study(folder: Path, pruner: Pruner) -> "optuna.Study":
    """Create or open the study in a folder; settings of killed trials are queued again."""
    library = require("optuna", "tune")
    library.logging.set_verbosity(library.logging.WARNING)
    study: optuna.Study = library.create_study(
        storage=f"sqlite:///{folder / 'tune.db'}",
        study_name="tune",
        direction="maximize",
        pruner=library.pruners.MedianPruner(**asdict(pruner)),
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
    if _is_finished(entry):
        study.tell(trial, entry["best"]["accuracy"])
    else:
        study.tell(trial, state=states.PRUNED if entry["status"] == "pruned" else states.FAIL)


def _is_finished(entry: Mapping[str, Any]) -> bool:
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
    short_names = _short_names(settings)
    return ", ".join(f"{short_names[name]}={value_text(value)}" for name, value in settings.items())


def _short_names(names: Iterable[str]) -> dict[str, str]:
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
