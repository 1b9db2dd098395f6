"""Figures of fits: over seeds and folds, compared on the same triples, without a score, with shared stories."""

import math
from statistics import mean, stdev

import numpy as np
import pytest
from finished_fits import finished_fit, in_all_epochs
from folds import described_fold
from results import check_result
from scipy import stats

from narrlit.experiments.fit_figures import (
    fit_answers,
    fit_differences,
    fit_figures,
    fits_result,
    reference_differences,
)
from narrlit.statistics.estimates import estimate
from narrlit.statistics.significance import (
    SharedStories,
    interval_by_story,
    mcnemar_by_story,
    permutation_test,
    permutation_test_by_story,
    wilson_interval,
)

LAST = "accuracy_last_epoch"


def row_of(rows, **columns):
    """The only row with these values; a column that is left out of a row has the value None."""
    (row,) = [row for row in rows if all(row.get(name) == value for name, value in columns.items())]
    return row


@pytest.fixture
def fits(tmp_path):
    """fits({(system, seed): wrong answers}): finished fits of 10 triples."""

    def make(wrong_by_fit, **others):
        made = []
        for (system, seed), wrong in wrong_by_fit.items():
            made.append(finished_fit(tmp_path, f"{system}_{seed}", wrong, system=system, seed=seed, **others))
        return made

    return make


def test_a_single_fit_has_one_row_for_each_evaluation(fits):
    wrong = {"last_epoch": [0, 1, 2], "best_epoch": [0], "reference": [4, 5]}
    rows = fit_figures(fit_answers(fits({("full", 42): wrong})))
    assert [(row["metric"], row["value"], row["epoch"]) for row in rows] == [
        (LAST, 0.7, 1),
        ("accuracy_best_epoch", 0.9, 0),
        ("accuracy_reference", 0.8, None),
    ]
    assert (rows[0]["low"], rows[0]["high"]) == wilson_interval(7, 10)
    assert not rows[0].keys() & {"fold", "seed", "deviation"}


def test_mean_and_deviation_are_of_seeds_and_p_is_over_triples(fits):
    wrong = {
        ("full", 1): {"last_epoch": [0, 1, 2, 3], "best_epoch": [0]},
        ("scale", 1): {"last_epoch": [3], "best_epoch": [0]},
        ("full", 2): {"last_epoch": [0, 1, 2, 3, 4], "best_epoch": [0]},
        ("scale", 2): {"last_epoch": [9], "best_epoch": [0]},
    }
    answers = fit_answers(fits(wrong))
    figures = fit_figures(answers)
    full = row_of(figures, system="full", metric=LAST, seed=None)
    assert full["value"] == pytest.approx(0.55)
    assert full["deviation"] == pytest.approx(0.1 / 2**0.5)
    assert row_of(figures, system="full", metric=LAST, seed=2)["value"] == 0.5
    assert row_of(figures, system="scale", metric=LAST, seed=None)["deviation"] == 0

    last, best = fit_differences(answers, "full")
    assert (last["system"], last["against"], last["metric"]) == ("scale", "full", LAST)
    assert last["value"] == pytest.approx(0.35)  # +0.3 and +0.4
    assert last["deviation"] == pytest.approx(0.1 / 2**0.5)
    right_more = [2, 2, 2, 1, 1, -1]  # triples 0 to 4 and 9, over both seeds
    expected = stats.permutation_test((right_more,), sum, permutation_type="samples", n_resamples=9999).pvalue
    assert last["p"] == pytest.approx(expected)
    assert last["test"] == "permutation"
    assert (best["value"], best["p"]) == (0, 1.0)


def test_the_mean_over_seeds_has_an_interval_as_wide_as_one_seed(fits):
    different = fits({("a", 1): in_all_epochs(list(range(8))), ("a", 2): in_all_epochs(list(range(12)))}, n=40)
    figure = row_of(fit_figures(fit_answers(different)), metric=LAST, seed=None)
    assert figure["value"] == 0.75
    assert (figure["low"], figure["high"]) == pytest.approx(wilson_interval(30, 40), abs=1e-12)

    # Five stories of eight triples each: fewer independent triples, a wider interval around the same mean.
    stories = [[n // 8] for n in range(40)]
    alike = fits({("b", 1): in_all_epochs(list(range(10))), ("b", 2): in_all_epochs(list(range(10)))}, n=40)
    shared = fits(
        {("c", 1): in_all_epochs(list(range(10))), ("c", 2): in_all_epochs(list(range(10)))}, n=40, stories=stories
    )
    independent = row_of(fit_figures(fit_answers(alike)), metric=LAST, seed=None)
    by_story = row_of(fit_figures(fit_answers(shared)), metric=LAST, seed=None)
    assert by_story["value"] == independent["value"] == 0.75
    assert by_story["method"] == "by_story"
    assert by_story["low"] < independent["low"] < independent["high"] < by_story["high"]


def test_seeds_are_compared_by_story(fits):
    stories = [[n // 5, 100 + n, 200 + n] for n in range(10)]
    wrong = {
        ("full", 1): in_all_epochs(list(range(6))),
        ("scale", 1): in_all_epochs([7]),
        ("full", 2): in_all_epochs(list(range(5))),
        ("scale", 2): in_all_epochs([]),
    }
    last, _ = fit_differences(fit_answers(fits(wrong, stories=stories)), "full")
    full, scale = [2, 2, 2, 2, 2, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]  # seeds that are wrong
    p = permutation_test_by_story(full, scale, SharedStories(stories))
    assert last["p"] == pytest.approx(p)
    assert p > permutation_test(full, scale)
    assert last["test"] == "permutation_by_story"


def test_folds_are_pooled_by_triple_and_compared_with_the_encoder_before_training(tmp_path):
    made = []
    for seed in (1, 2):
        for fold, wrong in enumerate(([0], [0, 3])):
            before = {"reference": [0, 1 + fold]}
            made.append(
                finished_fit(
                    tmp_path,
                    f"seed_{seed}_fold_{fold}",
                    in_all_epochs(wrong) | before,
                    seed=seed,
                    fold=described_fold(fold),
                )
            )
    answers = fit_answers(made)
    figures = fit_figures(answers)
    assert row_of(figures, metric=LAST, seed=1, fold=None)["value"] == 17 / 20
    assert row_of(figures, metric="accuracy_reference", seed=None, fold=None)["value"] == pytest.approx(16 / 20)
    assert row_of(figures, metric=LAST, seed=2, fold=1)["n"] == 10

    # Position 0 is another triple in each fold: of fold 1, 2 is won and 3 lost; of fold 0, 1 is won.
    last, _ = reference_differences(answers)
    assert (last["against"], last["lost"], last["won"], last["n"]) == ("reference", 1, 2, 20)
    assert last["value"] == pytest.approx(0.05)
    assert last["p"] == 1.0
    check_result(fits_result("crossval", tmp_path, made, answers, reference_differences(answers)), tmp_path / "out")


def test_the_deviation_of_folds_is_between_their_accuracies(tmp_path):
    made = []
    for fold, wrong in enumerate(([0], [0, 1, 2, 3], [5])):
        made.append(finished_fit(tmp_path, f"fold_{fold}", in_all_epochs(wrong), fold=described_fold(fold)))
    result = fits_result("crossval", tmp_path, made, fit_answers(made), [])
    pooled = result.figures.iloc[0]
    accuracies = [result.estimate(metric=LAST, fold=fold).value for fold in range(3)]
    assert accuracies == [0.9, 0.6, 0.9]
    assert pooled["value"] == pytest.approx(mean(accuracies))
    assert pooled["deviation"] == pytest.approx(stdev(accuracies))
    assert "deviation_over_folds" in [note.code for note in result.notes]


def test_folds_of_triples_that_share_stories_are_pooled_and_compared_by_story(tmp_path):
    # Four triples each have an anchor in common, in both folds another.
    stories = [[[1000 * fold + n // 4, 100 + n, 200 + n] for n in range(20)] for fold in (0, 1)]
    wrong = {"x": [[1, 2, 3], [16, 17, 18, 19]], "perfect": [[], []]}
    made = []
    for system, by_fold in wrong.items():
        for fold in (0, 1):
            about = {"n": 20, "stories": stories[fold], "system": system, "fold": described_fold(fold)}
            made.append(finished_fit(tmp_path, f"{system}_{fold}", in_all_epochs(by_fold[fold]), **about))
    answers = fit_answers(made)

    shared = SharedStories(stories[0] + stories[1])
    correct = np.array([n not in wrong["x"][fold] for fold in (0, 1) for n in range(20)])
    pooled = row_of(fit_figures(answers), system="x", metric=LAST, fold=None)
    assert (pooled["low"], pooled["high"]) == interval_by_story(correct, shared)
    last, _ = fit_differences(answers, "x")
    assert last["p"] == mcnemar_by_story(np.ones(40, bool), correct, shared)
    assert last["test"] == "mcnemar_by_story"


def test_a_score_that_is_nan_leaves_no_accuracy_and_no_difference(fits, tmp_path):
    wrong = {
        ("full", 1): in_all_epochs([0]),
        ("x", 1): {"last_epoch": None, "best_epoch": []},
        ("full", 2): in_all_epochs([0]),
        ("x", 2): in_all_epochs([]),
    }
    made = fits(wrong)
    answers = fit_answers(made)
    result = fits_result("ablations", tmp_path, made, answers, fit_differences(answers, "full"))
    assert not result.estimate("x", LAST).known
    assert result.estimate("x", "accuracy_best_epoch").value == 1
    assert math.isnan(result.estimate("x", LAST, seed=1).value)
    assert result.estimate("x", LAST, seed=2).value == 1
    last = result.differences.iloc[0]
    assert (last["test"], last["n"]) == ("none", 10)
    assert math.isnan(last["p"])
    assert next(note for note in result.notes if note.code == "nan_scores").values == {"systems": ["x"]}
    assert result.record["figures"][2]["value"] is None
    check_result(result, tmp_path / "out")


def test_a_reference_that_not_every_fit_has_is_left_out(fits):
    wrong = {("a", 1): in_all_epochs([0]) | {"reference": [1]}, ("a", 2): in_all_epochs([0])}
    answers = fit_answers(fits(wrong))
    assert {row["metric"] for row in fit_figures(answers)} == {LAST, "accuracy_best_epoch"}
    assert reference_differences(answers) == []


def test_stories_of_other_triples_are_unknown(fits):
    answers = fit_answers(fits({("a", 1): in_all_epochs([0])}, stories=[[1, 2, 3]] * 4))
    assert fit_figures(answers)[0]["low"] == estimate([True] * 9 + [False]).low


def test_notes_say_what_accuracies_depend_on(tmp_path):
    wrong = in_all_epochs([1])
    full = finished_fit(tmp_path, "full", wrong, system="full", ties=2)
    other = finished_fit(tmp_path, "x", wrong, system="x", flags=["transductive", "trained_on_validation"])
    callbacks = [{"class_path": "callbacks.EarlyStopping"}]
    other.planned.config["trainer"] = {"callbacks": callbacks}
    result = fits_result("ablations", tmp_path, [full, other], fit_answers([full, other]), [])
    notes = {note.code: note.values for note in result.notes}
    assert notes["no_result"] == {"systems": ["x"]}
    assert notes["flags"] == {"system": "x", "flags": ["trained_on_validation", "transductive"]}
    assert notes["last_epoch_decided"] == {"callbacks": ["EarlyStopping in x"]}
    assert notes["best_epoch"] == {"n": 4}
    assert notes["ties"] == {"n": 4, "systems": ["full"]}
    assert [fit["num_evaluations"] for fit in result.settings["fits"]] == [2, 2]


def test_fits_without_any_accuracy_have_a_result(tmp_path):
    fit = finished_fit(tmp_path, "a", in_all_epochs(None))
    result = fits_result("seeds", tmp_path, [fit], fit_answers([fit]), [])
    assert result.figures["value"].isna().all()
    assert result.answers["right"].isna().all()
    check_result(result, tmp_path / "out")
