"""What narrlit tune tells: the winner, how often validation was looked at, the held-out comparison."""

import pytest

from narrlit.commands.tune_report import report, table, trial_line, winner_of
from narrlit.errors import OptionError


def trial(number, *correct, status="finished", reason=None):
    looks = [{"epoch": e, "n": 10, "correct": c, "accuracy": c / 10, "interval": [0, 1]} for e, c in enumerate(correct)]
    best = max(looks, key=lambda look: look["accuracy"], default=None)
    settings = {"a.margin": 0.1 * number, "b.size": number}
    return {"trial": number, "settings": settings, "status": status, "reason": reason, "looks": looks, "best": best}


TRIALS = [
    trial(0, 3, 6, 5),
    trial(1, 7, status="pruned", reason="after epoch 0, below the median"),
    trial(2, status="interrupted", reason="killed"),
    trial(3, 2, 6, 6),
    trial(4, 5, 4, 4),
]


def test_the_winner_is_the_first_of_the_best_that_finished():
    assert winner_of(TRIALS)["trial"] == 0
    assert winner_of(TRIALS[2:])["trial"] == 3
    with pytest.raises(OptionError, match="no trial has finished"):
        winner_of(TRIALS[1:3])


def held_out(last, best):
    def look(correct):
        counts = {"n": 10, "correct": correct or 0, "ties": 0, "undefined": 0 if correct is not None else 1}
        return {"epoch": 1, **counts}

    return [{"fold": 1, "last_epoch": look(last), "best_epoch": look(best)}]


def test_the_report_counts_looks_and_says_what_is_too_high():
    from narrlit.commands.held_out import compare

    sides = {"given": held_out(4, 6), "winner": held_out(7, None)}
    for name, wrong in (("given", [4, 5, 6, 7, 8, 9]), ("winner", [3, 8, 9])):
        sides[name][0]["wrong"] = {"last_epoch": wrong, "best_epoch": None if name == "winner" else wrong}
    fold = {"folds": 5, "fold_seed": 0, "judged": 10}
    found = report(TRIALS, sides, fold, ["EarlyStopping"])
    found |= {"comparison": compare(**sides), "earlier_winners": ["winner_0003"], "command": "narrlit fit --a"}
    assert found["looks"] == 10
    assert found["statuses"] == {"finished": 3, "pruned": 1, "interrupted": 1}
    assert found["comparison"]["last_epoch"] == {
        "difference": pytest.approx(0.3), "lost": 1, "won": 4, "p": 12 / 32
    }  # fmt: skip
    assert found["comparison"]["best_epoch"]["difference"] is None
    text = table(found)
    assert "| 0 | 0 | 0 | 0.600 [0.000, 1.000] | 3 | finished, winner |" in text
    assert "| 1 | 0.1 | 1 | 0.700 [0.000, 1.000] | 1 | pruned (after epoch 0, below the median) |" in text
    assert "| 2 | 0.2 | 2 | no accuracy | 0 | interrupted (killed) |" in text
    assert "5 trials (3 finished, 1 pruned, 1 interrupted), 10 looks at fold 0." in text
    assert "| folds 1 to 4 | rows |" in text
    assert "| difference |  | +0.300 (1 lost, 4 won, p = 0.375) | none: scores are NaN |" in text
    assert "highest of 5 trials and 10 looks at the same 10 rows: too high by that choice" in text
    assert "EarlyStopping decided by the judged rows" in text
    assert "have also judged winner_0003" in text


def test_a_line_is_said_of_each_trial():
    line = trial_line(TRIALS[3], TRIALS[:4])
    assert line == ("trial 3: 0.600 [0.000, 1.000], finished; margin=0.3, size=3; best so far: trial 0, 0.600")
    assert trial_line(TRIALS[2], TRIALS[1:3]) == "trial 2: no accuracy, interrupted (killed); margin=0.2, size=2"
