"""Comparison of systems: tests against scipy, subsets, agreement, combinations with weights from other folds."""

import numpy as np
import pytest
from refusals import refused
from results import check_result
from scipy.stats import binomtest
from triples import triples_of

from narrlit.data.readers import read_triples
from narrlit.experiments.combinations import ORACLE, combine, weighted_mean
from narrlit.experiments.evaluation import compare_answers
from narrlit.experiments.facets import bin_values, read_facets
from narrlit.experiments.systems import SystemAnswers
from narrlit.results import Note, estimate
from narrlit.statistics.significance import SharedStories, interval_by_story, mcnemar_by_story, smallest_difference

LABELS = np.random.default_rng(7).random(40) < 0.5


def system(name, correct, kind="model", size=None, flags=None):
    """A system that is right where `correct`, with margins of this size; without sizes it has no scores."""
    labels = LABELS[: len(correct)]
    answers = np.where(correct, labels, ~labels)
    if size is None:
        return SystemAnswers(name, "answers", labels, answers, flags=flags or {})
    half = np.where(answers, 1, -1) * np.broadcast_to(size, len(correct)) / 2
    return SystemAnswers.scored(name, kind, labels, np.stack([half, -half], axis=1), flags=flags or {})


def labelled_triples(count, shared=1):
    """Triples with these labels, `shared` neighbors of which have the same anchor."""
    return triples_of([(f"x {n // shared}", f"a {n}", f"b {n}", bool(LABELS[n])) for n in range(count)])


def right(*places, of=40):
    return np.isin(np.arange(of), places)


def compared(systems, shared=1, facets=None):
    return compare_answers(systems, labelled_triples(len(systems[0].labels), shared), facets or {}, {})


def conclusions(result):
    """Codes of the conclusions, with the systems that they name."""
    named = ("better", "worse", "undecided", "undecidable", "no_result")
    return [(note.code, note.values["systems"]) for note in result.notes if note.code in named]


def difference_of(result, name):
    (row,) = result.differences[result.differences["system"] == name].to_dict("records")
    return row


def test_p_is_scipys_and_holm_corrects_it(tmp_path):
    first = system("first", right(*range(10, 24)), size=1)
    better = system("better", right(*range(10, 32)), size=1)
    other = system("other", right(*range(8, 20)))
    found = compared([first, better, other])
    check_result(found, tmp_path)

    row = difference_of(found, "better")
    assert row["value"] == pytest.approx(8 / 40)
    assert (row["lost"], row["won"], row["p"]) == (0, 8, binomtest(8, 8).pvalue)
    assert (row["test"], row["p_adjusted"]) == ("mcnemar", pytest.approx(2 * binomtest(8, 8).pvalue))
    row = difference_of(found, "other")
    assert (row["lost"], row["won"], row["p"]) == (4, 2, pytest.approx(binomtest(2, 6).pvalue))
    assert found.estimate("better") == estimate(right(*range(10, 32)))

    assert conclusions(found) == [("better", ["better"]), ("undecided", ["other"])]
    assert found.notes[1].values["points"] == f"{100 * smallest_difference(40, 6 / 40):.3g}"
    assert found.shown_tables()[""][1]["difference to first"].startswith("+0.200 [")
    swapped = compared([better, first])
    assert difference_of(swapped, "first")["value"] == pytest.approx(-8 / 40)
    assert conclusions(swapped) == [("worse", ["first"])]


def test_triples_that_share_stories_are_tested_by_story():
    first = system("first", right(*range(20)), size=1)
    other = system("other", right(*range(28)), size=1)
    found = compared([first, other], shared=4)
    shared = SharedStories([[n // 4, 100 + n, 200 + n] for n in range(40)])
    row = difference_of(found, "other")

    assert (found.settings["groups"], found.settings["triples_sharing_stories"]) == (10, 40)
    accuracy = found.estimate("other")
    assert (accuracy.low, accuracy.high) == interval_by_story(other.correct, shared)
    assert accuracy.method == "by_story"
    # Eight triples of two stories tell less than eight.
    assert row["p"] == row["p_adjusted"] == mcnemar_by_story(other.correct, first.correct, shared) > 0.05
    assert row["test"] == "mcnemar_by_story"
    assert row["design_effect"] > 3
    needed = 100 * smallest_difference(40, 8 / 40, 0.05, row["design_effect"], shared.degrees_of_freedom)
    about = {"systems": ["other"], "against": "first", "n": 40}
    assert found.notes[:2] == [
        Note("undecided", {**about, "points": f"{needed:.3g}"}),
        Note("shared_stories", {"sharing": 40, "n": 40, "degrees": pytest.approx(9)}),
    ]


def test_a_difference_is_shown_even_if_all_triples_are_connected():
    chain = triples_of([(f"x {n}", f"x {n + 1}", f"b {n}", bool(LABELS[n])) for n in range(40)])
    first = system("first", right(*range(0, 40, 2)), size=1)
    better = system("better", right(*(n for n in range(40) if n % 8 != 3)), size=1)
    found = compare_answers([first, better], chain, {}, {})

    assert found.settings["groups"] == 1
    assert conclusions(found) == [("better", ["better"])]


def test_triples_with_one_anchor_show_nothing():
    first = system("first", right(), size=1)
    other = system("other", right(*range(40)), size=1)
    found = compared([first, other], shared=40)

    assert difference_of(found, "other")["p_adjusted"] == 1
    assert conclusions(found) == [("undecidable", ["other"])]
    assert found.notes[1].code == "too_many_shared_stories"


def test_a_single_system_is_compared_with_no_other_and_its_flags_are_shown(tmp_path):
    flags = {"num_evaluations": 5, "transductive": True, "seen_in_training": "trained on these triples: no result"}
    found = compared([system("run", right(1, 2), size=1, flags=flags)])
    check_result(found, tmp_path)

    assert found.figures["flags"].tolist() == ["num_evaluations 5, transductive, seen_in_training"]
    assert found.differences.empty
    assert [note.code for note in found.notes] == ["seen_in_training", "transductive", "interval_wilson"]


def test_a_system_trained_on_the_triples_is_called_neither_better_nor_worse():
    flags = {"seen_in_training": "trained on these triples: no result (run trained on dev)"}
    first = system("first", right(1), size=1)
    seen = system("seen", right(*range(30)), size=1, flags=flags)
    other = system("other", right(*range(30)), size=1)

    assert conclusions(compared([first, seen, other])) == [("better", ["other"]), ("no_result", ["seen"])]
    assert compared([seen, first]).notes[0] == Note("against_no_result", {"against": "seen"})


def test_combinations_with_a_system_trained_on_the_triples_are_flagged():
    flags = {"seen_in_training": "trained on these triples: no result (run trained on dev)", "num_evaluations": 3}
    seen = system("seen", right(*range(30)), size=1, flags=flags)
    found = compared([system("first", right(1), size=1), seen]).figures
    assert found[found["subset"] == "combinations"]["flags"].tolist() == ["seen_in_training"] * 2
    assert "flags" not in compared([system("a", right(1)), system("b", right(2))]).figures.dropna(axis=1, how="all")


def test_each_open_system_needs_a_difference_of_its_own():
    # 24 of 40 differ, 10 more won than lost: p > .05, which the mean of both systems' differing triples would deny.
    first = right(*range(7, 20))
    much = right(*range(7), *range(20, 30))
    little = right(*range(7, 19))
    found = compared([system("first", first), system("much", much), system("little", little)])
    ends = [f"{100 * smallest_difference(40, share, alpha=0.05 / 2):.3g}" for share in (1 / 40, 30 / 40)]

    assert found.notes[0].values["points"] == " to ".join(ends)


def test_accuracies_by_facet_are_by_story():
    found = compared([system("a", right(*range(20)), size=1)], shared=4, facets={"kind": ["x"] * 24 + ["y"] * 16})
    of_x, of_y = (found.estimate("a", subset=f"kind: {kind}") for kind in "xy")
    shared = SharedStories([[n // 4, 100 + n, 200 + n] for n in range(24)])
    assert (of_x.low, of_x.high) == interval_by_story(right(*range(20), of=24), shared)
    assert of_y.method == "by_story"


def test_ties_are_counted_everywhere():
    tied = SystemAnswers.scored("tied", "model", LABELS[:6], np.ones((6, 2)))
    sure = system("sure", right(0, 1, of=6), size=1)
    found = compared([tied, sure], facets={"kind": ["x"] * 4 + ["y"] * 2})
    ties = found.figures.set_index(["system", "subset"])["ties"]

    assert [ties["tied", "all"], ties["sure", "all"]] == [6, 0]
    assert [ties["tied", f"kind: {kind}"] for kind in "xy"] == [4, 2]
    assert Note("ties", {"n": 6, "systems": ["tied"]}) in found.notes
    assert "ties" not in [note.code for note in compared([sure]).notes]

    # Where both systems are tied, their weighted mean is, too.
    both = compared([tied, SystemAnswers.scored("other", "model", LABELS[:6], np.zeros((6, 2)))])
    assert both.figures.set_index(["system", "subset"])["ties"]["weighted mean", "combinations"] == 6


def test_few_different_margins_are_ordered():
    few = system("few", right(*range(30, 40)), size=np.repeat([3, 1, 2], [20, 10, 10]))
    found = compared([few], facets={"margin": None})
    quartiles = [found.estimate("few", subset=f"margin: quartile {number}") for number in (1, 2, 3)]
    assert [(quartile.n, quartile.value) for quartile in quartiles] == [(10, 0), (10, 1), (20, 0)]


def test_agreement_is_the_share_of_equal_answers():
    found = compared([system("a", right(1, 2, 3), size=1), system("b", right(3, 4))])
    shares = found.figures[found.figures["metric"] == "same answers"].set_index(["system", "subset"])["value"]
    assert shares.to_dict() == {
        ("a", "same answers: a"): 1,
        ("b", "same answers: a"): 37 / 40,
        ("a", "same answers: b"): 37 / 40,
        ("b", "same answers: b"): 1,
    }


def test_quartiles_of_margins_are_computed_for_each_system():
    sure = system("sure", right(*range(20, 40)), size=np.arange(1, 41))
    unsure = system("unsure", right(*range(20, 40)), size=np.arange(41, 1, -1))
    found = compared([sure, unsure, system("bare", right(1))], facets={"margin": None})
    by_margin = found.figures[found.figures["subset"].str.startswith("margin: ")].pivot_table(
        index="subset", columns="system", values="value"
    )

    assert by_margin.index.tolist() == [f"margin: quartile {number}" for number in (1, 2, 3, 4)]
    assert by_margin["sure"].tolist() == [0, 0, 1, 1]
    assert by_margin["unsure"].tolist() == [1, 1, 0, 0]
    assert "bare" not in by_margin


def test_accuracy_by_a_column_counts_every_triple_once():
    values = ["film"] * 30 + ["book"] * 9 + [None]
    found = compared([system("a", right(0, 1, 30), size=1)], facets={"kind": values}).figures
    by_kind = found[found["subset"].str.startswith("kind: ")]
    assert by_kind["subset"].tolist() == ["kind: film", "kind: book", "kind: none"]
    assert by_kind["n"].tolist() == [30, 9, 1]
    assert by_kind["value"].tolist() == pytest.approx([2 / 30, 1 / 9, 0])


@pytest.mark.parametrize(
    ("values", "bins", "names"),
    [
        (list(range(12)), [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3, ["0 to 2", "3 to 5", "6 to 8", "9 to 11"]),
        ([str(number) for number in range(12)], [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3, None),
        ([0] * 20 + list(range(1, 10)), [0] * 20, None),  # equal numbers in one bin
        ([2, 1, 2], [0, 1, 0], ["2", "1"]),
        ([True, False, True], [0, 1, 0], ["True", "False"]),
        (range(1990, 2002), None, ["1990 to 1992", "1993 to 1995", "1996 to 1998", "1999 to 2001"]),
        ([f"v{n}" for n in range(30)] + ["v3"], None, None),
    ],
)
def test_values_are_divided(values, bins, names):
    found, shown = bin_values(values)
    assert len(found) == len(values)
    assert set(found.tolist()) == set(range(len(shown)))
    assert len(shown) <= 12

    if names is not None:
        assert shown == names
    if bins is not None:
        assert found[: len(bins)].tolist() == bins


def test_facets_of_texts_and_of_the_files_columns(make):
    rows = [
        {"anchor_text": "a b c d", "text_a": "a b x y", "text_b": "u v w", "text_a_is_closer": closer, "kind": kind}
        for closer, kind in ((True, "film"), (False, "book"))
    ]
    path = str(make("t.jsonl", [*rows, {**rows[0], "text_a": "", "kind": "dropped"}]))
    facets = read_facets(["overlap", "length", "margin", "kind"], read_triples(path))

    assert facets["overlap"].tolist() == pytest.approx([2 / 6, -2 / 6])
    assert facets["length"] == [11 / 3, 11 / 3]
    assert facets["margin"] is None
    assert facets["kind"] == ["film", "book"]
    with refused("unknown_facet", column="knd", path="t.jsonl", near="kind"):
        read_facets(["knd"], read_triples(path))


def test_oracle_and_majority_are_those_of_the_models():
    systems = [system("a", right(0, 1, 2)), system("b", right(2, 3, 4)), system("c", right(2, 4, 5))]
    found, weights = combine(systems, np.arange(40))
    assert weights == []
    assert [(one.name, np.flatnonzero(one.correct).tolist()) for one in found] == [
        (ORACLE, [0, 1, 2, 3, 4, 5]),
        ("majority vote", [2, 4]),
    ]

    # Two against two: the first decides.
    first = system("first", right(*range(20)))
    other = system("other", right())
    found, _ = combine([first, other, other, first], np.arange(40))

    assert found[1].correct.tolist() == first.correct.tolist()
    assert combine(systems[:1], np.arange(40)) == ([], [])


def test_baselines_are_not_combined():
    systems = [system("a", right(0), size=1), system("b", right(1), size=1), system("c", right(2), "baseline", 1)]
    assert compared(systems).estimate(ORACLE, subset="combinations").value == 2 / 40


def test_weights_are_chosen_on_other_folds():
    folds = [np.arange(0, 20), np.arange(20, 40)]
    good = right(*range(20), *range(20, 32))
    planted = right(*range(20, 40))
    scores = [system("good", good, size=1).scores, system("planted", planted, size=100).scores]
    means, weights = weighted_mean(scores, LABELS, folds)

    # Planted is right on the second fold alone: chosen by it for the first, where it is always wrong.
    assert weights == [[0.4, 0.6], [0.6, 0.4]]
    assert ((means > 0) == LABELS).tolist() == [*planted[:20].tolist(), *good[20:].tolist()]

    scaled, same = weighted_mean([1000 * scores[0], scores[1]], LABELS, folds)
    np.testing.assert_allclose(scaled, means)
    assert same == weights


def test_the_grid_is_coarser_for_many_systems():
    generator = np.random.default_rng(0)
    scores = [generator.normal(size=(40, 2)) for _ in range(8)]
    _, weights = weighted_mean(scores, LABELS, [np.arange(20), np.arange(20, 40)])
    assert np.allclose(np.sum(weights, axis=1), 1)
    assert set(np.ravel(weights)) <= {0, 0.2, 0.4, 0.6, 0.8, 1}
