"""estimate and difference: the method that the data call for, its figures, and its coverage by simulation."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from narrlit.statistics.estimates import Difference, Estimate, adjusted, difference, estimate, estimate_count
from narrlit.statistics.significance import (
    SharedStories,
    group_intervals,
    group_permutation_test,
    interval_by_story,
    mcnemar_by_story,
    permutation_test,
    permutation_test_by_story,
    wilson_interval,
)

INDEPENDENT = [[n, 100 + n] for n in range(20)]
SHARING = [[n // 4, 100 + n] for n in range(20)]
ANSWERS = np.arange(20) % 3 > 0
OTHERS = np.arange(20) % 4 > 1
GRADED = np.linspace(0, 1, 20)
MCNEMAR = binomtest(int((ANSWERS & ~OTHERS).sum()), int((ANSWERS != OTHERS).sum())).pvalue


@pytest.mark.parametrize(
    ("values", "groups", "interval", "method"),
    [
        (ANSWERS, None, wilson_interval(13, 20), "wilson"),
        (ANSWERS, INDEPENDENT, wilson_interval(13, 20), "wilson"),
        (ANSWERS, SHARING, interval_by_story(ANSWERS, SharedStories(SHARING)), "by_story"),
        (GRADED, SharedStories(SHARING), interval_by_story(GRADED, SharedStories(SHARING)), "by_story"),
        (GRADED, INDEPENDENT, interval_by_story(GRADED, SharedStories(INDEPENDENT)), "score"),
        (GRADED, None, *group_intervals(GRADED[:, None], np.arange(20)), "score"),
        (ANSWERS, np.arange(20) // 4, *group_intervals(ANSWERS[:, None], np.arange(20) // 4), "by_group"),
    ],
)
def test_the_interval_is_the_one_for_the_data(values, groups, interval, method):
    found = estimate(values, groups)

    assert found.value == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx(interval)
    assert (found.n, found.method) == (20, method)


def test_infinite_bounds_give_students_interval():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    margin = 3.1824463 * values.std(ddof=1) / 2  # quantile of t with three degrees of freedom

    found = estimate(values, bounds=(-math.inf, math.inf))

    assert (found.low, found.high) == pytest.approx((4 - margin, 4 + margin), rel=1e-6)


@pytest.mark.parametrize("values", [[], [0.5, math.nan]])
def test_without_a_value_there_is_no_mean_and_no_difference(values):
    mean, change = estimate(values), difference(values, values)

    assert not mean.known
    assert all(map(math.isnan, (mean.value, mean.low, mean.high)))
    assert (mean.n, mean.method) == (len(values), "none")
    assert not change.known
    assert all(map(math.isnan, (change.value, change.low, change.high, change.p)))
    assert (change.n, change.test) == (len(values), "none")


def test_an_estimate_is_a_row_and_a_text():
    accuracy = Estimate(0.55, 0.481, 0.617, 1200, "wilson")
    figures = {"value": 0.55, "low": 0.481, "high": 0.617, "n": 1200, "method": "wilson"}

    assert accuracy.row("mine") == {"system": "mine", "subset": "all", "metric": "accuracy", **figures}
    assert accuracy.row("mine", "mrr", "length: short", fold=1) == {
        "system": "mine", "subset": "length: short", "metric": "mrr", **figures, "fold": 1,
    }  # fmt: skip
    assert str(accuracy) == "0.550 [0.481, 0.617], n = 1,200"
    assert str(Estimate(0.55, math.nan, math.nan, 20)) == "0.550, n = 20"
    assert str(estimate([])) == "none, n = 0"


def test_a_difference_is_a_row_and_a_text():
    change = Difference(0.1, 0.05, 0.15, 0.031, "mcnemar", 200, lost=1, won=21)
    figures = change._asdict()

    assert change.row("mine", "base") == {
        "system": "mine", "against": "base", "subset": "all", "metric": "accuracy", **figures,
    }  # fmt: skip
    assert change.row("mine", "base", "mrr", "fold: 1", seed=2) == {
        "system": "mine", "against": "base", "subset": "fold: 1", "metric": "mrr", **figures, "seed": 2,
    }  # fmt: skip
    assert str(change) == "+0.100 [+0.050, +0.150], p = 0.031"
    assert str(difference([], [])) == "none, p unknown"


def test_a_count_is_an_accuracy():
    assert estimate_count(13, 20) == estimate(ANSWERS)


@pytest.mark.parametrize(
    ("first", "second", "groups", "p", "test"),
    [
        (ANSWERS, OTHERS, None, MCNEMAR, "mcnemar"),
        (ANSWERS, OTHERS, INDEPENDENT, MCNEMAR, "mcnemar"),
        (ANSWERS, OTHERS, SHARING, mcnemar_by_story(ANSWERS, OTHERS, SharedStories(SHARING)), "mcnemar_by_story"),
        (ANSWERS, GRADED, None, permutation_test(ANSWERS, GRADED), "permutation"),
        (
            ANSWERS,
            GRADED,
            SHARING,
            permutation_test_by_story(ANSWERS, GRADED, SharedStories(SHARING)),
            "permutation_by_story",
        ),
        (
            ANSWERS,
            GRADED,
            np.arange(20) // 4,
            group_permutation_test(ANSWERS, GRADED, np.arange(20) // 4),
            "permutation_by_group",
        ),
    ],
)
def test_the_test_is_the_one_for_the_data(first, second, groups, p, test):
    found = difference(first, second, groups)

    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    assert found.p == pytest.approx(p)
    assert (found.n, found.test) == (20, test)
    assert found.low < found.value < found.high
    by_story = test.endswith("_by_story")
    assert found.design_effect == (SharedStories(groups).design_effect(first - 1.0 * second) if by_story else None)
    if test.startswith("mcnemar"):
        assert (found.lost, found.won) == (int((~first & second).sum()), int((first & ~second).sum()))
    back = difference(second, first, groups)
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))


def test_stories_in_all_triples_allow_no_test():
    found = difference([True] * 5, [False] * 5, [[0, 1 + n] for n in range(5)])

    assert (found.p, found.low, found.high, found.design_effect) == (1, -1, 1, None)


@pytest.mark.parametrize("sharing", [False, True])
def test_the_interval_of_a_difference_is_that_of_bonett_and_price(sharing):
    """One more item is won and one more lost; shared stories multiply the variance, and t replaces the normal."""
    stories = SharedStories(SHARING if sharing else INDEPENDENT)
    won, lost = ((ANSWERS & ~OTHERS).sum() + 1) / 22, ((~ANSWERS & OTHERS).sum() + 1) / 22
    effect, quantile = 1.0, norm.ppf(0.975)
    if sharing:
        effect = stories.design_effect(ANSWERS - 1.0 * OTHERS)
        quantile = t.ppf(0.975, stories.degrees_of_freedom)
    margin = quantile * math.sqrt(max(effect, 1) * (won + lost - (won - lost) ** 2) / 22)

    found = difference(ANSWERS, OTHERS, stories)

    assert (found.low, found.high) == pytest.approx((won - lost - margin, won - lost + margin))


def test_two_groups_of_triples_allow_a_test():
    stories = SharedStories([[n // 4, 2 + n] for n in range(8)])
    assert stories.degrees_of_freedom == pytest.approx(1)
    assert difference([True] * 8, [False] * 3 + [True] * 5, stories).design_effect is not None


def test_the_interval_of_a_difference_ends_at_1():
    assert difference([True] * 3, [False] * 3).high == 1
    assert difference([False] * 3, [True] * 3).low == -1


def test_shared_stories_widen_the_interval_of_a_difference():
    stories = SharedStories([[n // 5] for n in range(20)])
    alone, shared = difference(ANSWERS, ANSWERS[::-1]), difference(ANSWERS, ANSWERS[::-1], stories)

    assert shared.low < alone.low
    assert shared.high > alone.high
    assert alone.design_effect is None
    assert shared.design_effect == stories.design_effect(ANSWERS.astype(float) - ANSWERS[::-1])


def test_values_of_different_lengths_are_not_paired():
    with pytest.raises(ValueError, match="3 and 2"):
        difference([1, 0, 1], [1, 0])


@pytest.mark.parametrize(("discordant", "shift", "n"), [(0.3, 0.0, 200), (0.3, 0.1, 50), (0.1, 0.06, 100)])
def test_intervals_of_independent_differences_cover(discordant, shift, n):
    """2,000 samples: the share of intervals with the true value, within three standard errors of 95 % (0.015)."""
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        drawn = generator.random(n)
        won, lost = drawn < (discordant + shift) / 2, drawn > 1 - (discordant - shift) / 2
        both = generator.random(n) < 0.5
        found = difference(np.where(won, True, both & ~lost), np.where(lost, True, both & ~won))
        covered += found.low <= shift <= found.high

    assert covered / 2000 > 0.935


def test_intervals_of_differences_cover_with_shared_stories():
    """60 triples of 15 anchors; a system that a story helps is helped in all of its triples."""
    generator = np.random.default_rng(2)
    stories = [[n // 4, 100 + n] for n in range(60)]
    shared = SharedStories(stories)
    covered = 0
    for _ in range(500):
        helped = np.repeat(generator.random((2, 15)) < 0.4, 4, axis=1)
        first, second = helped | (generator.random((2, 60)) < 0.3)
        found = difference(first, second, shared)
        covered += found.low <= 0 <= found.high

    assert covered / 500 > 0.92  # three standard errors below 0.95


def test_p_is_corrected_among_systems_with_the_same_reference():
    rows = []
    for system, p, metric in [
        ("a", 0.01, "x"),
        ("b", 0.04, "x"),
        ("c", 0.03, "x"),
        ("a", 0.02, "y"),
        ("d", math.nan, "x"),
    ]:
        rows.append({"system": system, "against": "base", "subset": "all", "metric": metric, "p": p})

    found = [row["p_adjusted"] for row in adjusted(rows)]

    assert found[:4] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert math.isnan(found[4])
