"""Fits that are judged on folds that a search left alone, and two of them compared row by row."""

from pathlib import Path
from typing import Any

import yaml

from narrlit.commands.crossval_report import LOOKS, Entry, fold_entry, pooled
from narrlit.commands.devices import say
from narrlit.commands.fits import fit_apart, read_record
from narrlit.files import atomic_path

JUDGEMENTS = {"class_path": "narrlit.callbacks.judgements.Judgements"}


def fit_and_judge(folder: Path, name: str, config: dict[str, Any], expected: list[Entry]) -> list[Entry]:
    """Fit a config once for each fold, and judge it there; finished fits stay.

    Args:
        folder: holds the runs, `NAME_fold_1` and so on, and the configuration, NAME.yaml.
        name: of the config.
        config: its whole configuration, over FoldData.
        expected: the folds' descriptions.

    Returns:
        An entry a fold, as a cross-validation has them, with `judgements`: a sign a row, by look.

    Raises:
        NarrlitError: if a fit fails.
    """
    callbacks = [*(config["trainer"]["callbacks"] or []), JUDGEMENTS]
    whole = {**config, "trainer": {**config["trainer"], "callbacks": callbacks}}
    plan = folder / f"{name}.yaml"
    with atomic_path(plan) as temporary:
        temporary.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    return [_entry(_fitted(folder, name, plan, found["fold"]), found) for found in expected]


def winners_judged(folder: Path) -> list[str]:
    """Names of the winners, of this number of trials or another, that were judged on a held-out fold."""
    return sorted({run.name.partition("_fold_")[0] for run in folder.glob("winner_*_fold_*")})


def compare(winner: list[Entry], given: list[Entry]) -> dict[str, Entry]:
    """How the winner's accuracy differs from the given config's on the same rows, by look.

    `only_winner` and `only_given` count rows that one alone judged rightly; `p` is McNemar's, exact. A look in which
    a score was NaN has neither difference nor test.
    """
    return {look: _compare(look, winner, given) for look in LOOKS}


def _fitted(folder: Path, name: str, plan: Path, fold: int) -> Path:
    run = folder / f"{name}_fold_{fold}"
    if read_record(run).get("status") == "finished":
        say(f"{name}, fold {fold}: finished before")
    else:
        say(f"\n{name}, fold {fold}")
        fit_apart(run, plan, ["--data.init_args.fold", str(fold)])
    return run


def _entry(run: Path, description: Entry) -> Entry:
    entry, record = fold_entry(run, description), read_record(run)
    signs = dict(zip([look["epoch"] for look in record["validations"]], record["judgements"], strict=True))
    return {**entry, "judgements": {look: signs[entry[look]["epoch"]] for look in LOOKS}}


def _compare(look: str, winner: list[Entry], given: list[Entry]) -> Entry:
    from narrlit.callbacks.judgements import RIGHT
    from narrlit.metrics.statistics import mcnemar

    sides = (winner, given)
    new, old = (pooled(entries)[look]["accuracy"] for entries in sides)
    if new is None or old is None:
        return {"difference": None, "only_winner": None, "only_given": None, "p": None}
    first, second = ([sign == RIGHT for one in entries for sign in one["judgements"][look]] for entries in sides)
    pairs = list(zip(first, second, strict=True))
    return {
        "difference": new - old,
        "only_winner": pairs.count((True, False)),
        "only_given": pairs.count((False, True)),
        "p": mcnemar(first, second),
    }
