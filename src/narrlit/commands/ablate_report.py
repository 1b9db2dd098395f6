"""What an ablation found: every system with its intervals, and how it differs from the full one on the same triples."""

from typing import Any

from narrlit.commands.reports import LOOKS, Entry, accuracy, judged, marks_of, p_value, paired, row, wrong_answers
from narrlit.errors import OptionError

FULL = "full"


def system_entry(name: str, overlay: str | None, record: Entry, answers: Entry) -> Entry:
    """One finished row.

    Args:
        name: of the row.
        overlay: its file, None for the full system.
        record: of its run.
        answers: of its run, too: the places of wrong answers by look.

    Returns:
        Both looks with their accuracy, and under `wrong` the places of their wrong answers, None where scores were NaN.

    Raises:
        OptionError: if the fit never judged, or its answers are of other looks.
    """
    if not record["validations"]:
        raise OptionError(
            f"{name}: its fit never judged the validation triples; let it train a whole epoch at least "
            "(trainer.max_epochs, max_steps), and name another --out"
        )
    found = judged(record)
    return {
        "system": name,
        "overlay": overlay,
        **found,
        "wrong": wrong_answers(found, answers, name),
        "marks": marks_of(record),
    }


def report(entries: list[Entry], deciders: dict[str, list[str]], seed: Any) -> Entry:
    """The content of ablations.json.

    Args:
        entries: of all rows, the full system first; each judged the same triples.
        deciders: by row, the callbacks that decided by these triples.
        seed: of the full system's fit.
    """
    named = [f"{', '.join(by)} in {name}" for name, by in deciders.items() if by]
    decided = f", but these decided by the triples: {'; '.join(named)}" if named else ""
    count = len(entries) - 1
    return {
        "meaning": {
            "best_epoch": "accuracy in the epoch that these very triples chose, of as many looks as the row says: too "
            "high by that choice, and the higher the more looks there were",
            "last_epoch": f"accuracy at the last look, after the last whole epoch: no look chose it{decided}",
            "against_full": "the row's accuracy less that of the full system on the same triples; lost are the triples "
            "that the full system alone has right, won those that the row alone has right; p is McNemar's, exact and "
            f"two-sided, and not corrected for {count} comparison{'' if count == 1 else 's'}",
            "seed": f"each row is one fit, the full system's with seed {seed}: chance in training is in no interval",
        },
        "systems": [
            {
                **{key: value for key, value in entry.items() if key != "wrong"},
                "against_full": {look: _against(entry, entries[0], look) for look in LOOKS} if place else None,
            }
            for place, entry in enumerate(entries)
        ],
    }


def _against(entry: Entry, full: Entry, look: str) -> Entry:
    """A row against the full system at one look; None throughout where one of them has no answers."""
    wrong, wrong_full = (None if one["wrong"][look] is None else set(one["wrong"][look]) for one in (entry, full))
    return paired(wrong, wrong_full, entry[look]["n"])


def table(found: Entry) -> str:
    """The content of ablations.md."""
    lines = [
        "| system | n | accuracy, best epoch | best of looks | difference to full "
        "| accuracy, last epoch | difference to full | marks |",
        "|---|---:|---|---|---|---|---|---|",
    ]
    for entry in found["systems"]:
        best, last = entry["best_epoch"], entry["last_epoch"]
        looks = f"epoch {best['epoch']}, {entry['looks']} look{'' if entry['looks'] == 1 else 's'}"
        cells = [entry["system"], best["n"], accuracy(best), looks, _difference(entry, "best_epoch")]
        lines.append(row([*cells, accuracy(last), _difference(entry, "last_epoch"), ", ".join(entry["marks"])]))
    titles = {"against_full": "Difference to full"}
    notes = [
        f"{titles.get(name, name.replace('_', ' ').capitalize())}: {words}." for name, words in found["meaning"].items()
    ]
    notes.append("Intervals are Wilson's, 95 %.")
    return "\n".join([*lines, "", *notes]) + "\n"


def _difference(entry: Entry, look: str) -> str:
    if entry["against_full"] is None:
        return ""
    found = entry["against_full"][look]
    if found["difference"] is None:
        return "none: scores are NaN"
    return f"{found['difference']:+.3f} ({found['lost']} lost, {found['won']} won, {p_value(found['p'])})"
