"""The report on a judgement, from rows that were made up so that each figure is known."""

import json

import pytest

from narrlit.commands.judge_report import report, share, table
from narrlit.llm.judge import DISAGREEMENT, Answer, Judgement

TOLD = {
    "triples": "t.jsonl",
    "model": "minilm",
    "llm": {"llm_model": "big"},
    "prompt": {"name": "judge", "digest": "0123456789abcdef"},
    "usage": {"asked": 7, "from_log": 2, "prompt_tokens": 900, "completion_tokens": 63, "cost": 0.00105},
}
NO_CHOICE = Answer(None, "empty reply")


def rows(*specifications):
    """Judgements and labels; "A>B" is: nearer A, the model says B; a dot is no choice. The last letter is the label."""
    judgements, labels = [], []
    for number, (nearer, says, label) in enumerate(specifications):
        margin = 0.01 * (number + 1)
        scores = (0.5 + margin, 0.5) if nearer == "A" else (0.5, 0.5 + margin)
        answers = tuple(NO_CHOICE if letter == "." else Answer(letter == "A") for letter in says)
        judgements.append(Judgement(scores, answers))
        labels.append(None if label == "." else label == "A")
    return judgements, labels


# Nearer, said, label; margins grow from row to row.
PLAIN = rows(
    ("A", "B", "B"),  # overridden, rightly
    ("A", "B", "A"),  # overridden, wrongly
    ("B", "A", "A"),  # overridden, rightly
    ("A", "A", "A"),
    ("B", "B", "A"),
    ("B", ".", "A"),  # no choice, and the similarities are wrong
    ("A", ".", "A"),  # no choice, and they are right
    ("B", "A", "."),  # overridden, but nobody knows
    ("A", "A", "A"),
    ("B", "B", "B"),
)


def counts(entry):
    return entry["correct"], entry["n"]


def test_every_figure_of_rows_asked_once():
    found = report(*PLAIN, TOLD)
    assert (found["rows"], found["labelled"], found["model"]) == (10, 9, "minilm")
    assert {name: counts(entry) for name, entry in found["accuracy"].items()} == {
        "hybrid": (6, 9),
        "similarities": (5, 9),
        "model": (5, 7),
        "model_of_all": (5, 9),
    }
    assert found["hybrid_against_similarities"] == {"difference": pytest.approx(1 / 9), "lost": 1, "won": 2, "p": 1}
    fallbacks, against = found["fallbacks"], found["overrides"]
    assert (fallbacks["n"], fallbacks["of"], fallbacks["share"]) == (2, 10, 0.2)
    assert fallbacks["by_reason"] == {"empty reply": 2}
    assert (against["n"], against["of"], against["share"]) == (4, 8, 0.5)
    assert counts(against["right"]) == (2, 3)
    assert found["swap_agreement"] is None
    assert (found["named_first"]["n"], found["named_first"]["of"]) == (4, 8)


def test_parts_by_margin():
    parts = report(*PLAIN, TOLD)["by_margin"]
    # Nine labelled rows in parts of 1, 2, 2, 2, 2, from the last row to the first.
    assert [part["within"]["hybrid"]["n"] for part in parts] == [1, 2, 2, 2, 2]
    assert [counts(part["within"]["similarities"]) for part in parts] == [(1, 1), (2, 2), (0, 2), (1, 2), (1, 2)]
    assert [counts(part["within"]["model"]) for part in parts] == [(1, 1), (1, 1), (0, 1), (2, 2), (1, 2)]
    assert [counts(part["covered"]["hybrid"]) for part in parts] == [(1, 1), (3, 3), (3, 5), (5, 7), (6, 9)]
    assert parts[0]["margin"] == [pytest.approx(0.1)] * 2
    assert parts[-1]["margin"] == [pytest.approx(0.01), pytest.approx(0.02)]
    assert [part["coverage"] for part in parts] == [pytest.approx(n / 9) for n in (1, 3, 5, 7, 9)]


def test_every_figure_of_rows_asked_twice():
    judgements, labels = rows(
        ("A", "BB", "B"),  # overridden, rightly
        ("A", "AB", "B"),  # two stories: the similarities decide, wrongly
        ("B", "BA", "B"),  # two stories: they decide rightly
        ("B", ".B", "B"),
        ("A", "AA", "B"),
    )
    found = report(judgements, labels, TOLD)
    assert {name: counts(entry) for name, entry in found["accuracy"].items()} == {
        "hybrid": (3, 5),
        "similarities": (2, 5),
        "model": (1, 2),
        "model_of_all": (1, 5),
        "as_given": (2, 4),
        "swapped": (3, 5),
    }
    assert (found["swap_agreement"]["n"], found["swap_agreement"]["of"]) == (2, 4)
    assert found["fallbacks"]["by_reason"] == {DISAGREEMENT: 2, "empty reply": 1}
    # Shown first and named: in the file's order A in rows 2 and 5, in the other B in rows 1, 2 and 4.
    assert (found["named_first"]["n"], found["named_first"]["of"]) == (5, 9)
    text = table(found)
    assert "the same story chosen on 2 of 4 (50.0 %) rows that were answered both times" in text
    assert "its answers to A and B swapped | 5 | 0.600" in text


def test_ties_are_counted_where_there_is_a_label():
    tie = Judgement((0.5, 0.5), (Answer(False),))
    found = report([tie, tie, *PLAIN[0]], [False, None, *PLAIN[1]], TOLD)
    assert {name: entry["ties"] for name, entry in found["accuracy"].items()} == {
        "hybrid": 0,
        "similarities": 1,
        "model": 0,
        "model_of_all": 0,
    }
    assert counts(found["accuracy"]["similarities"]) == (6, 10)


def test_the_table_tells_the_figures():
    text = table(report(*PLAIN, TOLD))
    for line in (
        "| the language model, and where it has no choice the similarities | 9 | 0.667 [0.354, 0.879] |",
        "| the similarities alone | 9 | 0.556 [0.267, 0.811] |",
        "| the language model alone, on rows with a choice | 7 | 0.714 [0.359, 0.918] |",
        "| the language model alone, rows without a choice counted as wrong | 9 | 0.556 [0.267, 0.811] |",
        "- Fallbacks to the similarities: 2 of 10 (20.0 %) rows: 2 empty reply.",
        "4 of 8 (50.0 %) rows with its choice; right on 0.667 [0.208, 0.939] (2 of 3).",
        "- The candidate shown first was chosen in 4 of 8 (50.0 %) answers.",
        "- Hybrid against the similarities: +0.111, 2 rows won and 1 lost, McNemar's p = 1.000.",
        "(0123456789ab): 7 replies, 2 more from the log, 900 and 63 tokens, cost 0.0010.",
        "| 0.0500 to 0.0600 | 0.000 (0 of 2) | 0.000 (0 of 1) | 0.000 (0 of 2) | 55.6 % | 0.600 (3 of 5) |",
    ):
        assert line in text
    assert "swapped" not in text


def test_without_labels_there_is_no_accuracy_and_no_part():
    judgements, _ = PLAIN
    found = report(judgements, [None] * 10, TOLD)
    assert (found["accuracy"], found["hybrid_against_similarities"], found["by_margin"]) == (None, None, [])
    assert (found["overrides"]["n"], found["overrides"]["right"]["accuracy"]) == (4, None)
    text = table(found)
    assert text.startswith("10 rows, none has a label.")
    assert "4 of 8 (50.0 %) rows with its choice; right on none that has a label." in text
    assert "Hybrid against" not in text


def test_a_model_that_never_chose_has_no_accuracy():
    found = report(*rows(("A", ".", "A"), ("A", ".", "B")), TOLD)
    assert counts(found["accuracy"]["model"]) == (0, 0)
    assert counts(found["accuracy"]["model_of_all"]) == (0, 2)
    assert found["overrides"] == {**found["overrides"], "n": 0, "of": 0, "share": None}
    assert "on rows with a choice | 0 | none |" in table(found)
    assert "0 of 0 rows with its choice" in table(found)


def test_the_report_is_plain_json():
    found = report(*PLAIN, TOLD)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_share_has_wilsons_interval():
    found = share(110, 200)
    assert (found["n"], found["of"], found["share"]) == (110, 200, 0.55)
    assert found["interval"] == pytest.approx([0.4808, 0.6173], abs=6e-5)
