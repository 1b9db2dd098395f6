"""narrlit tune: search a config's best settings on one fold, and judge them on the others."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.commands.devices import say
from narrlit.commands.fits import keep_plan
from narrlit.commands.folded import folded
from narrlit.commands.held_out import compare, fit_and_judge, winners_judged
from narrlit.commands.refusals import mistake_behind
from narrlit.commands.reports import selectors
from narrlit.commands.search_space import Scalar, Space, as_options, plain, read_space
from narrlit.commands.training import find_config
from narrlit.commands.tune_report import others, report, said, table, trial_line, winner_of
from narrlit.errors import NarrlitError, OptionError
from narrlit.files import atomic_path

if TYPE_CHECKING:
    from narrlit.commands.study import Study
    from narrlit.datamodules.fold_data import FoldData

Config = dict[str, Any]

PLAN = "plan.yaml"


def tune(
    *fit: str,
    space: str,
    trials: int,
    out: str,
    folds: int = 5,
    fold_seed: int = 0,
    epochs_before_pruning: int = 1,
    trials_before_pruning: int = 5,
) -> None:
    """Search the best settings on fold 0, judge them on the other folds: all other options are those of `narrlit fit`.

    The training rows are divided into folds, rows that share a story into the same one. Every trial trains on all
    folds but fold 0 and is judged there, by its best epoch; one below the median of the trials before is pruned. The
    winner was chosen by its accuracy on fold 0, which is therefore too high. So the winner, and for comparison the
    config as given, are then trained and judged once for each other fold, by whose rows no trial was judged. The same
    command again goes on where it was stopped, and may ask for more --trials.

    Args:
        *fit: options of `narrlit fit`.
        space: YAML file of options of `narrlit fit`, each with {low, high}, and step or log, or with {choices}.
        trials: how many; pruned and failed ones count, too.
        out: folder for the study (tune.db), the runs, tune.json and tune.md.
        folds: how many; accuracy on fold 0, which the winner is chosen by, is too high, that on the others is not.
        fold_seed: decides the division; apart from --seed_everything, which decides what is tried.
        epochs_before_pruning: that each trial trains at least.
        trials_before_pruning: that finish before one is pruned.
    """
    for option, number in (("trials", trials), ("epochs_before_pruning", epochs_before_pruning)):
        if number < 1:
            raise OptionError(f"--{option} {number}: at least 1 is needed")
    ranges = read_space(find_config(space, "--space"))
    distributions = {name: found.distribution() for name, found in ranges.items()}
    search = _Search(fit, {"fold": 0, "folds": folds, "fold_seed": fold_seed, "ungrouped": False})
    given, expected = search.prepare(ranges, space)
    pruner = {"n_warmup_steps": epochs_before_pruning - 1, "n_startup_trials": max(0, trials_before_pruning)}
    rows = {f"fold_{fold}": found["sha256"] for fold, found in enumerate(expected)}
    folder = Path(out)
    keep_plan(folder / PLAN, {"fit": given, "space": plain(ranges), "pruner": pruner, "rows": rows})
    from narrlit.commands.study import Study

    study = Study(folder, distributions, int(given["seed_everything"] or 0), pruner)
    trained, judged = expected[0]["trained"], expected[0]["judged"]
    say(f"fold 0: {trained} rows train, {judged} are judged in every trial; {others(folds)} left for the winner")
    _try(study, search, trials)
    _write(folder, {"space": plain(ranges), **_judged(folder, search, given, study.entries(), expected)})


@dataclass(frozen=True)
class _Search:
    """What all fits have in common."""

    fit: tuple[str, ...]
    division: dict[str, Any]

    def prepare(self, ranges: Space, space: str) -> tuple[Config, list[dict[str, Any]]]:
        """The config as given and the folds' descriptions; every range is seen to do.

        Raises:
            OptionError: if one does not, naming the file `space`.
        """
        from narrlit.commands.trials import hushed

        with hushed():
            given, data = self._folded({})
            _check_space(self, given, ranges, space)
            return given, [data.rows(fold).description for fold in range(self.division["folds"])]

    def config(self, settings: dict[str, Scalar]) -> Config:
        """The whole configuration of a fit with these settings."""
        from narrlit.commands.trials import hushed

        with hushed():
            return self._folded(settings)[0]

    def _folded(self, settings: dict[str, Scalar]) -> "tuple[Config, FoldData]":
        config, data = folded([*self.fit, *as_options(settings)], self.division, "a search")
        _one_process(config["trainer"])
        return config, data


def _one_process(trainer: Config) -> None:
    """See that a fit takes one process: trials run in this one, and the held-out fits as they did."""
    devices, one = trainer["devices"], ("auto", 1, "1")
    if trainer["num_nodes"] != 1 or not (devices in one or (isinstance(devices, list) and len(devices) == 1)):
        raise OptionError("a search's fits run on one device each: give --trainer.devices 1 --trainer.num_nodes 1")
    if devices == "auto":
        trainer["devices"] = 1


def _check_space(search: _Search, config: Config, ranges: Space, space: str) -> None:
    """Find out before the first trial what `narrlit fit` would refuse, or not notice.

    Raises:
        OptionError: naming file, option and value.
    """
    for name, found in ranges.items():
        configs = []
        for value in found.probes:
            try:
                configs.append(search.config({name: value}))
            except (NarrlitError, ValueError) as error:
                mistake = mistake_behind(error)
                if mistake is None:
                    raise
                raise OptionError(f"--space {space}: {name}: {value}: {mistake}") from error
        if all(other == configs[0] for other in configs):
            raise OptionError(f"--space {space}: {name} changes nothing here; leave it out")
        if any(_rows(other) != _rows(config) for other in configs):
            raise OptionError(
                f"--space {space}: {name} changes the rows, and trials are compared on the same; of the data, only "
                "loading may change"
            )


def _rows(config: Config) -> Config:
    """What says which rows there are."""
    source = config["data"]["init_args"]["source"]
    return {**source, "init_args": {k: v for k, v in source["init_args"].items() if k != "loading"}}


def _try(study: "Study", search: _Search, trials: int) -> None:
    """Run trials until so many have ended; one that cannot be run as configured stops the command."""
    from narrlit.commands.study import run_name
    from narrlit.commands.trials import run_trial

    while study.ended < trials:
        trial = study.ask()
        about = {"number": trial.number, "settings": dict(trial.params)}
        try:
            config = search.config(trial.params)
            outcome = run_trial(study.folder / run_name(trial.number), config, about, study.advice(trial))
        except NarrlitError as error:
            raise type(error)(f"trial {trial.number} ({said(trial.params)}): {error}") from error
        ended = study.tell(trial, outcome)
        say(trial_line(ended, study.entries()))


def _judged(
    folder: Path, search: _Search, given: Config, trials: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> dict[str, Any]:
    """Judge the winner and the config as given on the folds that the search left alone; the content of tune.json."""
    winner = winner_of(trials)
    name = f"winner_{winner['trial']:04d}"
    earlier = [other for other in winners_judged(folder) if other != name]
    entries = {
        "given": fit_and_judge(folder, "given", given, expected[1:]),
        "winner": fit_and_judge(folder, name, search.config(winner["settings"]), expected[1:]),
    }
    found = report(trials, entries, expected[0], selectors(given))
    command = shlex.join(["narrlit", "fit", *search.fit, *as_options(winner["settings"])])
    return {**found, "comparison": compare(**entries), "earlier_winners": earlier, "command": command}


def _write(folder: Path, found: dict[str, Any]) -> None:
    text = table(found)
    with atomic_path(folder / "tune.json") as temporary:
        temporary.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    with atomic_path(folder / "tune.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    say("")
    print(text, end="")
