from itertools import product
from math import comb

import pytest

from narrlit.metrics.significance import mcnemar, wilson_interval


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
