"""How sure a number of right answers is: an interval for one system, a paired test for two."""

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist


def wilson_interval(correct: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (Wilson 1927): never outside [0, 1], and honest near its ends.

    Args:
        correct: how many are right.
        n: how many there are; 0 says nothing, so the interval is (0, 1).
        confidence: share of such intervals that hold the true value, between 0 and 1.

    Returns:
        Lower and upper end, as shares.

    Raises:
        ValueError: if not 0 <= correct <= n, or not 0 < confidence < 1.

    >>> [round(end, 3) for end in wilson_interval(110, 200)]
    [0.481, 0.617]
    >>> [round(end, 3) for end in wilson_interval(0, 10)]
    [0.0, 0.278]
    """
    if not 0 <= correct <= n:
        raise ValueError(f"{correct} right answers of {n}")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = correct / n
    middle = share + z * z / (2 * n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    whole = 1 + z * z / n
    # Both ends are exact by algebra where nothing or everything is right; rounding alone would miss them.
    low = 0.0 if correct == 0 else (middle - half) / whole
    high = 1.0 if correct == n else (middle + half) / whole
    return low, high


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Exact two-sided McNemar test: do two systems differ, judged on the same items?

    Only items that one system has right and the other wrong tell them apart; if neither is better, each of these is a
    fair coin (McNemar 1947, with the binomial distribution in place of chi-squared).

    Args:
        first: for each item, whether the first system is right.
        second: the same for the second system, in the same order.

    Returns:
        p value: the chance of a split at least this uneven between two equal systems; 1 if they never differ.

    Raises:
        ValueError: if the two don't have the same length.

    >>> mcnemar([True] * 5 + [False], [False] * 5 + [True])  # 5 against 1: 2 (1 + 6) / 64
    0.21875
    >>> mcnemar([True, False], [True, False])
    1.0
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} judgements can't be paired")
    only_first = sum(bool(x) and not y for x, y in zip(first, second, strict=True))
    only_second = sum(bool(y) and not x for x, y in zip(first, second, strict=True))
    n = only_first + only_second
    tail = sum(comb(n, i) for i in range(min(only_first, only_second) + 1))
    # Whole numbers until the division: 2^n is past any float for a few thousand items, the ratio is not.
    return min(2 * tail, 1 << n) / (1 << n)
