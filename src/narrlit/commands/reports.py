"""What reports of several fits share: the looks they rest on, cells of tables, and the files they are kept in."""

import json
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.errors import OptionError
from narrlit.files import atomic_path

if TYPE_CHECKING:
    from narrlit.metrics.triples import AccuracySummary

Entry = dict[str, Any]

LOOKS = ("last_epoch", "best_epoch")
"""The two looks at the judged triples that a report tells of: the one after the last epoch, and the best of all."""

MARKS = ("trained_on_validation", "transductive", "mined_validation")
"""What a run's record may say of it that its reader must know."""

COUNTS = ("n", "correct", "ties", "undefined")


def judged(record: Entry) -> Entry:
    """What a finished run's record says of both looks, each with its epoch and accuracy, and how many there were."""
    looks = record["validations"]
    # Without an accuracy in any look (NaN) there is no best one either.
    found = {"last_epoch": looks[-1], "best_epoch": record["best"] or looks[-1]}
    return {
        "looks": len(looks),
        **{name: {"epoch": look["epoch"], **summary([look]).as_dict()} for name, look in found.items()},
    }


def marks_of(record: Entry) -> list[str]:
    """The marks that are true of a run."""
    return [mark for mark in MARKS if record["marks"].get(mark)]


def summary(looks: list[Entry]) -> "AccuracySummary":
    """All looks as one, by their counts."""
    from narrlit.metrics.triples import AccuracySummary

    return AccuracySummary(**{name: sum(look.get(name, 0) for look in looks) for name in COUNTS})


def pooled(entries: list[Entry]) -> Entry:
    """The accuracies of several fits, each judged on rows of its own, as one over all these rows, by look."""
    return {name: summary([entry[name] for entry in entries]).as_dict() for name in LOOKS}


def paired(wrong: Set[Any] | None, other: Set[Any] | None, n: int) -> Entry:
    """How one system differs from another on the same n triples; None throughout where one has no answers (NaN).

    Args:
        wrong: triples that the first answered wrongly.
        other: triples that the second did.
        n: of both.

    Returns:
        `difference` of the accuracies; triples `lost`, which the second alone has right, and `won`; `p`, McNemar's.

    >>> paired({1, 2}, {2, 3, 4}, n=10)
    {'difference': 0.1, 'lost': 1, 'won': 2, 'p': 1.0}
    """
    if wrong is None or other is None:
        return {"difference": None, "lost": None, "won": None, "p": None}
    from narrlit.metrics.statistics import mcnemar

    lost, won = len(wrong - other), len(other - wrong)
    p = mcnemar([False] * lost + [True] * won, [True] * lost + [False] * won)
    return {"difference": (won - lost) / n, "lost": lost, "won": won, "p": p}


def read_answers(run: Path) -> Entry:
    """The answers that a run has kept.

    Raises:
        OptionError: if they are gone or broken.
    """
    from narrlit.callbacks.answer_record import ANSWERS

    try:
        found: Entry = json.loads((run / ANSWERS).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError) as error:
        raise OptionError(f"{run / ANSWERS} is gone or broken: remove {run}, and it is fitted anew") from error
    return found


def wrong_answers(found: Entry, answers: Entry, name: str) -> dict[str, list[int] | None]:
    """Places of the wrong answers in both looks of an entry, as `judged` gives it; None where scores were NaN.

    Raises:
        OptionError: naming the fit, if its answers are of other looks.
    """
    wrong = {look["epoch"]: look["wrong"] for look in answers["looks"]}
    for look in LOOKS:
        right = found[look]["correct"] if found[look]["accuracy"] is not None else None
        places = wrong.get(found[look]["epoch"])
        if right != (None if places is None else found[look]["n"] - len(places)):
            raise OptionError(f"{name}: its answers are not of the looks in its record; remove its run to fit it anew")
    return {look: wrong[found[look]["epoch"]] for look in LOOKS}


def selectors(config: Entry) -> list[str]:
    """Callbacks of a config that decide by the judged triples, so that even the last epoch is not free of them."""
    callbacks = config["trainer"]["callbacks"] or []
    names = [str(entry["class_path"]).rpartition(".")[2] for entry in callbacks]
    return [name for name in names if name in ("EarlyStopping", "TeacherPromotion")]


def accuracy(found: Entry) -> str:
    """A cell: an accuracy with its interval.

    >>> accuracy({"accuracy": 0.55, "interval": [0.481, 0.617]})
    '0.550 [0.481, 0.617]'
    """
    if found["accuracy"] is None:
        return "none: scores are NaN"
    low, high = found["interval"]
    return f"{found['accuracy']:.3f} [{low:.3f}, {high:.3f}]"


def p_value(p: float) -> str:
    """A cell's p.

    >>> p_value(0.0371), p_value(1e-9)
    ('p = 0.037', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def row(cells: Sequence[Any]) -> str:
    """A line of a Markdown table.

    >>> row(["full", 200])
    '| full | 200 |'
    """
    return f"| {' | '.join(map(str, cells))} |"


def keep_report(folder: Path, name: str, found: Entry, table: str) -> None:
    """Write NAME.json and NAME.md."""
    for suffix, text in (("json", json.dumps(found, indent=2) + "\n"), ("md", table)):
        with atomic_path(folder / f"{name}.{suffix}") as temporary:
            temporary.write_text(text, encoding="utf-8")
