"""Accuracies with intervals, and tests of the difference of two systems on the same triples."""

import math
from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import ndtri
from scipy.stats import binomtest, bootstrap, fisher_exact, t
from scipy.stats import permutation_test as permuted

from narrlit.data.schema import IntArray

TYPICAL_DISCORDANCE = 1 / 3
"""Default share of triples that only one of two systems answers correctly."""
RESAMPLES_PER_BLOCK = 1000
FloatArray = NDArray[np.float64]


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


class AccuracyRecord(TypedDict):
    """JSON values of an accuracy; `accuracy` and `interval` are None if `undefined` triples have NaN scores."""

    n: int
    correct: int
    accuracy: float | None
    interval: list[float] | None
    ties: int
    undefined: NotRequired[int]


@dataclass(frozen=True, slots=True)
class AccuracySummary:
    """Accuracy on n triples with its 95 % confidence interval.

    Ties are equal scores, which count as answer B. If any score is undefined (NaN), there is no accuracy.

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
        """Share of correct answers, from 0 to 1; NaN if undefined."""
        return self.correct / self.n if self.known else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % confidence interval; (0, 1) if undefined."""
        return wilson_interval(self.correct, self.n) if self.known else (0.0, 1.0)

    def as_dict(self) -> AccuracyRecord:
        """Convert to JSON values; an undefined accuracy is None."""
        values: AccuracyRecord = {
            "n": self.n,
            "correct": self.correct,
            "accuracy": self.accuracy if self.known else None,
            "interval": list(self.interval) if self.known else None,
            "ties": self.ties,
        }
        if self.undefined:
            values["undefined"] = self.undefined
        return values

    def __str__(self) -> str:
        if not self.n:
            return "no triples"
        if self.undefined:
            return f"undefined: {self.undefined} of {self.n} triples have a NaN score"
        low, high = self.interval
        ties = f", {self.ties} {'tie' if self.ties == 1 else 'ties'}" if self.ties else ""
        return f"{self.accuracy:.3f} [{low:.3f}, {high:.3f}] ({self.correct} of {self.n}{ties})"


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
    return _sign_test(only_first, only_second)


def _sign_test(won: int, lost: int) -> float:
    """Compute p of the exact two-sided sign test; 1 without items."""
    return float(binomtest(won, won + lost, 0.5).pvalue) if won + lost else 1.0


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


def bootstrap_interval(
    values: ArrayLike, confidence: float = 0.95, samples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Compute the percentile bootstrap interval of the mean of independent values, such as reciprocal ranks.

    With fewer than two values it is (0, 1); if all values are 1, or all are 0, it is Wilson's interval.

    Args:
        values: (N,) numbers from 0 to 1.
        confidence: confidence level.
        samples: number of resamples.
        seed: seed of the resamples.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) < 2:
        return 0.0, 1.0
    if numbers.sum() in (0, len(numbers)):  # every resample is the same
        return wilson_interval(int(numbers.sum()), len(numbers), confidence)
    interval = bootstrap(
        (numbers,),
        np.mean,
        n_resamples=samples,
        batch=1000,
        confidence_level=confidence,
        method="percentile",
        rng=seed,
    ).confidence_interval
    return float(interval.low), float(interval.high)


def group_bootstrap_intervals(
    values: ArrayLike, groups: ArrayLike, confidence: float = 0.95, samples: int = 10_000, seed: int = 0
) -> list[tuple[float, float]]:
    """Compute percentile bootstrap intervals of means over items that are dependent within groups.

    Whole groups are drawn with replacement. With a single group an interval is (0, 1); if all values are 1, or all are
    0, it is Wilson's interval for the number of groups.

    Args:
        values: (N, K) numbers from 0 to 1, with one column for each mean.
        groups: (N,) group of each item.
        confidence: confidence level.
        samples: number of resamples.
        seed: seed of the resamples.

    Returns:
        Interval of each of the K means.

    Source: Cameron, Gelbach and Miller (2008), pairs cluster bootstrap.

    >>> ends = group_bootstrap_intervals([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1])
    >>> [round(end, 2) for end in ends[0]]  # two groups, not four items
    [0.0, 1.0]
    """
    numbers = np.asarray(values, dtype=np.float64)
    group_of = _numbered(groups)
    sizes = np.bincount(group_of)
    num_groups = len(sizes)
    if num_groups < 2:
        return [(0.0, 1.0)] * numbers.shape[1]
    sums = np.zeros((num_groups, numbers.shape[1]))
    np.add.at(sums, group_of, numbers)
    tail = (1 - confidence) / 2
    means = _resampled_means(sums, sizes, samples, seed)
    lows, highs = np.quantile(means, (tail, 1 - tail), axis=0).tolist()
    intervals = list(zip(lows, highs, strict=True))
    for column, total in enumerate(numbers.sum(axis=0)):
        if total in (0, len(numbers)):  # every resample is the same
            num_ones = num_groups if total else 0
            intervals[column] = wilson_interval(num_ones, num_groups, confidence)
    return intervals


def _numbered(groups: ArrayLike) -> IntArray:
    """Renumber the groups of items (N,) from 0, without gaps."""
    _, numbers = np.unique(np.asarray(groups), return_inverse=True)
    return numbers


def _resampled_means(sums: FloatArray, sizes: IntArray, samples: int, seed: int) -> FloatArray:
    """Compute the means (B, K) of resamples of G groups.

    Args:
        sums: (G, K) sums of the values in each group.
        sizes: (G,) number of items in each group.
        samples: number B of resamples.
        seed: seed of the resamples.
    """
    generator = np.random.default_rng(seed)
    probabilities = np.full(len(sizes), 1 / len(sizes))
    blocks = []
    for start in range(0, samples, RESAMPLES_PER_BLOCK):
        block_size = min(RESAMPLES_PER_BLOCK, samples - start)
        counts = generator.multinomial(len(sizes), probabilities, size=block_size)  # how often each group is drawn
        totals, num_items = counts @ sums, counts @ sizes
        blocks.append(totals / num_items[:, None])
    return np.concatenate(blocks)


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
    if not shared.num_sharing or exact == 1:
        return exact
    if not shared.degrees_of_freedom:
        return 1.0
    differences = first_correct.astype(np.float64) - second_correct
    variance = np.count_nonzero(differences) * shared.design_effect(differences)
    statistic = abs(differences.sum()) / np.sqrt(variance)
    p = 2 * t.sf(statistic, shared.degrees_of_freedom)
    return max(float(p), exact)


def interval_by_story(correct: ArrayLike, shared: SharedStories, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the score interval of an accuracy on triples, some of which share stories.

    It is Wilson's interval with the effective number of triples and Student's t; without shared stories, it is Wilson's
    interval. If the triples allow no test, it is (0, 1).

    Args:
        correct: (N,) bool, True for correct answers.
        shared: stories that the triples share.
        confidence: confidence level.

    Source: Korn and Graubard (1998), effective sample size and t; Kott and Carr (1997), with Wilson's interval.
    """
    values = np.asarray(correct, dtype=np.float64)
    if not shared.num_sharing:
        return wilson_interval(int(values.sum()), len(values), confidence)
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
    return float(fisher_exact([[correct, n - correct], [other, other_n - other]]).pvalue)


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
    n: int, discordant_share: float = TYPICAL_DISCORDANCE, power: float = 0.5, alpha: float = 0.05
) -> float:
    """Compute the smallest difference of two paired accuracies, from 0 to 1, that is significant on n triples.

    With power 0.5, it is the observed difference for which p equals alpha; smaller differences are not significant. A
    true difference must be 1.4 times as large to be detected with power 0.8.

    Args:
        n: number of triples.
        discordant_share: share of the triples that only one of the systems answers correctly.
        power: probability of detecting a true difference of this size.
        alpha: level of the two-sided test.

    Source: Connor (1987), normal approximation of the McNemar test, solved for the difference.

    >>> [round(smallest_difference(n), 3) for n in (200, 400)]
    [0.08, 0.057]
    """
    quantile_of_level, quantile_of_power = ndtri(1 - alpha / 2), ndtri(power)

    def excess(difference: float) -> float:
        """Compute the excess of a difference over the smallest significant one, times the square root of n."""
        share = max(discordant_share, difference)  # at least the difference itself
        critical = quantile_of_level * np.sqrt(share)
        margin = quantile_of_power * np.sqrt(share - difference**2)
        return float(difference * np.sqrt(n) - critical - margin)

    return float(brentq(excess, 1 / n, 1)) if excess(1) > 0 else 1.0


def seed_spread(values: Sequence[float]) -> tuple[float, float]:
    """Compute mean and sample standard deviation of results over seeds; the deviation of one result is NaN.

    >>> mean, deviation = seed_spread([0.55, 0.57, 0.59])
    >>> round(mean, 3), round(deviation, 3)
    (0.57, 0.02)
    """
    numbers = np.asarray(values, dtype=np.float64)
    deviation = float(numbers.std(ddof=1)) if len(numbers) > 1 else float("nan")
    return float(numbers.mean()), deviation


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Comparison of two systems by their answers to the same triples.

    Attributes:
        difference: difference of the accuracies, first minus second, from -1 to 1; NaN if a system has no answers.
        lost: number of triples that only the second system answers correctly.
        won: number of triples that only the first system answers correctly.
        p: p-value of the exact McNemar test; NaN if a system has no answers.

    >>> print(PairedComparison(difference=0.1, lost=1, won=20, p=1e-5))
    1 lost, 20 won, p < 0.001
    """

    difference: float
    lost: int
    won: int
    p: float

    @property
    def known(self) -> bool:
        """True if both systems have answers."""
        return not math.isnan(self.difference)

    def as_dict(self) -> dict[str, float | None]:
        """Convert to JSON values, which are all None if a system has no answers."""
        values = asdict(self)
        return values if self.known else dict.fromkeys(values)

    def __str__(self) -> str:
        """Counts and p in one line."""
        return f"{self.lost} lost, {self.won} won, {p_text(self.p if self.known else None)}"


WITHOUT_ANSWERS = PairedComparison(difference=math.nan, lost=0, won=0, p=math.nan)
"""Comparison with a system whose scores are NaN."""


def paired(wrong: Set[object] | None, other: Set[object] | None, n: int) -> PairedComparison:
    """Compare two systems on n triples by their wrong answers.

    Args:
        wrong: triples that the first system answers incorrectly; None if it has no answers (NaN).
        other: triples that the second system answers incorrectly; None likewise.
        n: number of triples.

    >>> paired({1, 2}, {2, 3, 4}, n=10)
    PairedComparison(difference=0.1, lost=1, won=2, p=1.0)
    """
    if wrong is None or other is None:
        return WITHOUT_ANSWERS
    lost, won = len(wrong - other), len(other - wrong)
    return PairedComparison((won - lost) / n, lost, won, p=_sign_test(won, lost))


def p_text(p: float | None) -> str:
    """Format p; None means that scores are NaN."""
    if p is None:
        return "p unknown"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
