"""Accuracies with intervals, and tests of the difference of two systems on the same triples."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

TYPICAL_DISCORDANCE = 1 / 3
"""Share of triples that one of two systems alone has right, where it is not known."""


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


@dataclass(frozen=True, slots=True)
class AccuracySummary:
    """Accuracy of n triples with its 95 % confidence interval.

    Ties are equal scores, which count as answers for B; with `undefined` (NaN) scores there is no accuracy.

    >>> print(AccuracySummary(n=200, correct=110))
    0.550 [0.481, 0.617] (110 of 200)
    """

    n: int
    correct: int
    ties: int = 0
    undefined: int = 0

    @property
    def known(self) -> bool:
        """True if there is an accuracy: at least one triple and no NaN score."""
        return self.n > 0 and not self.undefined

    @property
    def accuracy(self) -> float:
        """Share of right answers, from 0 to 1; NaN if undefined."""
        return self.correct / self.n if self.known else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % confidence interval; (0, 1) if undefined."""
        return wilson_interval(self.correct, self.n) if self.known else (0.0, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values; an undefined accuracy is None."""
        return {
            "n": self.n,
            "correct": self.correct,
            "accuracy": self.accuracy if self.known else None,
            "interval": list(self.interval) if self.known else None,
            "ties": self.ties,
            **({"undefined": self.undefined} if self.undefined else {}),
        }

    def __str__(self) -> str:
        if not self.n:
            return "no triples"
        if self.undefined:
            return f"undefined: {self.undefined} of {self.n} triples have a score that is NaN"
        low, high = self.interval
        ties = f", {self.ties} {'tie' if self.ties == 1 else 'ties'}" if self.ties else ""
        return f"{self.accuracy:.3f} [{low:.3f}, {high:.3f}] ({self.correct} of {self.n}{ties})"


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


def permutation_test(
    first: ArrayLike, second: ArrayLike, groups: ArrayLike | None = None, samples: int = 9999, seed: int = 0
) -> float:
    """Compute p of the two-sided paired permutation test of equal means, such as accuracies over seeds or folds.

    Signs of the differences are flipped: all 2^N ways where there are at most `samples`, else a random choice. On
    right and wrong answers, 0 and 1, all ways together give McNemar's exact p.

    Args:
        first: (N,) values of one system.
        second: (N,) values of the other on the same items.
        groups: (N,) items of one group are flipped together, as those that share stories depend on each other.
        samples: number of random choices.
        seed: of the random choices.

    >>> permutation_test([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1])
    0.21875
    """
    from scipy.stats import permutation_test as permuted

    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if groups is not None:
        differences = np.bincount(np.unique(groups, return_inverse=True)[1], differences).astype(np.float64)
    differences = differences[differences != 0]  # flipping them changes nothing, and fewer leave fewer ways
    if len(differences) < 2:
        return 1.0
    result = permuted(
        (differences,), np.sum, permutation_type="samples", n_resamples=samples, vectorized=True, rng=seed
    )
    return float(result.pvalue)


def clustered_interval(
    correct: ArrayLike, groups: ArrayLike, confidence: float = 0.95, samples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Compute the percentile bootstrap interval of an accuracy over groups of triples that depend on each other.

    With a single group it is (0, 1); if all answers are right, or all wrong, it is Wilson's for as many groups.

    Args:
        correct: (N,) right answers.
        groups: (N,) number of each triple's group, as `story_groups` gives them.
        confidence: of the interval.
        samples: number of resamples of the groups.
        seed: of the resamples.
    """
    from scipy.stats import bootstrap

    inverse = np.unique(groups, return_inverse=True)[1]
    right, sizes = np.bincount(inverse, np.asarray(correct, dtype=np.float64)), np.bincount(inverse)
    if len(sizes) < 2:
        return 0.0, 1.0
    if right.sum() in (0, sizes.sum()):  # every resample is the same
        return wilson_interval(len(sizes) if right.any() else 0, len(sizes), confidence)
    interval = bootstrap(
        (right, sizes),
        lambda right, sizes, axis=-1: right.sum(axis=axis) / sizes.sum(axis=axis),
        n_resamples=samples,
        batch=1000,
        paired=True,
        confidence_level=confidence,
        method="percentile",
        rng=seed,
    ).confidence_interval
    return float(interval.low), float(interval.high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p of several comparisons so that the chance of any false difference stays at the level (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1)
    return [float(value) for value in adjusted]


def smallest_difference(
    n: int, discordant_share: float = TYPICAL_DISCORDANCE, power: float = 0.5, alpha: float = 0.05
) -> float:
    """Compute the smallest difference of two paired accuracies, from 0 to 1, that n triples show.

    With the power 0.5 it is the difference at which p falls to alpha: below it, none can be claimed. A study that shall
    find a true difference four times in five (0.8) needs one 1.4 times as large.

    Args:
        n: number of triples.
        discordant_share: share of the triples that one of the systems alone has right.
        power: probability that a true difference of this size is found.
        alpha: level of the two-sided test.

    Source: Connor (1987), normal approximation of the McNemar test, solved for the difference.

    >>> [round(smallest_difference(n), 3) for n in (200, 400)]
    [0.08, 0.057]
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    level, found = ndtri(1 - alpha / 2), ndtri(power)

    def excess(difference: float) -> float:
        """Compare a difference with what is needed; as many triples at least are discordant."""
        share = max(discordant_share, difference)
        return float(difference * np.sqrt(n) - level * np.sqrt(share) - found * np.sqrt(share - difference**2))

    return float(brentq(excess, 1 / n, 1)) if excess(1) > 0 else 1.0


def seed_spread(values: Sequence[float]) -> tuple[float, float]:
    """Compute the mean and the sample standard deviation of results over seeds; NaN for the latter of fewer than two.

    >>> mean, deviation = seed_spread([0.55, 0.57, 0.59])
    >>> round(mean, 3), round(deviation, 3)
    (0.57, 0.02)
    """
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else float("nan")


def paired(wrong: Set[Any] | None, other: Set[Any] | None, n: int) -> dict[str, Any]:
    """Compare two systems on n triples by those that each answers wrongly; None where one has no answers (NaN).

    Returns `difference` of the accuracies (first minus second); `lost`: triples only the second has right; `won`: only
    the first; `p` of the exact paired McNemar test.

    >>> paired({1, 2}, {2, 3, 4}, n=10)
    {'difference': 0.1, 'lost': 1, 'won': 2, 'p': 1.0}
    """
    if wrong is None or other is None:
        return dict.fromkeys(("difference", "lost", "won", "p"))
    lost, won = len(wrong - other), len(other - wrong)
    p = mcnemar([False] * lost + [True] * won, [True] * lost + [False] * won)
    return {"difference": (won - lost) / n, "lost": lost, "won": won, "p": p}


def paired_text(comparison: Mapping[str, Any]) -> str:
    """Format what `paired` returns, without the difference.

    >>> paired_text({"difference": 0.1, "lost": 1, "won": 20, "p": 1e-5})
    '1 lost, 20 won, p < 0.001'
    """
    return f"{comparison['lost']} lost, {comparison['won']} won, {p_text(comparison['p'])}"


def p_text(p: float | None) -> str:
    """Format p; None where scores are NaN."""
    return "p unknown" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
