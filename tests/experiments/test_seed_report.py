"""Fits with several seeds: summarized and compared."""

import pytest
from scipy import stats

from narrlit.errors import OptionError
from narrlit.experiments.outcome import Outcome, Scored, pooled
from narrlit.experiments.seed_report import check_seeds, seeds_report, with_frozen
from narrlit.metrics.significance import (
    AccuracySummary,
    SharedStories,
    permutation_test,
    permutation_test_by_story,
    wilson_interval,
)

N = 10


def outcome(last, best, reference=None, flags=()):
    """Result of a fit of N triples, from the positions that are wrong after the last and in the best epoch."""
    wrong = {"last_epoch": last, "best_epoch": best} | ({} if reference is None else {"reference": reference})
    scores = {name: Scored(AccuracySummary(N, N - len(each)), set(each)) for name, each in wrong.items()}
    return Outcome(scores, 3, flags)


def test_mean_and_deviation_are_of_seeds_and_p_is_over_triples():
    base = {1: outcome([0, 1, 2, 3], [0]), 2: outcome([0, 1, 2, 3, 4], [0])}
    row = {1: outcome([3], [0]), 2: outcome([9], [0])}
    made = seeds_report({"full": base, "scale": row}, "full")
    last = made.content["systems"]["scale"]["last_epoch"]

    assert last["by_seed"] == {1: 0.9, 2: 0.9}
    assert last["mean"] == pytest.approx(0.9)
    assert last["difference"]["mean"] == pytest.approx(0.35)  # +0.3 and +0.4
    assert last["difference"]["standard_deviation"] == pytest.approx(0.1 / 2**0.5)

    right_more = [2, 2, 2, 1, 1, -1]  # triples 0 to 4 and 9, over both seeds
    expected = stats.permutation_test((right_more,), sum, permutation_type="samples", n_resamples=9999).pvalue
    assert last["difference"]["p"] == pytest.approx(expected)
    assert made.content["systems"]["full"]["last_epoch"]["difference"] is None
    assert made.content["systems"]["scale"]["best_epoch"]["difference"]["p"] == 1.0
    assert made.content["systems"]["full"]["last_epoch"]["standard_deviation"] == pytest.approx(0.1 / 2**0.5)

    text = made.markdown()
    assert "| scale  | 0.900  | 0.900  | 0.900 ± 0.000 |" in text
    assert f"| +0.350 ± 0.071, p = {expected:.3f} |" in text
    assert list(made.intervals) == ["full, seed 1", "full, seed 2", "scale, seed 1", "scale, seed 2"]


def test_nan_and_contamination_are_shown():
    nan = Scored(AccuracySummary(N, 0, undefined=1))
    broken = Outcome({"last_epoch": nan, "best_epoch": outcome([], []).best}, 3)
    results = {
        "full": {1: outcome([0], [0]), 2: outcome([0], [0])},
        "x": {1: broken, 2: outcome([], [], flags=["mined"])},
    }
    text = seeds_report(results, "full").markdown()

    assert "none: scores are NaN, p unknown" in text
    assert "Flags of the runs: mined." in text

    results["x"][2] = outcome([], [], flags=["trained_on_validation"])
    assert "NOT A RESULT: the fits were trained on validation triples." in seeds_report(results, "full").markdown()


def test_folds_are_pooled_by_seed_and_compared_with_the_frozen_encoder():
    folds = {0: outcome([0], [0], reference=[0, 1]), 1: outcome([0, 3], [3], reference=[0, 2])}
    systems = seeds_report(with_frozen({1: pooled(folds), 2: pooled(folds)}), "frozen").content["systems"]
    assert systems["trained"]["last_epoch"]["by_seed"] == {1: 17 / 20, 2: 17 / 20}
    assert systems["frozen"]["last_epoch"]["by_seed"] == {1: 16 / 20, 2: 16 / 20}
    # Position 0 is another triple in each fold: of fold 1, 2 is won and 3 lost; of fold 0, 1 is won.
    assert systems["trained"]["last_epoch"]["difference"]["p"] == 1.0
    assert systems["trained"]["last_epoch"]["difference"]["mean"] == pytest.approx(0.05)


def test_without_a_reference_only_the_trained_system_is_shown():
    assert list(with_frozen({1: outcome([0], [0], [1]), 2: outcome([0], [0])})) == ["trained"]


@pytest.mark.parametrize("seeds", [[], [1], [1, 1], [1, -2]])
def test_seeds_are_different_whole_numbers(seeds):
    with pytest.raises(OptionError, match=r"`seeds`: .*give two or more different whole numbers"):
        check_seeds(seeds)


def test_seeds_are_compared_by_story():
    stories = {n: [n // 5, 100 + n, 200 + n] for n in range(N)}

    def sharing(wrong):
        score = Scored(AccuracySummary(N, N - len(wrong)), set(wrong), stories=stories)
        return Outcome({"last_epoch": score, "best_epoch": score}, 3)

    base = {1: sharing(range(6)), 2: sharing(range(5))}
    row = {1: sharing([7]), 2: sharing([])}
    made = seeds_report({"full": base, "scale": row}, "full")
    difference = made.content["systems"]["scale"]["last_epoch"]["difference"]
    base_counts, row_counts = [2, 2, 2, 2, 2, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    p = permutation_test_by_story(base_counts, row_counts, SharedStories([*stories.values()]))

    assert difference["p"] == p > permutation_test(base_counts, row_counts)
    assert difference["test"] == "permutation_by_story"


def test_the_mean_over_seeds_has_an_interval_as_wide_as_one_seed():
    def fit(wrong, stories=None):
        scored = Scored(AccuracySummary(40, 40 - len(wrong)), frozenset(wrong), stories=stories)
        return Outcome({"last_epoch": scored, "best_epoch": scored}, 1)

    alike = {1: fit(range(10)), 2: fit(range(10))}
    summary = seeds_report({"trained": alike}, "frozen").content["systems"]["trained"]["last_epoch"]
    assert summary["interval"] == pytest.approx(wilson_interval(30, 40), abs=1e-12)
    # Five stories of eight triples each: fewer independent triples, a wider interval around the same mean.
    stories = {n: [n // 8] for n in range(40)}
    different = {1: fit(range(8), stories), 2: fit(range(12), stories)}
    by_story = seeds_report({"trained": different}, "frozen").content["systems"]["trained"]["last_epoch"]
    assert by_story["mean"] == summary["mean"] == 0.75
    assert by_story["interval"][0] < summary["interval"][0] < summary["interval"][1] < by_story["interval"][1]
