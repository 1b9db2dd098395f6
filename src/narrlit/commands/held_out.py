"""Fits that are judged on folds that a search left alone, and two of them compared row by row."""

from pathlib import Path
from typing import Any

import yaml

from narrlit.commands.crossval_report import fold_entry
from narrlit.commands.fits import fit_apart, read_record
from narrlit.commands.reports import LOOKS, Entry, paired, pooled, read_answers, wrong_answers
from narrlit.console import say
from narrlit.files import atomic_path


def fit_and_judge(folder: Path, name: str, config: dict[str, Any], expected: list[Entry]) -> list[Entry]:
    """Fit a config once for each fold, and judge it there; finished fits stay.

    Args:
        folder: holds the runs, `NAME_fold_1` and so on, and the configuration, NAME.yaml.
        name: of the config.
        config: its whole configuration, over FoldData.
        expected: the folds' descriptions.

    Returns:
        An entry a fold, as a cross-validation has them, with `wrong`: places of wrong answers, by look.

    Raises:
        NarrlitError: if a fit fails.
    """
    plan = folder / f"{name}.yaml"
    with atomic_path(plan) as temporary:
        temporary.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return [_entry(_fitted(folder, name, plan, found["fold"]), found) for found in expected]


def winners_judged(folder: Path) -> list[str]:
    """Names of the winners, of this number of trials or another, that were judged on a held-out fold."""
    return sorted({run.name.partition("_fold_")[0] for run in folder.glob("winner_*_fold_*")})


def compare(winner: list[Entry], given: list[Entry]) -> dict[str, Entry]:
    """How the winner's accuracy differs from the given config's on the same rows, by look.

    `won` and `lost` count rows that the winner alone, or the given config alone, judged rightly. A look in which a
    score was NaN has neither difference nor test.
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
    entry = fold_entry(run, description)
    return {**entry, "wrong": wrong_answers(entry, read_answers(run), run.name)}


def _compare(look: str, winner: list[Entry], given: list[Entry]) -> Entry:
    return paired(_wrong(winner, look), _wrong(given, look), pooled(winner)[look]["n"])


def _wrong(entries: list[Entry], look: str) -> set[tuple[int, int]] | None:
    """Rows of all folds that were judged wrongly, by fold and place."""
    if any(entry["wrong"][look] is None for entry in entries):
        return None
    return {(fold, place) for fold, entry in enumerate(entries) for place in entry["wrong"][look]}
