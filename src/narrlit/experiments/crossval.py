"""`narrlit.crossval`: one fit per fold of the training data, evaluated on this fold."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from narrlit.console import say
from narrlit.datamodules import FoldData
from narrlit.datamodules.fold_data import FoldDescription
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.fitting import Config, Configs, Options, deciding_callbacks, fit_arguments, parse_fit
from narrlit.experiments.outcome import EVALUATIONS, Outcome, Scored, pooled
from narrlit.experiments.plan import FOLDER, Accuracy, FinishedFit, Plan, PlannedFit, PlanResult, pooled_accuracies
from narrlit.experiments.report import Entry, Report, Spread
from narrlit.experiments.run import Run
from narrlit.experiments.seed_report import FROZEN, TRAINED, check_seeds, seeds_report, with_frozen
from narrlit.metrics.significance import AccuracySummary

PURPOSE = "a cross-validation"
SYNTHETIC = "SYNTHETIC: synthetic examples are evaluated, most of which word overlap alone may solve."


def crossval(
    config: Configs,
    options: Options | None = None,
    *,
    folder: str | Path,
    folds: int = 5,
    fold_seed: int = 0,
    ungrouped: bool = False,
    evaluate_synthetic: bool = False,
    seeds: Sequence[int] | None = None,
) -> PlanResult:
    """Fit and evaluate a config once per fold; finished folds are kept, an interrupted one is repeated.

    The training examples are divided into folds; examples that share a story are in the same fold. Each fold is
    evaluated by a model fitted on the other folds.

    Args:
        config: a config, or several, as in `narrlit.fit`.
        options: settings that override the config, as in `narrlit.fit`.
        folder: folder for the runs of the folds (fold_0, ...); new, or that of the same cross-validation.
        folds: number of folds.
        fold_seed: seed of the division, separate from `seed_everything` so that seeds share folds.
        ungrouped: assign examples to folds individually, so that a story may occur in both training and evaluation;
            shows how much this inflates the accuracy.
        evaluate_synthetic: evaluate synthetic examples (`data.extra.synthetic`) as well, instead of only training on
            them; the report then also pools synthetic and other examples separately.
        seeds: two or more seeds; all folds are fitted once per seed (seed_1_fold_0, ...).

    Returns:
        A `PlanResult`: `.table()` with one row per accuracy, by fold (and seed) and pooled over all folds, `.runs`,
        `.plot()`, `.write()`. It is printed as the report.

    Raises:
        DataError: if a file can't be read.
        OptionError: if a setting is invalid, or the folder belongs to another cross-validation.
        NarrlitError: if a fit fails; finished fits are kept.

    >>> getfixture("monkeypatch").chdir(getfixture("tmp_path"))
    >>> options = {"data": "StoryWorldData", "data.train": 4, "data.validation": 4, "trainer.max_epochs": 1}
    >>> result = crossval("configs/mendel292_linear.yaml", options, folder="runs/crossval", folds=2)
    >>> result.table().query("metric == 'accuracy_last_epoch'")[["system", "fold", "seed", "n"]]
        system  fold  seed  n
    0  trained     0    42  2
    3  trained     1    42  2
    6  trained  None  None  4
    """
    division = Division(folds, fold_seed, ungrouped, evaluate_synthetic)
    divided = divide(fit_arguments(config, options), division, PURPOSE)
    divided.announce()
    fits = divided.fits() if seeds is None else divided.fits_with(check_seeds(seeds))
    finished = Plan(Path(folder), fits, {"config": divided.config}).run()
    if seeds is not None:
        return _seeds_result(folder, finished)
    result = crossval_report(finished, deciding_callbacks(divided.config))
    return PlanResult.of("crossval", folder, finished, result, pooled_accuracies(TRAINED, pool(finished)))


@dataclass(frozen=True)
class Division:
    """Division of training examples into folds: parameters of `FoldData`."""

    folds: int = 5
    fold_seed: int = 0
    ungrouped: bool = False
    evaluate_synthetic: bool = False

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise OptionError(f"`folds={self.folds}`: at least 2 are needed, one to evaluate and one to train")


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

    def fits(self, prefix: str = "", system: str = TRAINED, first: int = 0) -> list[PlannedFit]:
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
                parent = run.folder.parent
                raise OptionError(f"{run.folder} used other examples: choose another {FOLDER} or remove {parent}")

        return PlannedFit(f"{prefix}fold_{fold.fold}", config, about, system, fold, check)


def divide(arguments: Sequence[str], division: Division, purpose: str) -> DividedConfig:
    """Divide the training examples of a config.

    Args:
        arguments: arguments of `narrlit fit`.
        division: division into folds.
        purpose: the experiment with an article, for messages.
    """
    config, data = divided_config(arguments, division, purpose)
    return DividedConfig(config, [data.describe(fold) for fold in range(data.folds)])


def divided_config(arguments: Sequence[str], division: Division, purpose: str) -> tuple[Config, FoldData]:
    """Return the configuration of the fit of fold 0, and the datamodule of the folds."""
    config, data = parse_fit(arguments, purpose)
    if data.hard_examples.mine_validation:
        raise OptionError(
            f"data.hard_examples.mine_validation cannot be used in {purpose}, because evaluated examples would be "
            "used for training; leave it out"
        )
    settings = {"fold": 0, **asdict(division)}
    folds = {
        "class_path": "narrlit.datamodules.FoldData",
        "init_args": {"source": config["data"], **settings},
    }
    return {**config, "data": folds}, FoldData(data, **settings)


def pool(fits: Sequence[FinishedFit]) -> Outcome:
    """Pool the outcomes of the fits of all folds."""
    return pooled({fit.fold.fold: fit.outcome for fit in fits})


def pooled_by_origin(fits: Sequence[FinishedFit], whole: Outcome) -> dict[str, Outcome]:
    """Divide a pooled outcome into synthetic and other examples; empty if no synthetic example was evaluated.

    Args:
        fits: fits of all folds.
        whole: their pooled outcome.
    """
    members: dict[str, set[Hashable]] = {"synthetic": set(), "other": set()}
    for fit in fits:
        fold = fit.fold
        first_synthetic = fold.evaluated - fold.synthetic
        for position in range(fold.evaluated):
            origin = "synthetic" if position >= first_synthetic else "other"
            members[origin].add((fold.fold, position))
    if not members["synthetic"]:
        return {}
    outcomes = {}
    for origin, examples in members.items():
        scores = {}
        for name, score in whole.scores.items():
            if score.wrong is None:
                scores[name] = Scored(AccuracySummary(len(examples), 0, undefined=score.summary.undefined))
                continue
            ordered = list(examples)
            stories = None if score.stories is None else {example: score.stories[example] for example in ordered}
            correct = [example not in score.wrong for example in ordered]
            summary = AccuracySummary.of(correct, None if stories is None else [*stories.values()])
            scores[name] = Scored(summary, score.wrong & examples, stories=stories)
        outcomes[origin] = Outcome(scores, whole.num_evaluations, whole.flags)
    return outcomes


def _seeds_result(folder: str | Path, fits: Sequence[FinishedFit]) -> PlanResult:
    """Pool the folds of each seed, and summarize the seeds."""
    by_seed: dict[int, list[FinishedFit]] = {}
    for fit in fits:
        by_seed.setdefault(fit.planned.seed or 0, []).append(fit)
    outcomes = {seed: pool(folds) for seed, folds in by_seed.items()}
    further: list[Accuracy] = []
    for seed, outcome in outcomes.items():
        further += pooled_accuracies(TRAINED, outcome, seed)
    result = seeds_report(with_frozen(outcomes), FROZEN)
    if any(fit.fold.synthetic for fit in fits):
        result = replace(result, notes=[*result.notes, SYNTHETIC])
    return PlanResult.of("crossval", folder, fits, result, further)


def crossval_report(fits: Sequence[FinishedFit], deciding: Sequence[str]) -> Report:
    """Summarize a cross-validation by fold, pooled over all examples, and as the mean over folds.

    Args:
        fits: fits of all folds.
        deciding: names of callbacks whose decisions depend on the evaluated examples.
    """
    first = fits[0].fold
    whole = pool(fits)
    origins = pooled_by_origin(fits, whole)
    over_folds = _over_folds(fits)
    notes = _notes(whole.num_evaluations, deciding)
    intervals = {f"fold {fit.fold.fold}": fit.outcome.last.as_dict() for fit in fits}
    return Report(
        content={
            "folds": first.folds,
            "fold_seed": first.fold_seed,
            "ungrouped": first.ungrouped,
            "largest_group": first.largest_group,
            "examples": first.all_rows,
            "never_evaluated": first.never_evaluated,
            "groups": first.all_groups,
            "num_evaluations": whole.num_evaluations,
            "notes": notes,
            "pooled": accuracies_as_dict(whole),
            "pooled_by_origin": {origin: outcome.as_dict() for origin, outcome in origins.items()},
            "over_folds": {name: spread.as_dict() for name, spread in over_folds.items()},
            "by_fold": [fit.fold_as_dict() for fit in fits],
        },
        tables={"": _rows(fits, whole, origins, over_folds)},
        notes=[
            *report.note_lines(notes),
            report.method_note(whole.is_by_story, tested=False),
            *_warnings(first, whole, bool(origins)),
        ],
        records=[],
        intervals={**intervals, "pooled": whole.last.as_dict()},
    )


def accuracies_as_dict(outcome: Outcome) -> Entry:
    """Convert the accuracies after the last and the best epoch to JSON values, without the answers."""
    return {name: outcome.scores[name].as_dict() for name in EVALUATIONS}


def _over_folds(fits: Sequence[FinishedFit]) -> dict[str, Spread]:
    """Compute mean and standard deviation of each evaluation over the folds."""
    spreads: dict[str, Spread] = {}
    for name in EVALUATIONS:
        spreads[name] = Spread.of([fit.outcome.scores[name].accuracy for fit in fits])
    return spreads


def _notes(num_evaluations: int, deciding: Sequence[str]) -> dict[str, str]:
    """Explain the accuracies, by name."""
    return {
        "last_epoch": f"accuracy after each fold's last epoch; not selected by any evaluation{except_by(deciding)}",
        "best_epoch": "accuracy in the epoch that the evaluated examples themselves selected, out of "
        f"{num_evaluations} evaluations in total: too high because of this selection",
    }


def except_by(deciding: Sequence[str]) -> str:
    """Format the end of a note: callbacks whose decisions depend on the evaluated examples; empty without any.

    >>> except_by(["EarlyStopping"])
    ', except by EarlyStopping, which used the evaluated examples'
    """
    return f", except by {', '.join(deciding)}, which used the evaluated examples" if deciding else ""


def _warnings(fold: FoldDescription, whole: Outcome, synthetic: bool) -> list[str]:
    """List the flags of all runs, and warn about folds that share stories or evaluate synthetic examples."""
    lines = []
    if whole.flags:
        lines.append(f"Flags of the folds' runs: {', '.join(whole.flags)}.")
    if fold.ungrouped:
        lines.append("UNGROUPED: folds by example; evaluated stories may be in the training data.")
    if synthetic:
        lines.append(SYNTHETIC)
    return lines


def _rows(
    fits: Sequence[FinishedFit], whole: Outcome, origins: Mapping[str, Outcome], over_folds: Mapping[str, Spread]
) -> list[Entry]:
    """Format one row per fold, then for all examples, for synthetic and other ones, and for the mean over folds."""
    rows: list[Entry] = []
    for fit in fits:
        fold = fit.fold
        sizes = {"fold": fold.fold, "groups": fold.groups, "trained": fold.trained, "evaluated": fold.evaluated}
        cells = report.accuracy_cells(fit.outcome)
        rows.append({**sizes, **cells, "selected": report.selected_cell(fit.outcome)})
    cells = report.accuracy_cells(whole)
    rows.append({"fold": "pooled", "groups": fits[0].fold.all_groups, "evaluated": whole.last.summary.n, **cells})
    for origin, outcome in origins.items():
        n = outcome.last.summary.n
        rows.append({"fold": f"pooled, {origin}", "evaluated": n, **report.accuracy_cells(outcome)})
    mean: Entry = {"fold": "mean ± standard deviation"}
    for title, spread in zip(cells, over_folds.values(), strict=True):
        mean[title] = spread.text()
    return [*rows, mean]
