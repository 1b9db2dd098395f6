import importlib
from collections import Counter
from itertools import product
from math import comb, inf, isnan, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import hypergeom, norm, t

from narrlit.statistics.significance import (
    SharedStories,
    difference_interval,
    fisher,
    group_intervals,
    group_permutation_test,
    holm,
    interval_by_story,
    mcnemar,
    mcnemar_by_story,
    p_text,
    permutation_test,
    permutation_test_by_story,
    seed_spread,
    smallest_difference,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    # Newcombe (1998), Table I, method 3; the last row is the documented interval of 110 in 200.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (110, 200, 0.4808, 0.6173),
    ],
)
def test_wilson_interval_has_known_values(correct, n, low, high):
    assert wilson_interval(correct, n) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize("n", [1, 7, 200])
def test_wilson_interval_solves_its_equation(n):
    z = 1.959963984540054
    for correct in range(n + 1):
        share = correct / n
        ends = wilson_interval(correct, n)
        assert 0 <= ends[0] <= share <= ends[1] <= 1
        for end in ends:
            assert (share - end) ** 2 == pytest.approx(z * z * end * (1 - end) / n, abs=1e-9)
        mirrored = wilson_interval(n - correct, n)
        assert ends == pytest.approx((1 - mirrored[1], 1 - mirrored[0]))


@pytest.mark.parametrize("confidence", [-0.5, 0, 1, 1.5, float("nan")])
def test_a_confidence_outside_0_and_1_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        wilson_interval(1, 2, confidence)


def test_without_observations_wilson_interval_is_0_to_1_and_answers_are_refused():
    assert wilson_interval(0, 0) == (0, 1)
    with pytest.raises(ValueError, match=r"\bn\b"):
        wilson_interval(1, 0)


def test_wilson_interval_uses_the_quantile_of_the_confidence():
    for end in wilson_interval(110, 200, confidence=0.8):
        assert (0.55 - end) ** 2 == pytest.approx(norm.isf(0.1) ** 2 * end * (1 - end) / 200, abs=1e-9)


def judgements(only_first, only_second, both=3, neither=2):
    first = [True] * only_first + [False] * only_second + [True] * both + [False] * neither
    second = [False] * only_first + [True] * only_second + [True] * both + [False] * neither
    return first, second


@pytest.mark.parametrize(("b", "c"), list(product(range(6), repeat=2)))
def test_mcnemar_sums_the_splits_that_are_at_least_as_uneven(b, c):
    n = b + c
    uneven = sum(comb(n, i) for i in range(n + 1) if abs(2 * i - n) >= abs(b - c))
    assert mcnemar(*judgements(b, c)) == pytest.approx(uneven / 2**n)
    # On right and wrong answers, all permutations give the same p.
    assert permutation_test(*judgements(b, c)) == pytest.approx(mcnemar(*judgements(b, c)))


@pytest.mark.parametrize("lengths", [(3, 2), (2, 3)])
def test_answers_to_different_numbers_of_items_are_refused(lengths):
    with pytest.raises(ValueError, match="{} and {} answers can't be paired".format(*lengths)):
        mcnemar(*([True] * length for length in lengths))


def test_permutation_test_matches_all_sign_flips():
    # Five seeds, each better: two of 32 ways are as extreme. Of 1 + 2 - 3 = 0, all are.
    assert permutation_test([0.6, 0.7, 0.8, 0.9, 0.65], [0.5, 0.5, 0.5, 0.5, 0.5]) == pytest.approx(2 / 32)
    assert permutation_test([1, 2, 0], [0, 0, 3]) == 1
    assert permutation_test([1, 0], [1, 0]) == 1


def test_random_permutations_depend_on_the_seed():
    first, second = judgements(30, 14)
    drawn = permutation_test(first, second)
    assert drawn == permutation_test(first, second)
    assert drawn != permutation_test(first, second, seed=1)
    assert drawn == pytest.approx(mcnemar(first, second), abs=0.01)


def test_the_number_of_permutations_is_9999_by_default():
    first, second = judgements(30, 14)
    p = permutation_test(first, second, samples=199)
    assert p * 200 == pytest.approx(round(p * 200))  # the choices and the answers themselves are counted
    assert permutation_test(first, second) == permutation_test(first, second, samples=9999, seed=0)


def test_a_single_difference_is_not_significant():
    assert permutation_test([1, 0, 0], [0, 0, 0]) == 1


def by_loops(values, groups):
    """Variance of a mean, and degrees of freedom, from whole matrices (N, N)."""
    n = len(values)
    share = np.array([np.mean(groups == group) for group in groups])
    weights = (groups[:, None] == groups) / (1 - share[:, None]) ** 2
    center = np.eye(n) - 1 / n
    expected = center @ weights @ center
    deviations = values - values.mean()
    variance = deviations @ weights @ deviations / np.trace(expected)
    return max(variance, values.var(ddof=1)) / n, np.trace(expected) ** 2 / np.square(expected).sum()


@pytest.mark.parametrize("kind", ["0/1", "graded"])
def test_group_intervals_are_score_intervals_with_the_variance_of_groups(kind):
    generator = np.random.default_rng(0)
    groups = np.repeat([4, 1, 7, 2, 9], [1, 6, 2, 3, 2])
    means = {4: 0.9, 1: 0.4, 7: 0.1, 2: 0.6, 9: 0.5}
    probabilities = np.array([means[group] for group in groups.tolist()])
    values = probabilities + generator.uniform(-0.1, 0.1, len(groups))
    if kind == "0/1":
        values = (generator.random(len(groups)) < probabilities).astype(float)
    variance, freedom = by_loops(values, groups)
    quantile, mean = t.isf(0.05, freedom), values.mean()
    ((low, high),) = group_intervals(values[:, None], groups, confidence=0.9)

    # Both ends solve Wilson's equation with n independent values.
    n = mean * (1 - mean) / variance
    for end in (low, high):
        assert (mean - end) ** 2 == pytest.approx(quantile**2 * end * (1 - end) / n)
    assert 0 < low < mean < high < 1

    ((low, high),) = group_intervals(values[:, None], groups, confidence=0.9, bounds=(-np.inf, np.inf))
    assert (low, high) == pytest.approx((mean - quantile * variance**0.5, mean + quantile * variance**0.5))


def test_group_intervals_are_those_of_triples_that_share_a_story():
    correct = np.random.default_rng(1).random(40) < np.repeat([0.2, 0.9, 0.5, 0.7], 10)
    groups = np.repeat(np.arange(4), 10)
    shared = SharedStories(groups[:, None])
    (interval,) = group_intervals(correct[:, None], groups)
    # 39 instead of 40: the variance of graded values is estimated, that of 0/1 values follows from their mean.
    assert interval == pytest.approx(interval_by_story(correct, shared), abs=0.01)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 0.1])
@pytest.mark.parametrize("groups", [[0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5]])
def test_equal_values_have_an_interval_with_width_within_bounds(value, groups):
    ((low, high),) = group_intervals([[value]] * 6, groups)
    ((wide_low, wide_high),) = group_intervals([[5 * value - 1]] * 6, groups, bounds=(-1.0, 4.0))

    assert 0 <= low <= value <= high <= 1
    assert high - low > 0.3
    assert (wide_low, wide_high) == pytest.approx((5 * low - 1, 5 * high - 1))
    # Without bounds, equal values do not tell how much others may differ.
    assert group_intervals([[value]] * 6, groups, bounds=(-np.inf, np.inf)) == [(-np.inf, np.inf)]


def test_equal_means_of_groups_have_an_interval_with_width():
    ((low, high),) = group_intervals([[0.0], [1.0]] * 5, np.repeat(np.arange(5), 2))
    assert high - low > 0.5


def test_group_intervals_treat_columns_separately_and_need_two_groups():
    values = np.array([[1.0, 0.0, 1.0]] + [[0.0, 0.0, 1.0]] * 3 + [[1.0, 0.0, 1.0]] * 6)
    groups = [7, 7, 7, 7, 3, 3, 3, 3, 3, 3]
    columns = [group_intervals(values[:, [column]], groups)[0] for column in range(3)]

    assert group_intervals(values, groups) == columns
    assert group_intervals(values[:4], groups[:4]) == [(0, 1)] * 3
    assert group_intervals(values[:4], groups[:4], bounds=(-1.0, 2.0)) == [(-1, 2)] * 3


@pytest.mark.parametrize(("num_groups", "least"), [(5, 0.93), (8, 0.93), (20, 0.93)])
def test_group_intervals_cover_the_mean_of_few_groups(num_groups, least):
    generator = np.random.default_rng(num_groups)
    covered = 0
    for _ in range(600):
        sizes = generator.geometric(1 / 4, num_groups)
        means = np.repeat(generator.beta(1, 3, num_groups), sizes)
        ((low, high),) = group_intervals(
            (generator.random(len(means)) < means)[:, None], np.repeat(np.arange(num_groups), sizes)
        )
        covered += low <= 0.25 <= high
    assert covered / 600 > least  # standard error .009


def test_group_permutation_flips_whole_groups():
    first, second = [1, 1, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0]
    assert group_permutation_test(first, second, range(6)) == permutation_test(first, second)
    sums = [2, 0, 1], [0, 1, 0]
    assert group_permutation_test(first, second, [5, 5, 2, 2, 9, 9]) == permutation_test(*sums)


# Triples that share stories ------------------------------------------------------------------------------------------

CHAIN = [[n, n + 1, 1000 + n] for n in range(200)]
"""Each triple shares a story with the next: all hang together."""
MIXED = [[0, 1, 2], [0, 3, 4], [0, 5, 6], [3, 7, 8], [3, 1, 9], [10, 11, 12], [13, 14, 15], [13, 16, 14]]
FIRST = [1, 1, 1, 0, 1, 1, 0, 1]
SECOND = [0, 0, 1, 1, 0, 1, 1, 0]


def groups(count, size):
    """`count` groups of `size` triples with the same anchor."""
    return [[n // size, 10_000 + n, 20_000 + n] for n in range(count * size)]


def loops(stories, values):
    """Design effect and degrees of freedom by plain loops over all pairs of triples."""
    n = len(stories)
    count = Counter(story for row in stories for story in set(row))
    deviations = np.array(values, float) - np.mean(values)
    weights = np.zeros((n, n))
    total = 0.0
    for i, j in product(range(n), repeat=2):
        common = set(stories[i]) & set(stories[j])
        if common:
            share = max(count[story] / n for story in common)
            weights[i, j] = 1 / (1 - share) ** 2
        total += weights[i, j] * deviations[i] * deviations[j]
    center = np.eye(n) - 1 / n
    expected = np.trace(center @ weights @ center)
    effect = (total / expected) / (sum(deviations**2) / (n - 1))
    return max(1, effect), expected**2 / np.sum((center @ weights @ center) ** 2)


@pytest.mark.parametrize("stories", [MIXED, groups(4, 2), CHAIN[:8]])
def test_the_design_effect_matches_plain_loops(stories):
    shared = SharedStories(stories)
    generator = np.random.default_rng(0)
    effects = []
    for values in [FIRST, SECOND, np.subtract(FIRST, SECOND), *generator.normal(size=(20, 8))]:
        effect, degrees = loops(stories, values)
        assert shared.design_effect(values) == pytest.approx(effect)
        assert shared.degrees_of_freedom == pytest.approx(degrees)
        effects.append(effect)

    assert min(effects) == 1 < max(effects)


def test_a_story_that_is_twice_in_one_triple_is_not_shared():
    assert SharedStories([[0, 0, 1], [2, 3, 4], [5, 6, 7]]).num_sharing == 0


def test_degrees_of_freedom_of_no_triples_and_of_two_independent_ones():
    nothing, two = SharedStories([]), SharedStories([[0, 1, 2], [3, 4, 5]])
    assert (nothing.num_triples, nothing.num_sharing, nothing.degrees_of_freedom) == (0, 0, 0)
    assert two.degrees_of_freedom == pytest.approx(1)
    assert two.design_effect([0, 1]) == pytest.approx(1)


def test_triples_that_pairwise_share_stories_allow_no_test():
    # No story is in all triples, but every two of the three have one together: their mean has no measurable variance.
    assert SharedStories([[0, 1, 10], [1, 2, 11], [0, 2, 12]]).degrees_of_freedom == 0

    stories = [[0, 1, 2], [0, 3, 4], [1, 3, 10], [2, 4, 11]]  # the last two share none
    assert SharedStories(stories).degrees_of_freedom == pytest.approx(loops(stories, [0, 1, 1, 0])[1])


def test_p_by_story_divides_mcnemars_statistic_by_the_design_effect():
    stories = CHAIN[:72]
    first = [n % 6 in (0, 1, 2, 5) for n in range(72)]
    second = [n % 6 in (3, 5) for n in range(72)]  # 36 won, in threes, and 12 lost
    effect, degrees = loops(stories, np.subtract(first, second, dtype=float))
    expected = 2 * t.sf((36 - 12) / sqrt((36 + 12) * effect), degrees)

    assert effect > 1.1
    assert expected > mcnemar(first, second)
    assert mcnemar_by_story(first, second, SharedStories(stories)) == pytest.approx(expected)
    assert mcnemar_by_story(second, first, SharedStories(stories)) == pytest.approx(expected)


def test_groups_of_equal_answers_count_as_single_observations():
    shared = SharedStories(groups(10, 4))
    assert shared.num_sharing == 40
    assert shared.degrees_of_freedom == pytest.approx(9)

    # Within a group all answers are equal: 40 triples tell what 10 tell.
    values = np.repeat(np.random.default_rng(3).normal(size=10), 4)
    sample = np.var(values[::4], ddof=1) / 10
    assert np.var(values, ddof=1) / 40 * shared.design_effect(values) == pytest.approx(sample)
    assert shared.design_effect(np.ones(40)) == pytest.approx(4)


@pytest.mark.parametrize(("won", "lost"), [(12, 3), (30, 14), (5, 0), (0, 0), (1, 1)])
def test_without_shared_stories_it_is_the_exact_mcnemar_test(won, lost):
    first, second = judgements(won, lost)
    shared = SharedStories([[3 * n, 3 * n + 1, 3 * n + 2] for n in range(len(first))])
    assert shared.num_sharing == 0
    assert mcnemar_by_story(first, second, shared) == mcnemar(first, second)
    # In closed form here and by scipy there: rounding differs.
    assert interval_by_story(first, shared) == pytest.approx(wilson_interval(sum(first), len(first)), abs=1e-12)
    assert shared.design_effect(np.subtract(first, second, dtype=float)) == pytest.approx(1)


def test_p_by_story_is_at_least_that_of_the_exact_test():
    generator = np.random.default_rng(0)
    shared = SharedStories(CHAIN[:40])
    larger = 0
    for _ in range(50):
        first = (generator.random(40) < 0.5).tolist()
        second = (generator.random(40) < 0.6).tolist()
        p = mcnemar_by_story(first, second, shared)
        exact = mcnemar(first, second)
        assert p >= exact
        larger += p > exact

    assert larger > 5


def test_equal_answers_are_no_difference_although_triples_share_stories():
    answers = [True, False] * (len(CHAIN) // 2) + [True] * (len(CHAIN) % 2)
    assert mcnemar_by_story(answers, answers, SharedStories(CHAIN)) == 1


def test_a_test_on_a_chain_of_connected_triples_has_power():
    first = [n % 3 != 0 for n in range(200)]
    second = [n % 5 in (1, 3) for n in range(200)]
    p = mcnemar_by_story(first, second, SharedStories(CHAIN))
    assert mcnemar(first, second) <= p < 0.001


def test_answers_that_depend_on_stories_have_less_weight():
    # One system is wrong in runs of ten neighbors, the other never is: as many errors, alone or together.
    together = [n % 40 >= 10 for n in range(200)]
    alone = [n % 4 != 0 for n in range(200)]
    shared = SharedStories(CHAIN)
    right = [True] * 200

    assert shared.design_effect(np.array(together, float)) > 1.5
    assert shared.design_effect(np.array(alone, float)) == 1

    wide, narrow = (interval_by_story(answers, shared) for answers in (together, alone))
    assert wide[1] - wide[0] > 1.2 * (narrow[1] - narrow[0])
    assert narrow == pytest.approx(wilson_interval(150, 200), abs=0.002)  # t of 65 degrees of freedom, not normal
    assert mcnemar_by_story(right, together, shared) > mcnemar_by_story(right, alone, shared)


@pytest.mark.parametrize(
    "stories",
    [
        groups(1, 30),  # one anchor
        [[0, n % 2 + 1, n + 10] for n in range(30)],  # one anchor, and two stories in half of the triples each
        [[n, 50 + n, 100 + n] for n in range(1)],  # one triple
    ],
)
def test_a_story_in_all_triples_allows_no_test(stories):
    shared = SharedStories(stories)
    n = len(stories)
    assert shared.degrees_of_freedom == 0

    if n > 1:
        assert mcnemar_by_story([True] * n, [False] * n, shared) == 1
        assert interval_by_story([True] * n, shared) == (0, 1)


def test_triples_of_two_anchors_are_two_observations():
    # With one degree of freedom nothing short of certainty is shown.
    shared = SharedStories(groups(2, 50))
    assert shared.degrees_of_freedom == pytest.approx(1)
    answers = [n % 4 > 0 for n in range(100)]
    assert mcnemar_by_story(answers, [not right for right in answers], shared) > 0.05


def test_a_story_in_most_triples_gives_a_wide_interval():
    # The frequent story moves the mean of all triples, and so hides its own effect: the weights make up for it.
    stories = [[0 if n < 120 else n, 1000 + n, 2000 + n] for n in range(200)]
    shared = SharedStories(stories)
    first = [n < 120 or n % 2 == 0 for n in range(200)]
    second = [(n >= 120 and n % 2 == 1) or n < 30 for n in range(200)]

    assert mcnemar(first, second) < 1e-6
    assert mcnemar_by_story(first, second, shared) > 0.05


def test_all_correct_answers_give_the_interval_of_the_number_of_groups():
    shared = SharedStories(groups(6, 5))
    low, high = interval_by_story([True] * 30, shared)
    share = t.isf(0.025, 5) ** 2 / 6  # Wilson's lower end for 6 of 6, with t

    assert low == pytest.approx(1 / (1 + share))
    assert high == 1

    low, high = interval_by_story([False] * 30, shared)
    assert low == 0
    assert high == pytest.approx(share / (1 + share))


@pytest.mark.slow
def test_false_positives_and_coverage_under_dependence():
    # 3 standard errors of 600 simulations around the nominal 5 %: .05 + .027.
    generator = np.random.default_rng(0)
    stories = np.array([generator.choice(260, 3, replace=False) for _ in range(150)])
    shared = SharedStories(stories)
    mistaken = covered = naive = 0
    for _ in range(600):
        effects = generator.normal(size=(2, 260))
        of_stories = effects[:, stories].sum(axis=-1) * sqrt(0.5 / 3)
        scores = of_stories + generator.normal(size=(2, 150)) * sqrt(0.5)
        first, second = (scores > norm.isf(0.6)).tolist()
        mistaken += mcnemar_by_story(first, second, shared) < 0.05
        naive += mcnemar(first, second) < 0.05
        low, high = interval_by_story(first, shared)
        covered += low <= 0.6 <= high

    assert mistaken / 600 < 0.077
    assert naive / 600 > 0.077
    assert covered / 600 > 0.923


def test_the_simulation_has_a_row_for_each_test_and_interval(monkeypatch, world_files):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    simulation = importlib.import_module("significance")
    tests, intervals = simulation.error_rates([str(world_files / "validation.jsonl")], simulations=10, seed=1)
    settings = {(row.triples, row.stories) for row in tests}

    assert settings == set(product(("validation.jsonl", "synthetic"), ("none", "hard, .3", "hard, .6", "favored, .6")))
    assert len(tests) == 5 * len(settings)
    assert {row.test for row in tests} >= {"McNemar", "by story"}
    assert {row.interval for row in intervals} == {"Wilson", "by story", "ours - published", "ours alone"}
    assert all(0 <= share <= 1 for row in tests for share in (row.false_positives, row.power))
    # Another run with the seed has the same rows, and a test with a higher p fewer of them below .05.
    assert simulation.error_rates([str(world_files / "validation.jsonl")], 10, 1) == (tests, intervals)

    power = {(row.triples, row.stories, row.test): row.power for row in tests}
    for triples, stories in settings:
        assert power[triples, stories, "by story"] <= power[triples, stories, "McNemar"]
    assert "False positives / power" in simulation.tables(tests, intervals)


def test_the_simulation_of_groups_has_a_row_for_each_interval(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    simulation = importlib.import_module("significance")
    monkeypatch.setattr(simulation, "NUM_GROUPS", (5, 20))
    monkeypatch.setattr(simulation, "GROUP_RESAMPLES", 99)
    rows = simulation.group_coverage(simulations=20, seed=1)

    settings = set(product((5, 20), ("0/1", "graded"), ("2, 2", "1, 3", "8, 1")))
    assert {(row.groups, row.values, row.shape) for row in rows} == settings
    assert {row.interval for row in rows} == {"percentile", "studentized", "wild", "t", "score"}
    assert len(rows) == 5 * len(settings)
    assert all(0 <= row.coverage <= 1 and 0 < row.width <= 1 for row in rows)
    assert simulation.group_coverage(20, 1) == rows
    # Whatever the draws, the interval of narrlit covers more than the percentile bootstrap with few groups.
    mean = {name: np.mean([row.coverage for row in rows if row.interval == name]) for name in ("score", "percentile")}
    assert mean["score"] > mean["percentile"]
    assert "| score" in simulation.group_table(rows)


def test_fishers_p_is_the_probability_of_counts_that_are_no_more_probable():
    correct, n, other, other_n = 9, 12, 5, 14
    probability = hypergeom(n + other_n, correct + other, n).pmf
    p = sum(probability(k) for k in range(n + 1) if probability(k) <= probability(correct) * (1 + 1e-9))

    assert fisher(correct, n, other, other_n) == pytest.approx(p)
    assert fisher(other, other_n, correct, n) == pytest.approx(p)
    assert fisher(200, 400, 100, 200) == 1


@pytest.mark.parametrize(
    ("correct", "n", "other", "other_n", "low", "high"),
    # Newcombe (1998b), Table II, method 10.
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (0, 10, 0, 10, -0.2775, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
        (10, 10, 0, 10, 0.6075, 1.0),
    ],
)
def test_difference_interval_matches_newcombes_published_examples(correct, n, other, other_n, low, high):
    found = difference_interval(correct / n, n, other / other_n, other_n)
    assert found == pytest.approx((low, high), abs=6e-5)
    swapped = difference_interval(other / other_n, other_n, correct / n, n)
    assert swapped == pytest.approx((-high, -low), abs=6e-5)


def test_the_interval_of_a_difference_contains_it():
    # Exact: the chance that the interval holds 0, over all outcomes of two systems of accuracy .6.
    def chance(right, size):
        return comb(size, right) * 0.6**right * 0.4 ** (size - right)

    n, other_n = 60, 40
    covered = 0
    for i, j in product(range(n + 1), range(other_n + 1)):
        low, high = difference_interval(i / n, n, j / other_n, other_n)
        if low <= 0 <= high:
            covered += chance(i, n) * chance(j, other_n)

    assert covered == pytest.approx(0.95, abs=0.01)


def test_holm_adjusts_p_values_in_any_order():
    # R: p.adjust(c(.01, .02, .03, .04), "holm")
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1, 1]
    assert holm([0.6, 0.9]) == [1, 1]  # a p is never above 1
    assert holm([]) == []


def smallest_by_search(n, discordant, alpha):
    """Smallest difference for which the exact McNemar test has p below alpha, by trying all."""
    for differing in range(max(1, discordant), n + 1):
        for won in range((differing + 1) // 2, differing + 1):
            if mcnemar(*judgements(won, differing - won)) < alpha:
                return (2 * won - differing) / n
    return inf


@pytest.mark.parametrize("alpha", [0.05, 0.025, 0.05 / 3])
@pytest.mark.parametrize(("n", "discordant"), [(200, 67), (200, 20), (400, 133), (24, 6), (24, 11), (30, 0), (9, 9)])
def test_the_smallest_difference_is_that_of_the_exact_test(n, discordant, alpha):
    assert smallest_difference(n, discordant / n, alpha) == smallest_by_search(n, discordant, alpha)


def test_the_smallest_difference_of_known_numbers_of_triples():
    assert smallest_difference(200) == smallest_difference(200, 1 / 3, 0.05) == 17 / 200
    assert smallest_difference(200, 0.1) == 10 / 200
    assert smallest_difference(6, 1 / 6) == 1
    assert smallest_difference(5, 1) == inf


def test_the_smallest_difference_by_story_is_where_its_p_falls_below_alpha():
    shared = SharedStories(groups(20, 5))
    freedom = shared.degrees_of_freedom
    by_story = smallest_difference(100, 0.3, 0.05, design_effect=2.0, degrees_of_freedom=freedom)
    # (won - lost) / sqrt(2 * 30) is compared with Student's t; won - lost is even, as 30 is.
    least = t.isf(0.025, freedom) * sqrt(2 * 30)
    assert 100 * by_story == pytest.approx(2 * np.ceil(least / 2))
    assert by_story > smallest_difference(100, 0.3)
    # Never below the exact test, however many degrees of freedom.
    assert smallest_difference(100, 0.3, degrees_of_freedom=1e6) >= smallest_difference(100, 0.3)


def test_seed_spread_is_mean_and_sample_deviation():
    assert seed_spread([0.5, 0.6, 0.7]) == pytest.approx((0.6, 0.1))
    assert seed_spread([0.5, 0.7]) == pytest.approx((0.6, sqrt(0.02)))
    assert isnan(seed_spread([0.5])[1])


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "p unknown"), (0.0, "p < 0.001"), (0.00099, "p < 0.001"), (0.001, "p = 0.001"), (1.0, "p = 1.000")],
)
def test_p_is_printed_with_three_digits_or_as_below_0_001(p, text):
    assert p_text(p) == text


def test_intervals_by_story_and_of_differences_use_the_given_confidence():
    stories = SharedStories(groups(10, 4))
    answers = [n % 3 > 0 for n in range(40)]
    apart = SharedStories([[3 * n, 3 * n + 1, 3 * n + 2] for n in range(40)])
    for interval in (
        lambda **options: interval_by_story(answers, stories, **options),
        lambda **options: interval_by_story(answers, apart, **options),
        lambda **options: difference_interval(0.6, 50, 0.5, 40, **options),
    ):
        (low, high), (wide_low, wide_high) = interval(confidence=0.8), interval()
        assert interval(confidence=0.95) == (wide_low, wide_high)
        assert wide_low < low < high < wide_high


def test_graded_values_are_tested_by_story():
    shared = SharedStories(groups(10, 4))
    generator = np.random.default_rng(0)
    first, second = generator.integers(0, 4, 40), generator.integers(0, 3, 40)
    differences = (first - second).astype(float)
    variance = differences @ differences * shared.design_effect(differences)
    p = 2 * t.sf(abs(differences.sum()) / sqrt(variance), shared.degrees_of_freedom)

    assert permutation_test_by_story(first, second, shared) == max(p, permutation_test(first, second))
    apart = SharedStories([[3 * n, 3 * n + 1, 3 * n + 2] for n in range(40)])
    assert permutation_test_by_story(first, second, apart) == permutation_test(first, second)
    correct, other = first > 1, second > 1
    assert permutation_test_by_story(correct, other, shared) == pytest.approx(mcnemar_by_story(correct, other, shared))
