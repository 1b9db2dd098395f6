from itertools import product
from math import comb, isnan, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from narrlit.metrics.significance import (
    clustered_interval,
    holm,
    mcnemar,
    permutation_test,
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
def test_wilson_known_values(correct, n, low, high):
    assert wilson_interval(correct, n) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize("n", [1, 7, 200])
def test_wilson_solves_its_equation(n):
    z = 1.959963984540054
    for correct in range(n + 1):
        share, ends = correct / n, wilson_interval(correct, n)
        assert 0 <= ends[0] <= share <= ends[1] <= 1
        for end in ends:
            assert (share - end) ** 2 == pytest.approx(z * z * end * (1 - end) / n, abs=1e-9)
        mirrored = wilson_interval(n - correct, n)
        assert ends == pytest.approx((1 - mirrored[1], 1 - mirrored[0]))


def judgements(only_first, only_second, both=3, neither=2):
    first = [True] * only_first + [False] * only_second + [True] * both + [False] * neither
    second = [False] * only_first + [True] * only_second + [True] * both + [False] * neither
    return first, second


@pytest.mark.parametrize(("b", "c"), list(product(range(6), repeat=2)))
def test_mcnemar_counts_the_splits_at_least_as_uneven(b, c):
    n = b + c
    uneven = sum(comb(n, i) for i in range(n + 1) if abs(2 * i - n) >= abs(b - c))
    assert mcnemar(*judgements(b, c)) == pytest.approx(uneven / 2**n)
    # On right and wrong answers, all permutations give the same p.
    assert permutation_test(*judgements(b, c)) == pytest.approx(mcnemar(*judgements(b, c)))


def test_permutations_of_numbers_are_all_sign_flips():
    # Five seeds, each better: two of 32 ways are as extreme. Of 1 + 2 - 3 = 0, all are.
    assert permutation_test([0.6, 0.7, 0.8, 0.9, 0.65], [0.5, 0.5, 0.5, 0.5, 0.5]) == pytest.approx(2 / 32)
    assert permutation_test([1, 2, 0], [0, 0, 3]) == 1
    assert permutation_test([1, 0], [1, 0]) == 1


def test_a_group_is_flipped_as_a_whole():
    first, second = [1] * 8, [0] * 8
    assert permutation_test(first, second) == pytest.approx(2 / 256)
    assert permutation_test(first, second, groups=[3, 3, 5, 5, 7, 7, 9, 9]) == pytest.approx(2 / 16)
    # What a group wins and loses cancels out.
    assert permutation_test([1, 0, 1], [0, 1, 0], groups=[1, 1, 2]) == 1


def test_many_permutations_are_drawn_by_the_seed():
    first, second = judgements(30, 14)
    drawn = permutation_test(first, second)
    assert drawn == permutation_test(first, second)
    assert drawn != permutation_test(first, second, seed=1)
    assert drawn == pytest.approx(mcnemar(first, second), abs=0.01)


def test_an_interval_over_groups_is_as_wide_as_that_of_so_many_triples():
    correct = np.random.default_rng(0).random(60) < 0.6
    single = clustered_interval(correct, np.arange(60))
    # Four copies of a triple tell no more than the triple.
    assert clustered_interval(np.repeat(correct, 4), np.repeat(np.arange(60), 4)) == single
    assert single == pytest.approx(wilson_interval(int(correct.sum()), 60), abs=0.02)
    assert clustered_interval(correct, np.arange(60), seed=1) != single
    low, high = clustered_interval(correct, np.arange(60), confidence=0.8)
    assert single[0] < low < high < single[1]


def test_one_group_tells_nothing():
    assert clustered_interval([True, False, True], [4, 4, 4]) == (0, 1)


def test_groups_without_a_single_error_leave_doubt():
    assert clustered_interval([True] * 6, [1, 1, 1, 2, 2, 3]) == wilson_interval(3, 3)
    assert clustered_interval([False] * 6, [1, 1, 1, 2, 2, 3]) == wilson_interval(0, 3)


def test_holm_adjusts_in_steps_and_in_any_order():
    # R: p.adjust(c(.01, .02, .03, .04), "holm")
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1, 1]
    assert holm([]) == []


@pytest.mark.parametrize(("n", "points"), [(200, 0.080), (400, 0.0566)])
def test_the_smallest_difference_is_where_p_reaches_the_level(n, points):
    assert smallest_difference(n) == pytest.approx(points, abs=5e-5)
    share = 0.3
    step = smallest_difference(n, share)
    lost, won = (round(n * (share + sign * step) / 2) for sign in (-1, 1))
    assert mcnemar(*judgements(won, lost)) == pytest.approx(0.05, abs=0.02)


def test_the_smallest_difference_solves_connors_sample_size():
    difference = smallest_difference(300, 0.25, power=0.8, alpha=0.01)
    needed = norm.isf(0.005) * sqrt(0.25) + norm.isf(0.2) * sqrt(0.25 - difference**2)
    assert (needed / difference) ** 2 == pytest.approx(300)


def test_systems_that_never_differ_need_few_triples_and_few_triples_show_nothing():
    assert smallest_difference(200, 0) == pytest.approx(norm.isf(0.025) ** 2 / 200)
    assert smallest_difference(2, 0.5) == 1


def test_spread_over_seeds():
    assert seed_spread([0.5, 0.6, 0.7]) == pytest.approx((0.6, 0.1))
    assert isnan(seed_spread([0.5])[1])
