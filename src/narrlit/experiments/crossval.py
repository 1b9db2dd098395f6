"""Cross-validation: one fit a fold of the training data, each evaluated on its own fold."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from narrlit.console import say
from narrlit.datamodules import FoldData
from narrlit.errors import OptionError
from narrlit.experiments import report
from narrlit.experiments.fitting import Config, RunResult, deciding_callbacks, keep_plan, parse_fit, run_fit
from narrlit.experiments.report import Entry, Report
from narrlit.files import exclusive


def cross_validate(fit: Sequence[str], folder: Path, division: dict[str, Any]) -> Report:
    """Fit and evaluate a config once a fold; finished folds are kept, an interrupted one is repeated."""
    with exclusive(folder):
        config, descriptions = plan_folds(fit, folder, division)
        entries = fit_folds(folder, "", config, descriptions)
    return crossval_report(entries, descriptions[0], deciding_callbacks(config))


def plan_folds(fit: Sequence[str], folder: Path, division: dict[str, Any]) -> tuple[Config, list[Entry]]:
    """Divide a config's training data; return the configuration of a fit on fold 0, and each fold's description."""
    config, data = fold_config(fit, division, "a cross-validation")
    descriptions = [data.rows(fold)[2] for fold in range(data.folds)]
    first = descriptions[0]
    say(
        f"{sum(each['evaluated'] for each in descriptions)} of {first['all_rows']} examples are evaluated, "
        f"{first['never_evaluated']} synthetic or without a dissimilar story only train; {first['all_groups']} "
        f"{'examples' if first['ungrouped'] else 'groups that share stories'}, the largest of "
        f"{first['largest_group']}; {len(descriptions)} folds"
    )
    if first["ungrouped"]:
        say("warning: folds by example, not by story: accuracy is inflated where examples share stories")
    if config["data"]["init_args"]["source"]["init_args"].get("validation"):
        say("the config's validation triples are not used: every fold is evaluated on its own examples")
    keep_plan(folder / "config.yaml", config, folder)
    return config, descriptions


def fold_config(fit: Sequence[str], division: dict[str, Any], purpose: str) -> tuple[Config, FoldData]:
    """Return the configuration of a fit on fold 0 of a config's training data, and all folds' data."""
    if division["folds"] < 2:
        raise OptionError(f"--folds {division['folds']}: at least 2 are needed, one to evaluate and one to train")
    config, data = parse_fit(fit, purpose)
    if data.hard_examples.mine_validation:
        raise OptionError(
            f"data.hard_examples.mine_validation cannot be used in {purpose}: evaluated examples would train; "
            "leave it out"
        )
    arguments = {"source": config["data"], "fold": 0, **division}
    folds = {"class_path": "narrlit.datamodules.FoldData", "init_args": arguments}
    return {**config, "data": folds}, FoldData(data, fold=0, **division)


def fit_folds(folder: Path, prefix: str, config: Config, descriptions: Sequence[Entry]) -> list[Entry]:
    """Fit a config on FoldData once for each described fold, as PREFIXfold_0 and so on; finished folds are kept."""
    entries = []
    for about in descriptions:
        run = folder / f"{prefix}fold_{about['fold']}"
        result = RunResult.read(run)
        if result.finished:
            if result.record["data"]["validation"]["fold"] != about:
                raise OptionError(f"{run} used other examples: choose another --out or remove {folder}")
            say(f"{run.name}: already finished")
        else:
            say(f"\n{run.name}: {about['trained']} examples train, {about['evaluated']} are evaluated")
            data = {**config["data"], "init_args": {**config["data"]["init_args"], "fold": about["fold"]}}
            result = run_fit(run, {**config, "data": data})
        names = ("fold", "groups", "trained", "evaluated", "left_out")
        entries.append({**{name: about[name] for name in names}, "run": run.name, **result.summary()})
    return entries


def crossval_report(entries: Sequence[Entry], description: Entry, deciding: Sequence[str]) -> Report:
    """Summarize a cross-validation by fold, pooled over all examples, and as mean over folds."""
    num_evaluations = sum(entry["num_evaluations"] for entry in entries)
    decided = f", but {', '.join(deciding)} decided by the evaluated examples" if deciding else ""
    notes = {
        "last_epoch": f"accuracy after each fold's last epoch; not selected by any evaluation{decided}",
        "best_epoch": "accuracy in the epoch that the evaluated examples themselves selected, of "
        f"{num_evaluations} evaluations in all: too high by this selection",
    }
    pooled = report.pooled(entries)
    spread = {name: report.spread([entry[name]["accuracy"] for entry in entries]) for name in report.EVALUATIONS}
    rows = [
        {
            **{name: entry[name] for name in ("fold", "groups", "trained", "evaluated")},
            **report.accuracy_cells(entry),
            "selected": report.selected_cell(entry),
        }
        for entry in entries
    ]
    n, groups, cells = pooled["last_epoch"]["n"], description["all_groups"], report.accuracy_cells(pooled)
    spreads = map(report.spread_cell, spread.values())
    rows.append({"fold": "pooled", "groups": groups, "evaluated": n, **cells})
    rows.append({"fold": "mean ± standard deviation", **dict(zip(cells, spreads, strict=True))})
    flags = sorted({flag for entry in entries for flag in entry["flags"]})
    extra = [f"Flags of the folds' runs: {', '.join(flags)}."] if flags else []
    if description["ungrouped"]:
        extra.append("UNGROUPED: folds by example; evaluated stories may have trained, and accuracy may be inflated.")
    records = [{name: value for name, value in entry.items() if name != "wrong"} for entry in entries]
    return Report(
        content={
            **{name: description[name] for name in ("folds", "fold_seed", "ungrouped", "largest_group")},
            "examples": description["all_rows"],
            "never_evaluated": description["never_evaluated"],
            "groups": description["all_groups"],
            "num_evaluations": num_evaluations,
            "notes": notes,
            "pooled": pooled,
            "over_folds": spread,
            "by_fold": records,
        },
        tables={"": rows},
        notes=[*report.note_lines(notes), report.INDEPENDENCE, *extra],
        records=records,
        intervals={**{f"fold {e['fold']}": e["last_epoch"] for e in entries}, "pooled": pooled["last_epoch"]},
    )
