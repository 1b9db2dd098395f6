"""What a comparison of fusion settings found: for each model its settings, and what the best of a grid is worth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from narrlit.commands.reports import Entry, accuracy, p_value, row
from narrlit.models.fusion import PARTS

if TYPE_CHECKING:
    from narrlit.commands.fuse_contest import Contest

_HEADER = ["setting", "weights", "n", "accuracy", "ties", "difference to full only"]


def report(entries: list[Entry], contest: "Contest") -> Entry:
    """The content of fuse.json, but for what was read; `entries` are of all models so far."""
    tried, step, folds = (contest.described[name] for name in ("grid_settings", "grid", "folds"))
    comparisons = len(entries[0]["settings"]) + 1
    meaning = {
        "weights": f"of {', '.join(PARTS)}, in this order",
        "best_on_other_folds": f"each of {folds} folds is judged by those of {tried} settings (multiples of {step:g}) "
        "that were best on the other folds; triples that share stories are in the same fold",
        "best_on_these_triples": f"the best of {tried} settings on the very triples that chose it: too high by that "
        "choice, NOT A RESULT",
        "against_full_only": "accuracy less that of the stories' texts alone on the same triples; lost are the triples "
        "that full only alone has right, won those that the row alone has right; p is McNemar's, exact and two-sided, "
        f"and not corrected for {comparisons} comparisons a model",
    }
    if any(setting["name"] == "submitted" for setting in entries[0]["settings"]):
        meaning["submitted"] = (
            "chosen by ttda704 for its accuracy on the task's development triples (40 of them, Table 2): there this "
            "row is chosen, too, and no result"
        )
    return {**contest.described, "meaning": meaning, "models": entries}


def block(entry: Entry) -> str:
    """A model's part of fuse.md."""
    lines = [f"## {entry['model']}", "", row(_HEADER), "|---|---|---:|---|---:|---|"]
    for setting in entry["settings"]:
        lines.append(_line(setting["name"], _weights(setting["weights"]), setting))
    found, best = entry["best_on_other_folds"], entry["best_on_these_triples"]
    lines.append(_line("best on other folds", "by fold, below", found))
    lines.append(_line("best on these triples, NOT A RESULT", _weights(best["weights"]), best))
    lines += ["", row(["fold", "weights, chosen on the others", "accuracy on the others", "n", "accuracy"])]
    lines.append("|---:|---|---|---:|---|")
    for fold in found["by_fold"]:
        cells = [fold["fold"], _weights(fold["weights"]), accuracy(fold["on_others"]), fold["n"], accuracy(fold)]
        lines.append(row(cells))
    if entry["seen_in_training"] is not None:
        lines += ["", f"{entry['model']}: {entry['seen_in_training']}."]
    return "\n".join(lines) + "\n"


def notes(found: Entry) -> str:
    """What the words of the tables mean, and what was read."""
    lines = [f"{name.replace('_', ' ').capitalize()}: {words}." for name, words in found["meaning"].items()]
    lines.append("Intervals are Wilson's, 95 %; they and p take triples for independent.")
    views, triples = found["views"], found["triples"]
    files = ", ".join(file["path"] for file in views["files"]) or "no file"
    lines.append(f"Triples: {triples['path']}; views: {files}, {views['by_position']} stories cut by position.")
    names = found["pseudonyms"]
    if names is not None:
        lines.append(f"Names: placeholders, found by {names['backend']}, the same within a {names['scope']}.")
    return "\n".join(lines) + "\n"


def table(found: Entry) -> str:
    """The content of fuse.md."""
    return "\n".join([*map(block, found["models"]), notes(found)])


def _line(name: str, weights: str, found: Entry) -> str:
    cells = [name, weights, found["n"], accuracy(found), found["ties"], _difference(found.get("against_full_only"))]
    return row(cells)


def _difference(found: Entry | None) -> str:
    if found is None:
        return ""
    return f"{found['difference']:+.3f} ({found['lost']} lost, {found['won']} won, {p_value(found['p'])})"


def _weights(weights: Sequence[float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights)
