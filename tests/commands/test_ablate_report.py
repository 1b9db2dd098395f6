"""The ablation's report: numbers by hand."""

import pytest

from narrlit.commands.ablate_report import report, system_entry, table
from narrlit.errors import OptionError
from narrlit.metrics.statistics import wilson_interval

N = 20


def record(*wrong, marks=()):
    """Of a run whose looks had these wrong answers, None for scores that are NaN; the first best look is the best."""
    looks = []
    for epoch, places in enumerate(wrong):
        undefined = {"undefined": 3} if places is None else {}
        right = N - len(places or [])
        accuracy = None if places is None else right / N
        looks.append({"epoch": epoch, "n": N, "correct": right, "ties": 0, "accuracy": accuracy, **undefined})
    known = [look for look in looks if look["accuracy"] is not None]
    best = max(known, key=lambda look: look["accuracy"]) if known else None
    return {"validations": looks, "best": best, "marks": dict.fromkeys(marks, True)}


def answers(*wrong):
    return {"looks": [{"epoch": epoch, "step": epoch, "wrong": places} for epoch, places in enumerate(wrong)]}


def entry(name, *wrong, marks=()):
    overlay = None if name == "full" else f"{name}.yaml"
    return system_entry(name, overlay, record(*wrong, marks=marks), answers(*wrong))


def test_differences_are_those_of_the_same_triples():
    full = entry("full", [0, 1, 2, 3], [0, 1])
    less = entry("less", [1, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 6, 9])
    found = report([full, less], {"full": [], "less": []}, 42)
    ours, theirs = found["systems"][1], found["systems"][0]
    assert (theirs["best_epoch"]["epoch"], ours["best_epoch"]["epoch"], ours["looks"]) == (1, 0, 2)
    assert (theirs["best_epoch"]["accuracy"], ours["best_epoch"]["accuracy"]) == (18 / 20, 14 / 20)
    assert ours["best_epoch"]["interval"] == list(wilson_interval(14, 20))
    # Best: full is wrong at 0, 1, the row at 1, 4..8: five lost, one won, p = 2 (1 + 6) / 64.
    assert ours["against_full"]["best_epoch"] == {"difference": -0.2, "lost": 5, "won": 1, "p": 14 / 64}
    # Last: the row errs wherever full does, and at six more: p = 2 / 64.
    assert ours["against_full"]["last_epoch"] == {"difference": -0.3, "lost": 6, "won": 0, "p": 2 / 64}
    assert theirs["against_full"] is None
    assert "wrong" not in ours
    lines = table(found).splitlines()
    assert "| less | 20 | 0.700 [0.481, 0.855] | epoch 0, 2 looks | -0.200 (5 lost, 1 won, p = 0.219) |" in lines[3]
    assert "| 0.600 [0.387, 0.781] | -0.300 (6 lost, 0 won, p = 0.031) |  |" in lines[3]


def test_a_row_that_is_better_says_so():
    found = report([entry("full", [0, 1, 2]), entry("more", [0])], {}, 42)
    assert found["systems"][1]["against_full"]["best_epoch"] == {"difference": 0.1, "lost": 0, "won": 2, "p": 0.5}
    assert "| +0.100 (0 lost, 2 won, p = 0.500) |" in table(found)


def test_marks_that_are_true_stand_in_the_table():
    found = report([entry("full", [0]), entry("leaky", [], marks=["trained_on_validation", "transductive"])], {}, 1)
    assert table(found).splitlines()[3].endswith("| trained_on_validation, transductive |")


def test_the_caption_says_how_looks_were_chosen():
    rows = [entry("full", [0]), entry("a", [1]), entry("b", [2])]
    text = table(report(rows, {"full": ["TeacherPromotion"], "a": [], "b": ["EarlyStopping"]}, 7))
    assert "accuracy in the epoch that these very triples chose" in text
    assert "these decided by the triples: TeacherPromotion in full; EarlyStopping in b." in text
    assert "not corrected for 2 comparisons." in text
    assert "seed 7" in text
    assert "decided by" not in table(report(rows, {"full": []}, 7))


def test_without_an_accuracy_there_is_no_comparison():
    found = report([entry("full", [0]), entry("broken", [0, 1], None), entry("worse", None)], {}, 42)
    _, broken, worse = found["systems"]
    assert broken["against_full"]["best_epoch"]["p"] == 1
    assert broken["against_full"]["last_epoch"] == {"difference": None, "lost": None, "won": None, "p": None}
    assert worse["against_full"]["best_epoch"]["p"] is None
    assert table(found).splitlines()[4].count("none: scores are NaN") == 4


def test_answers_of_other_looks_are_refused():
    with pytest.raises(OptionError, match="x: its answers are not of the looks in its record"):
        system_entry("x", None, record([0], [1]), answers([0], [1, 2]))
    with pytest.raises(OptionError, match="x: its answers are not of the looks"):
        system_entry("x", None, record([0], [1]), answers([0]))
    with pytest.raises(OptionError, match="x: its fit never judged"):
        system_entry("x", None, record(), answers())
