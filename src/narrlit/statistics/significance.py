"""Accuracies with intervals, and tests of the difference of two systems on the same triples."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import ndtri
from scipy.stats import binom, binomtest, fisher_exact, t
from scipy.stats import permutation_test as permuted

from narrlit.data.schema import DoubleArray, IntArray
from narrlit.errors import DataError

LEVEL = 0.05
"""Level of significance: a difference is shown if p is below it."""
TYPICAL_DISCORDANCE = 1 / 3
"""Default share of triples that only one of two systems answers correctly."""


def wilson_interval(correct: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Compute Wilson's score interval of a proportion (Wilson 1927); for n = 0 it is (0, 1).

    >>> [round(end, 3) for end in wilson_interval(110, 200)]
    [0.481, 0.617]
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    if n == 0 and correct == 0:
        return 0.0, 1.0
    interval = binomtest(correct, n).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Compute p of the exact two-sided McNemar test of two systems by their correct answers to the same items.

    It is the probability of an equally or more uneven split for equal systems; 1 if they never differ (McNemar 1947).

    >>> mcnemar([True] * 5 + [False], [False] * 5 + [True])  # 5 against 1: 2 (1 + 6) / 64
    0.21875
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} answers can't be paired")
    first_correct, second_correct = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    only_first = int((first_correct & ~second_correct).sum())
    only_second = int((second_correct & ~first_correct).sum())
    discordant = only_first + only_second
    return float(binomtest(only_first, discordant, 0.5).pvalue) if discordant else 1.0


def permutation_test(first: ArrayLike, second: ArrayLike, samples: int = 9999, seed: int = 0) -> float:
    """Compute p of the two-sided paired permutation test of equal means, such as accuracies over seeds or folds.

    The signs of the differences are flipped in all 2^N ways if there are at most `samples`, else in random ways. For
    answers (0 and 1), all ways give the p of the exact McNemar test.

    Args:
        first: (N,) values of one system on independent items.
        second: (N,) values of the other system on the same items.
        samples: maximum number of ways.
        seed: seed of the random ways.

    >>> permutation_test([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1])
    0.21875
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    differences = differences[differences != 0]  # flipping the sign of 0 has no effect
    if len(differences) < 2:
        return 1.0
    result = permuted(
        (differences,), np.sum, permutation_type="samples", n_resamples=samples, vectorized=True, rng=seed
    )
    return float(result.pvalue)


def group_intervals(
    values: ArrayLike,
    groups: ArrayLike,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> list[tuple[float, float]]:
    """Compute intervals of means over items that are dependent within groups, such as queries with the same answer.

    The variance of a mean is that of the sums of the groups' deviations, and at least that of independent items; both
    it and the degrees of freedom of Student's t are those of `SharedStories` for groups. Between bounds, the interval
    is the score interval for the number of independent 0/1 values with the same variance. If all values are equal,
    their groups count as single observations. With a single group an interval is the bounds.

    Args:
        values: (N, K) numbers within the bounds, with one column for each mean.
        groups: (N,) group of each item.
        confidence: confidence level.
        bounds: smallest and largest possible value; without bounds (infinite), the interval is Student's t-interval.

    Returns:
        Interval of each of the K means.

    Source: Bell and McCaffrey (2002), variance and degrees of freedom for few groups, here with the jackknife's
    weights; Korn and Graubard (1998), effective sample size; Wilson (1927). benchmarks/significance.py compares it with
    the bootstraps of Cameron, Gelbach and Miller (2008).

    >>> ends = group_intervals([[0.0], [0.0], [1.0], [1.0], [1.0], [1.0]], [0, 0, 1, 1, 2, 2])
    >>> [round(end, 2) for end in ends[0]]  # three groups, not six items
    [0.04, 0.99]
    """
    numbers = np.asarray(values, dtype=np.float64)
    group_of = _numbered(groups)
    sizes = np.bincount(group_of)
    n = len(numbers)
    if len(sizes) < 2:
        return [bounds] * numbers.shape[1]
    weights = 1 / (1 - sizes / n) ** 2
    expected = weights @ (sizes - sizes**2 / n)
    norm = weights**2 @ (sizes**2 - 2 * sizes**3 / n) + (weights @ sizes**2 / n) ** 2
    degrees_of_freedom = float(expected**2 / norm)
    quantile = float(t.isf((1 - confidence) / 2, degrees_of_freedom))
    means = numbers.mean(axis=0)
    deviations = numbers - means
    sums = np.zeros((len(sizes), numbers.shape[1]))
    np.add.at(sums, group_of, deviations)
    variances = np.maximum(weights @ sums**2 / expected, (deviations**2).sum(axis=0) / (n - 1)) / n
    are_equal = np.ptp(numbers, axis=0) <= 1e-12 * np.abs(means)  # up to rounding
    intervals = []
    for mean, variance, is_equal in zip(means.tolist(), variances.tolist(), are_equal.tolist(), strict=True):
        if np.isinf(bounds).any():
            margin = math.inf if is_equal else quantile * math.sqrt(variance)
            intervals.append((mean - margin, mean + margin))
            continue
        low, width = bounds[0], bounds[1] - bounds[0]
        share = (mean - low) / width
        effective_n = degrees_of_freedom + 1 if is_equal else share * (1 - share) * width**2 / variance
        score_low, score_high = _score_interval(share, effective_n, quantile)
        intervals.append((low + width * score_low, low + width * score_high))
    return intervals


def _numbered(groups: ArrayLike) -> IntArray:
    """Renumber the groups of items (N,) from 0, without gaps."""
    _, numbers = np.unique(np.asarray(groups), return_inverse=True)
    return numbers


def group_permutation_test(first: ArrayLike, second: ArrayLike, groups: ArrayLike) -> float:
    """Compute p of the two-sided paired permutation test of equal means over items that are dependent within groups.

    The signs of the differences are flipped for whole groups (see `permutation_test`).

    Args:
        first: (N,) values of one system.
        second: (N,) values of the other system on the same items.
        groups: (N,) group of each item.

    >>> group_permutation_test([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 2, 2])
    0.5
    """
    group_of = _numbered(groups)
    sums = np.bincount(group_of, np.asarray(first, dtype=np.float64))
    other_sums = np.bincount(group_of, np.asarray(second, dtype=np.float64))
    return permutation_test(sums, other_sums)


class SharedStories:
    """Dependence of N triples that share stories.

    A story that misleads a system does so in all of its triples. The variance of a sum over triples therefore includes,
    besides the squared deviations from the mean, the products of the deviations of every two triples that share a
    story. Triples without a common story count as independent, even if other triples connect them.

    A product has the weight 1 / (1 - h)^2, where h is the share of the triples that contain the common story: a story
    in many triples shifts the mean toward these triples, which makes their deviations smaller.

    Args:
        stories: (N, K) story indices of each triple.

    Attributes:
        num_triples: number N of triples.
        num_sharing: number of triples that share a story with another triple.
        degrees_of_freedom: degrees of freedom of the variance; 0 if the triples share too many stories for a test.

    Source: Fafchamps and Gubert (2007) and Aronow, Samii and Assenova (2015), variance of observations that share
    members; Bell and McCaffrey (2002), degrees of freedom; MacKinnon, Nielsen and Webb (2023), weights.

    >>> shared = SharedStories([[0, 1, 2], [0, 3, 4], [5, 6, 7], [5, 8, 9], [10, 11, 12], [10, 13, 14]])
    >>> shared.num_sharing, round(shared.degrees_of_freedom, 6)  # three pairs
    (6, 2.0)
    """

    def __init__(self, stories: ArrayLike) -> None:
        rows = np.asarray(stories, dtype=np.int64).tolist()
        triples_by_story: dict[int, list[int]] = defaultdict(list)
        for triple, row in enumerate(rows):
            for story in set(row):
                triples_by_story[story].append(triple)
        triples_of_stories = list(triples_by_story.values())
        sharing: set[int] = set()
        for triples in triples_of_stories:
            if len(triples) > 1:
                sharing.update(triples)
        self.num_triples = len(rows)
        self.num_sharing = len(sharing)
        self.degrees_of_freedom = 0.0
        # The effect of a story that is in all triples can't be estimated.
        if self.num_triples > 1 and max(map(len, triples_of_stories)) < self.num_triples:
            self._set_weights(triples_of_stories)

    def _set_weights(self, triples_of_stories: Sequence[Sequence[int]]) -> None:
        """Compute the weights of pairs of triples that share a story, and the degrees of freedom."""
        n = self.num_triples
        weights = _pair_weights(triples_of_stories, n)
        # With weights W and the centering matrix H, the expected weighted sum of products is the trace of H W H if
        # deviations are independent with variance 1. The squared norm of H W H gives the degrees of freedom.
        sums = weights.sum(axis=1)
        mean_sum = sums.sum() / n
        expected = float(weights.trace() - mean_sum)
        norm = weights.power(2).sum() - 2 * np.square(sums).sum() / n + mean_sum**2
        if expected > 1e-9 * n:
            self.degrees_of_freedom = float(expected**2 / norm)
        self._weights, self._expected = weights, expected

    def design_effect(self, values: ArrayLike) -> float:
        """Compute the factor, at least 1, by which shared stories increase the variance of the mean of N values.

        N divided by this factor is the effective number of triples. If all values are equal, their dependence can't be
        estimated, and is assumed to be complete.
        """
        numbers = np.asarray(values, dtype=np.float64)
        deviations = numbers - numbers.mean()
        if np.ptp(numbers) == 0:
            return self.num_triples / (self.degrees_of_freedom + 1)
        variance = deviations @ (self._weights @ deviations) / self._expected
        variance_if_independent = deviations @ deviations / (self.num_triples - 1)
        return max(1.0, float(variance / variance_if_independent))


def _pair_weights(triples_of_stories: Sequence[Sequence[int]], n: int) -> csr_array:
    """Compute the sparse weights (N, N) of pairs of triples that share a story, including each triple with itself.

    A pair with two common stories has the weight of the more frequent story.

    Args:
        triples_of_stories: triples of each story.
        n: number N of triples.
    """
    cells, weights = [], []
    for triples in sorted(triples_of_stories, key=len, reverse=True):
        numbers = np.array(triples)
        story_cells = (numbers[:, None] * n + numbers).ravel()  # row times N plus column
        share = len(triples) / n
        cells.append(story_cells)
        weights.append(np.full(len(story_cells), 1 / (1 - share) ** 2))
    distinct_cells, first = np.unique(np.concatenate(cells), return_index=True)
    values = np.concatenate(weights)[first]
    rows, columns = np.divmod(distinct_cells, n)
    return csr_array((values, (rows, columns)), shape=(n, n))


def mcnemar_by_story(first: ArrayLike, second: ArrayLike, shared: SharedStories) -> float:
    """Compute p of the two-sided McNemar test of two systems on the same triples, some of which share stories.

    McNemar's statistic, (won - lost) / sqrt(won + lost), is divided by the square root of the design effect and
    compared with Student's t. p is at least that of the exact test, and equal to it without shared stories. If the
    triples allow no test, p is 1.

    Args:
        first: (N,) bool, True where one system answers correctly.
        second: (N,) bool, True where the other system answers correctly.
        shared: stories that the triples share.

    Source: Obuchowski (1998) and Durkalski et al. (2003), McNemar's test with a variance of dependent answers.
    """
    first_correct, second_correct = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    exact = mcnemar(first_correct.tolist(), second_correct.tolist())
    return _p_by_story(first_correct.astype(np.float64) - second_correct, exact, shared)


def permutation_test_by_story(first: ArrayLike, second: ArrayLike, shared: SharedStories) -> float:
    """Compute p of the two-sided paired test of equal means on triples, some of which share stories.

    The same as `mcnemar_by_story`, for graded values such as the number of seeds that answer a triple correctly: p is
    at least that of the permutation test, and equal to it without shared stories.

    Args:
        first: (N,) values of one system.
        second: (N,) values of the other system on the same triples.
        shared: stories that the triples share.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return _p_by_story(differences, permutation_test(differences, np.zeros_like(differences)), shared)


def _p_by_story(differences: DoubleArray, p_if_independent: float, shared: SharedStories) -> float:
    """Compute p of a mean difference (N,) of zero, by Student's t; at least that for independent triples."""
    if not shared.num_sharing or p_if_independent == 1:
        return p_if_independent
    if not shared.degrees_of_freedom:
        return 1.0
    variance = differences @ differences * shared.design_effect(differences)
    statistic = abs(differences.sum()) / np.sqrt(variance)
    p = 2 * t.sf(statistic, shared.degrees_of_freedom)
    return max(float(p), p_if_independent)


def interval_by_story(correct: ArrayLike, shared: SharedStories, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the score interval of an accuracy on triples, some of which share stories.

    It is Wilson's interval with the effective number of triples and Student's t; without shared stories, it is Wilson's
    interval. If the triples allow no test, it is (0, 1).

    Args:
        correct: (N,) True for correct answers, or the share of several seeds that answer correctly; the interval of
            such a mean is as wide as that of one seed.
        shared: stories that the triples share.
        confidence: confidence level.

    Source: Korn and Graubard (1998), effective sample size and t; Kott and Carr (1997), with Wilson's interval.
    """
    values = np.asarray(correct, dtype=np.float64)
    if not shared.num_sharing:
        return _score_interval(float(values.mean()), len(values), float(ndtri((1 + confidence) / 2)))
    if not shared.degrees_of_freedom:
        return 0.0, 1.0
    effective_n = len(values) / shared.design_effect(values)
    quantile = float(t.isf((1 - confidence) / 2, shared.degrees_of_freedom))
    return _score_interval(float(values.mean()), effective_n, quantile)


def _score_interval(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Compute Wilson's interval of a share, for a number of observations that can be fractional."""
    spread = quantile**2 / n
    center = (share + spread / 2) / (1 + spread)
    variance = share * (1 - share) + spread / 4
    margin = np.sqrt(spread * variance) / (1 + spread)
    return max(0.0, float(center - margin)), min(1.0, float(center + margin))


def difference_interval(
    accuracy: float, n: int, other: float, other_n: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Compute the interval of the difference of two accuracies, the first minus the second, for independent answers.

    Answers to the same triples are rarely independent, because the same triples tend to be hard for both systems. The
    interval is then wider than necessary.

    Args:
        accuracy: accuracy of one system, from 0 to 1.
        n: number of triples of this system.
        other: accuracy of the other system.
        other_n: number of triples of the other system.
        confidence: confidence level.

    Source: Newcombe (1998), method 10.

    >>> [round(end, 4) for end in difference_interval(56 / 70, 70, 48 / 80, 80)]
    [0.0524, 0.3339]
    """
    _refuse_none(n, other_n)
    quantile = float(ndtri((1 + confidence) / 2))
    low, high = _score_interval(accuracy, n, quantile)
    other_low, other_high = _score_interval(other, other_n, quantile)
    difference = accuracy - other
    margin_below = np.hypot(accuracy - low, other_high - other)
    margin_above = np.hypot(high - accuracy, other - other_low)
    return float(difference - margin_below), float(difference + margin_above)


def fisher(correct: int, n: int, other: int, other_n: int) -> float:
    """Compute p of Fisher's exact two-sided test of two accuracies, for independent answers (Fisher 1935).

    Answers to the same triples are rarely independent; where they are known, `mcnemar` pairs them.

    Args:
        correct: number of right answers of one system.
        n: number of triples of this system.
        other: number of right answers of the other system.
        other_n: number of triples of the other system.

    >>> round(fisher(3, 4, 1, 4), 3)  # the lady tasting tea: 34 of 70 ways are at least as uneven
    0.486
    """
    _refuse_none(n, other_n)
    return float(fisher_exact([[correct, n - correct], [other, other_n - other]]).pvalue)


def _refuse_none(*numbers: int) -> None:
    """Raise DataError if a system has no triples."""
    for n in numbers:
        if n < 1:
            raise DataError("no_triple_to_compare", triples=n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p of several comparisons to control the family-wise error rate (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    non_decreasing = np.maximum.accumulate(values[order] * factors)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(non_decreasing, 1)
    p_of_comparisons: list[float] = adjusted.tolist()
    return p_of_comparisons


def smallest_difference(
    n: int,
    discordant_share: float = TYPICAL_DISCORDANCE,
    alpha: float = 0.05,
    design_effect: float = 1.0,
    degrees_of_freedom: float = math.inf,
) -> float:
    """Compute the smallest observed difference of two paired accuracies, from 0 to 1, for which p is below alpha.

    p is that of the exact McNemar test (McNemar 1947), for triples that share stories that of `mcnemar_by_story`. It
    depends on how many triples only one of the systems answers correctly. If these are too few for any p below alpha,
    the smallest sufficient number is taken; infinite if all n triples do not suffice.

    Args:
        n: number of triples.
        discordant_share: share of the triples that only one of the systems answers correctly.
        alpha: level of the two-sided test.
        design_effect: factor by which shared stories increase the variance of the difference.
        degrees_of_freedom: degrees of freedom of Student's t; infinite for triples that share no stories.

    >>> [smallest_difference(200, share) for share in (1 / 3, 0.1)]  # 17 of 67 and 10 of 20 triples
    [0.085, 0.05]
    """
    is_by_story = math.isfinite(degrees_of_freedom)
    quantile = float(t.isf(alpha / 2, degrees_of_freedom)) * math.sqrt(design_effect) if is_by_story else 0.0
    for discordant in range(max(1, round(n * discordant_share)), n + 1):
        won = int(binom.isf(alpha / 2, discordant, 0.5)) + 1
        # won - lost is even or odd, as the number of discordant triples is.
        won = max(won, math.ceil((discordant + quantile * math.sqrt(discordant)) / 2))
        if won <= discordant:
            return (2 * won - discordant) / n
    return math.inf


def seed_spread(values: Sequence[float]) -> tuple[float, float]:
    """Compute mean and sample standard deviation of results over seeds; the deviation of one result is NaN.

    >>> mean, deviation = seed_spread([0.55, 0.57, 0.59])
    >>> round(mean, 3), round(deviation, 3)
    (0.57, 0.02)
    """
    numbers = np.asarray(values, dtype=np.float64)
    deviation = float(numbers.std(ddof=1)) if len(numbers) > 1 else float("nan")
    return float(numbers.mean()), deviation


def p_text(p: float | None) -> str:
    """Format p; None means that scores are NaN."""
    if p is None:
        return "p unknown"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
