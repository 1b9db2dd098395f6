"""Findings about data: stories that sets share, shortcuts that solve triples, accuracies that a system has to beat."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from narrlit.results.notes import Note
from narrlit.statistics.estimates import Row
from narrlit.statistics.set_checks import PROBES

EASY = {("jaccard", "tfidf", "bm25"): 0.7, ("longer", "shorter"): 0.7, ("always_a", "always_b"): 0.55}
"""Groups of probes, with the accuracy above which a probe is a shortcut (by the lower end of its interval)."""
WARNINGS = {
    "shared_alone", "shared_in_training", "shared_in_test", "shortcut", "shortcut_to_learn", "shortcut_in_train",
}  # fmt: skip
"""Codes of findings that are shown as warnings in training; for shared pairs, a run has a flag."""


def data_findings(check: Mapping[str, Any]) -> list[Note]:
    """Conclude from the rows of a check of data (`check_sets`) what makes an accuracy on it misleading."""
    notes: list[Note] = []
    for row in check["shared"]:
        notes.append(_sharing(row))
        if row.get("near_duplicates"):
            notes.append(Note.of("more_near_duplicates", **row))
    by_probe: dict[str, list[Row]] = {}
    for row in check["probes"]:
        by_probe.setdefault(row["probe"], []).append(row)
    for names, highest in EASY.items():
        shortcuts = [_shortcut(by_probe.get(name, []), highest) for name in names]
        notes += [shortcut for shortcut in shortcuts if shortcut is not None][:1]
    for name in ("validation", "test"):
        rows = [row for row in chain.from_iterable(by_probe.values()) if row["set"] == name]
        if rows:
            best = max(rows, key=lambda row: int(row["correct"]))
            notes.append(Note.of("to_beat", probe=PROBES[best["probe"]], solved=_solved(best)))
    return notes


def with_verdict(check: Mapping[str, Any]) -> dict[str, Any]:
    """Add the findings as sentences, for run.json: `verdict` are all, `warnings` are those to show in training."""
    notes = data_findings(check)
    warnings = [str(note) for note in notes if note.code in WARNINGS]
    return {**check, "verdict": list(map(str, notes)), "warnings": warnings}


def _sharing(row: Row) -> Note:
    """Say how many stories of a set are in another one, and what this means."""
    if not row["shared"]:
        return Note.of("nothing_shared", **row)
    if "pairs" not in row:
        return Note.of("shared_alone", **row)
    if row["pairs"]:
        learned, graded = ("train", row["of"]) if row["within"] == "train" else (row["of"], row["within"])
        return Note.of("shared_pairs", **row, learned=learned, graded=graded)
    return Note.of("shared_in_training" if row["within"] == "train" else "shared_in_test", **row)


def _shortcut(rows: Sequence[Row], highest: float) -> Note | None:
    """Describe a probe that is a shortcut in at least one set; None if it is not.

    Args:
        rows: accuracies of the probe, one for each set.
        highest: accuracy above which a probe is a shortcut, by the lower end of the interval.
    """
    easy = [row for row in rows if row["interval"][0] > highest]
    if not easy:
        return None
    first, last = easy[0], easy[-1]
    solved = _solved(first)
    for other in rows:
        if other is not first:
            is_lower = other["interval"][1] < first["interval"][0]
            solved += f" {'but' if is_lower else 'and'} {_solved(other)}"
    probe = PROBES[first["probe"]]
    if len(easy) > 1 or first["set"] != "train":
        return Note.of("shortcut", probe=probe, solved=solved, set=last["set"])
    return Note.of("shortcut_in_train" if len(rows) > 1 else "shortcut_to_learn", probe=probe, solved=solved)


def _solved(row: Row) -> str:
    """Describe the accuracy of a probe, as in `97.6 % of train (809 of 829)`."""
    return f"{100 * row['accuracy']:.1f} % of {row['set']} ({row['correct']} of {row['n']})"
