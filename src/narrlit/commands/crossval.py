"""narrlit crossval: k-fold cross-validation of a config, one fit a fold."""

from pathlib import Path
from typing import Any

from narrlit.commands.crossval_report import fold_entry, report, table
from narrlit.commands.fits import fit_apart, keep_plan, read_record
from narrlit.commands.folded import folded
from narrlit.commands.reports import keep_report, selectors
from narrlit.console import say
from narrlit.errors import OptionError

PLAN = "config.yaml"


def crossval(*fit: str, out: str, folds: int = 5, fold_seed: int = 0, ungrouped: bool = False) -> None:
    """Train and judge a config once a fold: all other options, --config first, are those of `narrlit fit`.

    The training rows are divided into folds, rows that share a story into the same one; each fold is judged by a fit
    on the others. The same command again goes on where it was stopped: finished folds stay, an interrupted one begins
    anew.

    Args:
        *fit: options of `narrlit fit`.
        out: folder for the folds' runs (fold_0, ...), crossval.json and crossval.md.
        folds: how many.
        fold_seed: decides the division; apart from --seed_everything, so that seeds can be compared on the same folds.
        ungrouped: divide by row, though a judged story may then have been trained on; to see what that hides.
    """
    folder = Path(out)
    division = {"fold": 0, "folds": folds, "fold_seed": fold_seed, "ungrouped": ungrouped}
    config, data = folded(fit, division, "a cross-validation")
    expected = [data.rows(fold).description for fold in range(folds)]
    _say_division(expected, config)
    finished = _prepare(folder, config, expected)
    for fold in range(folds):
        if fold in finished:
            say(f"fold {fold}: finished before")
            continue
        say(f"\nfold {fold}: {expected[fold]['trained']} rows train, {expected[fold]['judged']} are judged")
        fit_apart(folder / f"fold_{fold}", folder / PLAN, ["--data.init_args.fold", str(fold)])
    entries = [fold_entry(folder / f"fold_{fold}", expected[fold]) for fold in range(folds)]
    found = report(entries, expected[0], selectors(config))
    text = table(found)
    keep_report(folder, "crossval", found, text)
    say("")
    print(text, end="")


def _say_division(expected: list[dict[str, Any]], config: dict[str, Any]) -> None:
    first = expected[0]
    unit = "rows" if first["ungrouped"] else "groups that share stories"
    judged = sum(fold["judged"] for fold in expected)
    say(
        f"{judged} of {first['all_rows']} rows are judged, {first['never_judged']} synthetic or without a dissimilar "
        f"story of their own only train; {first['all_groups']} {unit}, the largest of {first['largest_group']}; "
        f"{len(expected)} folds"
    )
    if first["ungrouped"]:
        say("warning: folds by row, not by story: the accuracy is inflated where rows share stories")
    if config["data"]["init_args"]["source"]["init_args"].get("validation"):
        say("the config's validation triples are not read: every fold is judged by its own rows")


def _prepare(folder: Path, config: dict[str, Any], expected: list[dict[str, Any]]) -> set[int]:
    """Write the plan, or see that the folder holds the same; which folds are finished.

    Raises:
        OptionError: if the folder holds anything else.
    """
    finished: set[int] = set()
    if not keep_plan(folder / PLAN, config):
        return finished
    for fold, description in enumerate(expected):
        record = read_record(folder / f"fold_{fold}")
        if record.get("status") != "finished":
            continue
        if record["data"]["validation"]["fold"] != description:
            raise OptionError(f"{folder}/fold_{fold} was made of other rows: name another --out or remove {folder}")
        finished.add(fold)
    return finished
