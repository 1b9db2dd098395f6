"""`narrlit.crossval`: one fit per fold of the training data, evaluated on this fold."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from narrlit.configuration import Configs, FitSettings, read_configs
from narrlit.console import say
from narrlit.datamodules import FoldData
from narrlit.datamodules.fold_data import FoldDescription
from narrlit.errors import OptionError
from narrlit.experiments.fit_figures import figures_by, fit_answers, fits_result, reference_differences
from narrlit.experiments.fitting import Config, parse_experiment_fit
from narrlit.experiments.plan import FinishedFit, FitsResult, Plan, PlannedFit, check_seeds
from narrlit.experiments.run import Run
from narrlit.results import Note, Row

PURPOSE = "a cross-validation"


def crossval(
    config: Configs,
    settings: FitSettings | None = None,
    *,
    out: str | Path,
    folds: int = 5,
    fold_seed: int = 0,
    ungrouped: bool = False,
    evaluate_synthetic: bool = False,
    seeds: Sequence[int] | None = None,
) -> FitsResult:
    """Fit and evaluate a config once per fold; finished folds are kept, an interrupted one is repeated.

    The training examples are divided into folds; examples that share a story are in the same fold. Each fold is
    evaluated by a model fitted on the other folds.

    Args:
        config: a config, or several, as in `narrlit.fit`.
        settings: settings that override the config, as in `narrlit.fit`.
        out: folder for the runs of the folds (fold_0, ...) and the result (crossval.json, ...); new, or that of the
            same cross-validation.
        folds: number of folds.
        fold_seed: seed of the division, separate from `seed_everything` so that seeds share folds.
        ungrouped: assign examples to folds individually, so that a story may occur in both training and evaluation;
            shows how much this inflates the accuracy.
        evaluate_synthetic: evaluate synthetic examples (`data.extra.synthetic`) as well, instead of only training on
            them; accuracies are then also given for synthetic and other examples separately.
        seeds: two or more seeds; all folds are fitted once per seed (seed_1_fold_0, ...).

    Returns:
        A `Result` with accuracies over all folds (and seeds) and by fold, and differences to the encoder before
        training; also `.runs` and `.folder`.

    Raises:
        DataError: if a file can't be read.
        OptionError: if a setting is invalid, or the folder belongs to another cross-validation.
        NarrlitError: if a fit fails; finished fits are kept.

    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> settings = {"data": "StoryWorldData", "data.train": 4, "data.validation": 4, "trainer.max_epochs": 1}
    >>> result = crossval("configs/mendel292_linear.yaml", settings, out="runs/crossval", folds=2)
    >>> result.table().query("metric == 'accuracy_last_epoch'")[["system", "fold", "n"]]
        system fold  n
    0  trained  NaN  4
    3  trained    0  2
    6  trained    1  2
    """
    division = Division(folds, fold_seed, ungrouped, evaluate_synthetic)
    divided = divide_examples(read_configs(config, settings), division, PURPOSE)
    divided.announce()
    fits = divided.fits() if seeds is None else divided.fits_with(check_seeds(seeds))
    finished = Plan(Path(out), fits, {"config": divided.config}).run()
    result = crossval_result(Path(out), finished, division)
    result.write()
    return result


@dataclass(frozen=True)
class Division:
    """Division of training examples into folds: parameters of `FoldData`."""

    folds: int = 5
    fold_seed: int = 0
    ungrouped: bool = False
    evaluate_synthetic: bool = False

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise OptionError("few_folds", folds=self.folds)


@dataclass(frozen=True)
class DividedConfig:
    """Config with training examples that are divided into folds.

    Attributes:
        config: config of the fit of fold 0.
        descriptions: descriptions of all folds.
    """

    config: Config
    descriptions: Sequence[FoldDescription]

    def announce(self) -> None:
        """Print how many examples are evaluated, and warn about folds that share stories."""
        first = self.descriptions[0]
        evaluated = sum(fold.evaluated for fold in self.descriptions)
        synthetic = sum(fold.synthetic for fold in self.descriptions)
        reasons = "have no dissimilar story" if synthetic else "are synthetic or have no dissimilar story"
        units = "examples" if first.ungrouped else "groups that share stories"
        say(
            f"{evaluated} of {first.all_rows} examples are evaluated; {first.never_evaluated}, which {reasons}, are "
            f"only used for training; {first.all_groups} {units}, the largest with {first.largest_group}; "
            f"{len(self.descriptions)} folds"
        )
        if synthetic:
            say(f"warning: {synthetic} evaluated examples are synthetic; word overlap alone may solve most of them")
        if first.ungrouped:
            say("warning: folds by example, not by story: accuracy is inflated if examples share stories")
        if self.config["data"]["init_args"]["source"]["init_args"].get("validation"):
            say("the config's validation triples are not used: every fold is evaluated on its own examples")

    def fits(self, prefix: str = "", system: str = "trained", first: int = 0) -> list[PlannedFit]:
        """Plan a fit for each fold from `first`, named PREFIXfold_0 and so on."""
        return [self._fit(fold, prefix, system) for fold in self.descriptions[first:]]

    def fits_with(self, seeds: Sequence[int]) -> list[PlannedFit]:
        """Plan a fit for each seed and fold, named seed_1_fold_0 and so on."""
        fits: list[PlannedFit] = []
        for seed in seeds:
            seeded = DividedConfig({**self.config, "seed_everything": seed}, self.descriptions)
            fits += seeded.fits(f"seed_{seed}_")
        return fits

    def _fit(self, fold: FoldDescription, prefix: str, system: str) -> PlannedFit:
        data = self.config["data"]
        data_of_fold = {**data, "init_args": {**data["init_args"], "fold": fold.fold}}
        config = {**self.config, "data": data_of_fold}
        about = f"{fold.trained} training examples, {fold.evaluated} evaluated"

        def check(run: Run) -> None:
            if run.record.data_of("validation").fold != asdict(fold):
                raise OptionError("other_examples", path=run.folder, folder=run.folder.parent)

        return PlannedFit(f"{prefix}fold_{fold.fold}", config, about, system, fold, check)


def divide_examples(layers: Sequence[FitSettings], division: Division, purpose: str) -> DividedConfig:
    """Divide the training examples of a config.

    Args:
        layers: configs and settings, of which later ones override earlier ones.
        division: division into folds.
        purpose: the experiment with an article, for messages.
    """
    config, data = divided_config(layers, division, purpose)
    return DividedConfig(config, [data.describe(fold) for fold in range(data.folds)])


def divided_config(layers: Sequence[FitSettings], division: Division, purpose: str) -> tuple[Config, FoldData]:
    """Return the configuration of the fit of fold 0, and the datamodule of the folds."""
    config, data = parse_experiment_fit(layers, purpose)
    if data.hard_examples.mine_validation:
        raise OptionError("mining_in_folds", purpose=purpose)
    settings = {"fold": 0, **asdict(division)}
    folds = {
        "class_path": "narrlit.datamodules.FoldData",
        "init_args": {"source": config["data"], **settings},
    }
    return {**config, "data": folds}, FoldData(data, **settings)


def crossval_result(folder: Path, fits: Sequence[FinishedFit], division: Division) -> FitsResult:
    """Compute the accuracies of the fits of all folds, also by origin (synthetic, other) if synthetic ones count."""
    answers = fit_answers(fits)
    figures: list[Row] = []
    notes = [Note.of("ungrouped")] if division.ungrouped else []
    folds = {planned.fold.fold: planned.fold for planned, _ in fits if planned.fold is not None}
    if any(fold.synthetic for fold in folds.values()):
        first_synthetic = {number: fold.evaluated - fold.synthetic for number, fold in folds.items()}
        is_synthetic = answers["triple"] >= answers["fold"].map(first_synthetic)
        answers = answers.assign(origin=np.where(is_synthetic, "synthetic", "other"))
        for origin, part in answers.groupby("origin", sort=False):
            figures += figures_by(part, subset=f"origin: {origin}")
        notes.append(Note.of("synthetic_evaluated"))
    first = folds[0]
    settings = {
        **asdict(division),
        "examples": first.all_rows,
        "never_evaluated": first.never_evaluated,
        "groups": first.all_groups,
        "largest_group": first.largest_group,
    }
    differences = reference_differences(answers)
    return fits_result("crossval", folder, fits, answers, differences, figures=figures, settings=settings, notes=notes)
