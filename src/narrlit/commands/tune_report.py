"""What a search found: its trials, the winner, and what the winner is worth on rows that it was not chosen by."""

from collections import Counter
from typing import Any

from narrlit.commands.reports import LOOKS, Entry, accuracy, p_value, pooled, row
from narrlit.errors import OptionError


def winner_of(trials: list[Entry]) -> Entry:
    """The finished trial with the highest accuracy in its best epoch; of equals the first.

    Raises:
        OptionError: if none has finished.
    """
    finished = [trial for trial in trials if trial["status"] == "finished"]
    if not finished:
        reasons = "; ".join(sorted({trial["reason"] for trial in trials}))
        raise OptionError(f"no trial has finished ({reasons}): give more --trials, or another --space and --out")
    return max(finished, key=lambda trial: (trial["best"]["accuracy"], -trial["trial"]))


def trial_line(trial: Entry, trials: list[Entry]) -> str:
    """What is said of a trial when it has ended; `trials` are all that have."""
    line = f"trial {trial['trial']}: {_accuracy(trial)}, {_ending(trial)}; {said(trial['settings'])}"
    if all(other["status"] != "finished" for other in trials):
        return line
    best = winner_of(trials)
    return f"{line}; best so far: trial {best['trial']}, {best['best']['accuracy']:.3f}"


def report(trials: list[Entry], held_out: dict[str, list[Entry]], fold: Entry, selectors: list[str]) -> Entry:
    """The content of tune.json, but for what the command alone knows.

    Args:
        trials: all that have ended.
        held_out: by name, `given` and `winner`, an entry for each fold but the first.
        fold: description of fold 0, by which the winner was chosen.
        selectors: callbacks that decided by the judged rows.
    """
    winner, looks = winner_of(trials), sum(len(trial["looks"]) for trial in trials)
    by, last = ", ".join(selectors), "no look chose it"
    return {
        "folds": fold["folds"],
        "fold_seed": fold["fold_seed"],
        "judged": fold["judged"],
        "statuses": dict(Counter(trial["status"] for trial in trials)),
        "looks": looks,
        "winner": {"trial": winner["trial"], "settings": winner["settings"], **winner["best"]},
        "trials": trials,
        "held_out": {name: {"pooled": pooled(found), "by_fold": found} for name, found in held_out.items()},
        "meaning": {
            "fold_0": f"accuracy in each trial's best epoch; the winner's is the highest of {len(trials)} trials and "
            f"{looks} looks at the same {fold['judged']} rows: too high by that choice",
            "last_epoch": f"accuracy on {others(fold['folds'])}, by whose rows no trial was judged, after the last "
            "whole epoch: " + (f"{last}, but {by} decided by the judged rows" if selectors else last),
            "best_epoch": "accuracy there in the epoch that the judged rows themselves chose: too high by that choice",
        },
    }


def table(found: Entry) -> str:
    """The content of tune.md."""
    winner = found["winner"]
    names = list(short_names(winner["settings"]))
    lines = [row(["trial", *names, "accuracy on fold 0, best epoch", "epochs", "ended"])]
    lines.append(f"|---:|{'---:|' * len(names)}---|---:|---|")
    for trial in found["trials"]:
        values = [_value(trial["settings"].get(name, "")) for name in winner["settings"]]
        won = ", winner" if trial["trial"] == winner["trial"] else ""
        lines.append(row([trial["trial"], *values, _accuracy(trial), len(trial["looks"]), _ending(trial) + won]))
    counts = ", ".join(f"{count} {status}" for status, count in found["statuses"].items())
    lines += ["", f"{len(found['trials'])} trials ({counts}), {found['looks']} looks at fold 0."]
    lines += ["", row([others(found["folds"]), "rows", "accuracy, last epoch", "accuracy, best epoch"])]
    lines.append("|---|---:|---|---|")
    for name, side in found["held_out"].items():
        lines.append(
            row([name, side["pooled"]["last_epoch"]["n"], *(accuracy(side["pooled"][look]) for look in LOOKS)])
        )
    lines.append(row(["difference", "", *(_difference(one) for one in found["comparison"].values())]))
    notes = [f"{name.replace('_', ' ').capitalize()}: {words}." for name, words in found["meaning"].items()]
    notes.append("Intervals are Wilson's, 95 %, p is McNemar's, exact; they take rows for independent.")
    if found["earlier_winners"]:
        earlier = ", ".join(found["earlier_winners"])
        notes.append(f"The same folds have also judged {earlier}, which won at another number of trials.")
    return "\n".join([*lines, "", *notes, f"The winner's settings: `{found['command']}`"]) + "\n"


def said(settings: Entry) -> str:
    """Settings in words.

    >>> said({"model.rate": 1 / 3, "data.size": 32})
    'rate=0.3333, size=32'
    """
    return ", ".join(f"{name}={_value(value)}" for name, value in short_names(settings).items())


def others(folds: int) -> str:
    """The folds that are not for the search, in words.

    >>> others(5), others(2)
    ('folds 1 to 4', 'fold 1')
    """
    return f"folds 1 to {folds - 1}" if folds > 2 else "fold 1"


def short_names(settings: Entry) -> Entry:
    """Settings by the last part of their names, where these tell them apart.

    >>> short_names({"model.margin": 1, "data.size": 2}), short_names({"a.x": 1, "b.x": 2})
    ({'margin': 1, 'size': 2}, {'a.x': 1, 'b.x': 2})
    """
    short = {name.rpartition(".")[2]: value for name, value in settings.items()}
    return short if len(short) == len(settings) else settings


def _accuracy(trial: Entry) -> str:
    return accuracy(trial["best"]) if trial["best"] else "no accuracy"


def _ending(trial: Entry) -> str:
    return f"{trial['status']} ({trial['reason']})" if trial["reason"] else str(trial["status"])


def _difference(one: Entry) -> str:
    if one["difference"] is None:
        return "none: scores are NaN"
    return f"{one['difference']:+.3f} ({one['lost']} lost, {one['won']} won, {p_value(one['p'])})"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
