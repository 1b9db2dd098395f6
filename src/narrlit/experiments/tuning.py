"""Hyperparameter search with Optuna: trials on fold 0, the winner evaluated on the other folds.

Source: TPE (Bergstra et al. 2011); median pruning (Golovin et al. 2017).
"""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.configuration import read_yaml
from narrlit.console import say
from narrlit.errors import NarrlitError, OptionError, mistake_behind, reading
from narrlit.experiments import report
from narrlit.experiments.crossval import fit_folds, fold_config
from narrlit.experiments.fitting import Config, deciding_callbacks, keep_plan, run_fit
from narrlit.experiments.report import Entry, Report
from narrlit.files import exclusive
from narrlit.metrics.significance import paired
from narrlit.optional import require

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

Space = dict[str, "BaseDistribution"]
MakeConfig = Callable[[Mapping[str, Any]], Config]
SECTIONS = ("model", "data", "trainer", "seed_everything")
DATA_SETTINGS = ("loading", "hard_examples", "pseudo_labels")
"""Parts of the data's settings by which a fit treats its examples; the others choose the examples."""


def tune_config(
    fit: Sequence[str], space_file: str, folder: Path, trials: int, division: Entry, pruner: Mapping[str, int]
) -> Report:
    """Search the best settings on fold 0 and evaluate the winner and the config as given on the other folds.

    Trials and runs that the folder holds are kept; `trials` counts those that end by themselves.
    """
    with exclusive(folder):
        return _tune(fit, space_file, folder, trials, division, pruner)


def _tune(
    fit: Sequence[str], space_file: str, folder: Path, trials: int, division: Entry, pruner: Mapping[str, int]
) -> Report:
    written, space = read_space(space_file)

    def config_of(settings: Mapping[str, Any]) -> Config:
        config, _ = fold_config([*fit, *as_options(settings)], division, "a search")
        return _on_one_device(config)

    config, data = fold_config(fit, division, "a search")
    given = _on_one_device(config)
    first, *held_out = descriptions = [data.rows(fold)[2] for fold in range(data.folds)]
    _check_space(config_of, given, space, space_file)
    examples = {f"fold_{each['fold']}": each["sha256"] for each in descriptions}
    plan = {"fit": given, "space": written, "pruner": dict(pruner), "examples": examples}
    keep_plan(folder / "plan.yaml", plan, folder)
    study = open_study(folder, pruner)
    say(f"fold 0: {first['trained']} examples train, {first['evaluated']} are evaluated in every trial")
    while len(trial_entries(study)) < trials:
        trial = ask(study, space, int(given["seed_everything"] or 0))
        run_trial(study, trial, folder, config_of)
        entries = trial_entries(study)
        last, finished = entries[-1], [one["best"]["accuracy"] for one in entries if one["status"] == "finished"]
        line = f"trial {last['trial']}: {', '.join(_outcome(last))}; {settings_text(last['settings'])}"
        say(f"{line}; best so far: {report.number(max(finished, default=None))}")
    entries = trial_entries(study)
    winner = winner_of(entries)
    name = f"winner_{winner['trial']:04d}"
    earlier = {run.name.partition("_fold_")[0] for run in folder.glob("winner_*_fold_*")} - {name}
    evaluated = {
        "given": fit_folds(folder, "given_", given, held_out),
        "winner": fit_folds(folder, f"{name}_", config_of(winner["settings"]), held_out),
    }
    command = shlex.join(["narrlit", "fit", *fit, *as_options(winner["settings"])])
    about = {"space": written, "earlier_winners": sorted(earlier), "command": command}
    return tune_report(entries, evaluated, first, deciding_callbacks(given), about)


def read_space(path: str) -> tuple[Entry, Space]:
    """Read a search space, as written and as Optuna's distributions, both sorted by name; int ends: whole numbers."""
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise OptionError(f"--space {path}: write options with ranges, such as NAME: {{low: 1, high: 9}}")
    written = {str(name): content[name] for name in sorted(content, key=str)}
    space = {}
    for name, spec in written.items():
        if name.partition(".")[0] not in SECTIONS:
            raise OptionError(f"--space {path}: {name} is no setting of narrlit fit, such as model.init_args.margin")
        with reading("--space", f"{path}: {name}", "write {low, high}, and step or log, or {choices}", OptionError):
            space[name] = _distribution(**spec)
        if space[name].single():
            raise OptionError(f"--space {path}: {name} has a single value; give it to narrlit fit instead")
    return written, space


def _distribution(**spec: Any) -> "BaseDistribution":
    library = require("optuna", "tune").distributions
    if "choices" in spec:
        return library.CategoricalDistribution(**spec)  # type: ignore[no-any-return]
    if isinstance(spec.get("low"), int) and isinstance(spec.get("high"), int):
        return library.IntDistribution(**spec)  # type: ignore[no-any-return]
    ends = {end: float(spec[end]) for end in ("low", "high")}  # YAML reads 1e-5, without a point, as text
    return library.FloatDistribution(**{**spec, **ends})  # type: ignore[no-any-return]


def as_options(settings: Mapping[str, Any]) -> list[str]:
    """Format settings as options of `narrlit fit`.

    >>> as_options({"a.b": 1e-05, "c": True, "d": None, "e": "linear"})
    ['--a.b=1e-05', '--c=true', '--d=null', '--e=linear']
    """
    return [f"--{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()]


def _on_one_device(config: Config) -> Config:
    trainer, devices = config["trainer"], config["trainer"]["devices"]
    several = len(devices) != 1 if isinstance(devices, list) else devices not in ("auto", 1, "1")
    if trainer["num_nodes"] != 1 or several:
        raise OptionError("fits of a search run on one device: give --trainer.devices 1 --trainer.num_nodes 1")
    return {**config, "trainer": {**trainer, "devices": 1}} if devices == "auto" else config


def _check_space(config_of: MakeConfig, given: Config, space: Space, path: str) -> None:
    """Refuse before the first trial what no fit takes, by the ends or choices of each range."""
    for name, distribution in space.items():
        ends: Any = distribution
        configs = []
        for value in ends.choices if hasattr(ends, "choices") else (ends.low, ends.high):
            try:
                configs.append(config_of({name: value}))
            except (NarrlitError, ValueError) as error:
                mistake = mistake_behind(error) or error
                raise OptionError(f"--space {path}: {name}: {value}: {mistake}") from error
        if all(config == configs[0] for config in configs):
            raise OptionError(f"--space {path}: {name} changes nothing here; leave it out")
        sources = [config["data"]["init_args"]["source"]["init_args"] for config in (given, *configs)]
        examples = [{key: source[key] for key in source if key not in DATA_SETTINGS} for source in sources]
        if any(other != examples[0] for other in examples):
            raise OptionError(
                f"--space {path}: {name} changes the examples that trials share; of data.init_args only "
                f"{', '.join(DATA_SETTINGS)} may vary"
            )


def open_study(folder: Path, pruner: Mapping[str, int]) -> "optuna.Study":
    """Open the folder's study or create it; settings of trials that a killed process left are queued again."""
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
        # Queued before it is closed: killed in between, the next process finds it still running.
        if trial.params and trial.number not in queued and "entry" not in trial.user_attrs:
            study.enqueue_trial(trial.params, user_attrs={"repeats": trial.number})
        study.tell(trial.number, state=states.FAIL)
    return study


def ask(study: "optuna.Study", space: Space, seed: int) -> "optuna.Trial":
    """Start the next trial; the sampler's seed depends on the trials before, so that resuming changes nothing."""
    own = int(np.random.SeedSequence((seed, len(trial_entries(study)))).generate_state(1)[0])
    study.sampler = require("optuna", "tune").samplers.TPESampler(seed=own)
    return study.ask(space)


def run_trial(study: "optuna.Study", trial: "optuna.Trial", folder: Path, config_of: MakeConfig) -> None:
    """Fit one trial's settings and store how it ended."""

    def prune(epoch: int, accuracy: float) -> bool:
        trial.report(accuracy, epoch)
        return trial.should_prune()

    run = folder / f"trial_{trial.number:04d}"
    try:
        result = run_fit(run, config_of(trial.params), prune)
        if result.reason is None and not result.evaluations:
            result.summary()  # which refuses it
    except NarrlitError as error:
        raise type(error)(f"trial {trial.number} ({settings_text(trial.params)}): {error}") from error
    status = "finished" if result.reason is None else result.record.get("status", "failed")
    known = [evaluation for evaluation in result.evaluations if evaluation["accuracy"] is not None]
    best = max(known, key=lambda evaluation: evaluation["accuracy"], default=None)
    entry = {"trial": trial.number, "run": run.name, "settings": trial.params, "status": status}
    entry |= {"reason": result.reason, "best": best, "evaluations": result.evaluations}
    trial.set_user_attr("entry", {**entry, "repeats": trial.user_attrs.get("repeats")})
    states = require("optuna", "tune").trial.TrialState
    if status == "finished" and best is not None:
        study.tell(trial, best["accuracy"])
    else:
        study.tell(trial, state=states.PRUNED if status == "pruned" else states.FAIL)


def trial_entries(study: "optuna.Study") -> list[Entry]:
    """Describe every trial that ended by itself: finished, pruned or failed."""
    return [trial.user_attrs["entry"] for trial in study.trials if "entry" in trial.user_attrs]


def winner_of(trials: Sequence[Entry]) -> Entry:
    """Select the finished trial with the highest accuracy in its best epoch; of equal ones the first."""
    finished = [trial for trial in trials if trial["status"] == "finished"]
    if not finished:
        reasons = "; ".join(sorted({trial["reason"] for trial in trials}))
        raise OptionError(f"no trial has finished ({reasons}): give more --trials, or another --space and --out")
    return max(finished, key=lambda trial: (trial["best"]["accuracy"], -trial["trial"]))


def tune_report(
    trials: Sequence[Entry], evaluated: Mapping[str, list[Entry]], fold: Entry, deciding: Sequence[str], about: Entry
) -> Report:
    """Summarize a search: its trials, and the winner and the config as `given` on all folds but the first, `fold`."""
    winner, num_evaluations = winner_of(trials), sum(len(trial["evaluations"]) for trial in trials)
    others = f"folds 1 to {fold['folds'] - 1}" if fold["folds"] > 2 else "fold 1"
    pooled = {name: report.pooled(entries) for name, entries in evaluated.items()}
    comparison = {name: _compare(evaluated, name, pooled["winner"][name]["n"]) for name in report.EVALUATIONS}
    notes = {
        "fold_0": f"accuracy in each trial's best epoch; the winner's is the highest of {len(trials)} trials and "
        f"{num_evaluations} evaluations of the same {fold['evaluated']} examples: too high by this selection",
        "last_epoch": f"accuracy on {others}, which evaluated no trial, after the last epoch; not selected by any "
        "evaluation" + (f", but {', '.join(deciding)} decided by the evaluated examples" if deciding else ""),
        "best_epoch": "accuracy there in the epoch that the evaluated examples themselves selected: too high",
    }
    earlier = ", ".join(about["earlier_winners"])
    titles = report.accuracy_cells(pooled["given"])
    rows: list[Entry] = [
        {others: name, "n": one["last_epoch"]["n"], **report.accuracy_cells(one)} for name, one in pooled.items()
    ]
    cells = map(report.difference_cell, comparison.values())
    rows.append({others: "difference", **dict(zip(titles, cells, strict=True))})
    names = _short(winner["settings"])
    trial_rows = [
        {
            "trial": trial["trial"],
            **{short: report.number(trial["settings"].get(name, "")) for name, short in names.items()},
            "accuracy on fold 0, best epoch": _outcome(trial)[0],
            "epochs": len(trial["evaluations"]),
            "ended": _outcome(trial)[1] + (", winner" if trial is winner else ""),
        }
        for trial in trials
    ]
    return Report(
        content={
            **{name: fold[name] for name in ("folds", "fold_seed", "evaluated")},
            "statuses": dict(Counter(trial["status"] for trial in trials)),
            "num_evaluations": num_evaluations,
            "winner": {"trial": winner["trial"], "settings": winner["settings"], **winner["best"]},
            "trials": list(trials),
            "held_out": {name: {"pooled": pooled[name], "by_fold": entries} for name, entries in evaluated.items()},
            "comparison": comparison,
            "notes": notes,
            **about,
        },
        tables={"Trials": trial_rows, "Held-out folds": rows},
        notes=[
            *report.note_lines(notes),
            report.INDEPENDENCE,
            *([f"These folds also evaluated {earlier}, of another number of trials."] if earlier else []),
            f"The winner's settings: `{about['command']}`",
        ],
        records=[{name: value for name, value in trial.items() if name != "evaluations"} for trial in trials],
        intervals={name: one["last_epoch"] for name, one in pooled.items()},
    )


def _compare(evaluated: Mapping[str, list[Entry]], name: str, n: int) -> Entry:
    wrong = {}
    for system, entries in evaluated.items():
        known = all(entry["wrong"][name] is not None for entry in entries)
        wrong[system] = {(e["fold"], i) for e in entries for i in e["wrong"][name]} if known else None
    return paired(wrong["winner"], wrong["given"], n)


def _short(settings: Mapping[str, Any]) -> dict[str, str]:
    """Shortest endings, in whole parts, by which the names differ."""
    short, parts = {}, {name: name.split(".") for name in settings}
    for name, own in parts.items():
        length = next(n for n in range(1, 99) if sum(other[-n:] == own[-n:] for other in parts.values()) == 1)
        short[name] = ".".join(own[-length:])
    return short


def settings_text(settings: Mapping[str, Any]) -> str:
    """Format settings for a message, by the shortest endings of their names that differ.

    >>> settings_text({"model.rate": 1 / 3, "data.size": 32, "model.more.rate": 1})
    'model.rate=0.3333, size=32, more.rate=1'
    """
    return ", ".join(f"{short}={report.number(settings[name])}" for name, short in _short(settings).items())


def _outcome(trial: Entry) -> tuple[str, str]:
    """Format a trial's accuracy, and how it ended."""
    accuracy = report.accuracy_cell(trial["best"]) if trial["best"] else "no accuracy"
    return accuracy, trial["status"] + (f" ({trial['reason']})" if trial["reason"] else "")
