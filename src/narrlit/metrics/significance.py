"""Confidence interval of an accuracy, and a paired test of two systems."""

from collections.abc import Sequence


def wilson_interval(correct: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Compute Wilson's score interval of a proportion (Wilson 1927); without answers it is (0, 1).

    >>> [round(end, 3) for end in wilson_interval(110, 200)]
    [0.481, 0.617]
    """
    from scipy.stats import binomtest

    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    if n == 0 and correct == 0:
        return 0.0, 1.0
    interval = binomtest(correct, n).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Compute p of the exact two-sided McNemar test of two systems that are right or wrong on the same items.

    It is the probability of a split at least this uneven between equal systems; 1 if they never differ (McNemar 1947).

    >>> mcnemar([True] * 5 + [False], [False] * 5 + [True])  # 5 against 1: 2 (1 + 6) / 64
    0.21875
    """
    from scipy.stats import binomtest

    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} answers can't be paired")
    differing = [bool(x) for x, y in zip(first, second, strict=True) if bool(x) != bool(y)]
    return float(binomtest(sum(differing), len(differing), 0.5).pvalue) if differing else 1.0
