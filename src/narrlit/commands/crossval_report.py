"""What a cross-validation found: by fold, pooled over all rows, and how often the judged rows were looked at."""

import json
from pathlib import Path
from statistics import mean, stdev

from narrlit.commands.reports import LOOKS, Entry, accuracy, judged, marks_of, pooled, row
from narrlit.errors import OptionError
from narrlit.models.source import RECORD


def fold_entry(run: Path, description: Entry) -> Entry:
    """One finished fold, from its run's record.

    Raises:
        OptionError: if the fit has not looked at all the fold's rows.
    """
    record: Entry = json.loads((run / RECORD).read_text(encoding="utf-8"))
    looks = record["validations"]
    seen = looks[-1]["n"] if looks else 0
    if seen != description["judged"]:
        raise OptionError(
            f"{run}: its fit judged {seen} of {description['judged']} rows; let it train a whole epoch at least "
            "(trainer.max_epochs, max_steps), and name another --out"
        )
    return {
        "fold": description["fold"],
        "run": run.name,
        "groups": description["groups"],
        "trained": description["trained"],
        "judged": description["judged"],
        "left_out": description["left_out"],
        **judged(record),
        "stories_shared_with_training": record["marks"]["stories_shared_with_validation"],
        "marks": marks_of(record),
    }


def report(entries: list[Entry], description: Entry, selectors: list[str]) -> Entry:
    """The content of crossval.json.

    Args:
        entries: of all folds.
        description: of any fold: how the rows were divided.
        selectors: callbacks that decided by the judged rows.
    """
    by, looks = ", ".join(selectors), sum(entry["looks"] for entry in entries)
    last = f"no look chose it, but {by} decided by the judged rows" if selectors else "no look chose it"
    return {
        "folds": len(entries),
        "fold_seed": description["fold_seed"],
        "ungrouped": description["ungrouped"],
        "rows": description["all_rows"],
        "never_judged": description["never_judged"],
        "groups": description["all_groups"],
        "largest_group": description["largest_group"],
        "looks": looks,
        "meaning": {
            "last_epoch": f"accuracy at each fold's last look, after the last whole epoch: {last}",
            "best_epoch": f"accuracy in the epoch that the judged rows themselves chose, of {looks} looks in all: "
            "too high by that choice",
        },
        "pooled": pooled(entries),
        "over_folds": {name: _over_folds([entry[name]["accuracy"] for entry in entries]) for name in LOOKS},
        "by_fold": entries,
    }


def table(found: Entry) -> str:
    """The content of crossval.md."""
    lines = [
        "| fold | groups | trained | judged | accuracy, last epoch | accuracy, best epoch | best of looks |",
        "|---|---:|---:|---:|---|---|---|",
    ]
    for entry in found["by_fold"]:
        cells = [entry["fold"], entry["groups"], entry["trained"], entry["judged"], *_cells(entry)]
        lines.append(row([*cells, f"epoch {entry['best_epoch']['epoch']}, {entry['looks']} looks"]))
    whole = found["pooled"]
    lines.append(row(["pooled", found["groups"], "", whole["last_epoch"]["n"], *_cells(whole), ""]))
    spread = [
        f"{_number(over['mean'])} ± {_number(over['standard_deviation'])}" for over in found["over_folds"].values()
    ]
    lines.append(row(["mean ± standard deviation over folds", "", "", "", *spread, ""]))
    notes = [f"{name.replace('_', ' ').capitalize()}: {words}." for name, words in found["meaning"].items()]
    notes.append("Intervals are Wilson's, 95 %; they take rows for independent.")
    marks = sorted({mark for entry in found["by_fold"] for mark in entry["marks"]})
    if marks:
        notes.append(f"Marks of the folds' runs: {', '.join(marks)}.")
    if found["ungrouped"]:
        notes.append("UNGROUPED: folds by row; judged stories may have been trained on, and the accuracy be inflated.")
    return "\n".join([*lines, "", *notes]) + "\n"


def _over_folds(accuracies: list[float | None]) -> dict[str, float | None]:
    """Mean and sample standard deviation; None where a fold has no accuracy."""
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    if len(known) < len(accuracies):
        return {"mean": None, "standard_deviation": None}
    return {"mean": mean(known), "standard_deviation": stdev(known)}


def _cells(found: Entry) -> list[str]:
    return [accuracy(found[name]) for name in LOOKS]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
