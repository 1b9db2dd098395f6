"""What reports of several fits share: the looks they rest on, cells of tables, and the files they are kept in."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrlit.files import atomic_path

if TYPE_CHECKING:
    from narrlit.metrics.triples import AccuracySummary

Entry = dict[str, Any]

LOOKS = ("last_epoch", "best_epoch")
"""The two looks at the judged triples that a report tells of: the one after the last epoch, and the best of all."""

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


def summary(looks: list[Entry]) -> "AccuracySummary":
    """All looks as one, by their counts."""
    from narrlit.metrics.triples import AccuracySummary

    return AccuracySummary(**{name: sum(look.get(name, 0) for look in looks) for name in COUNTS})


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
