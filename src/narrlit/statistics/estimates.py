"""Means with intervals, and differences with tests: the data choose the method.

Letters in shapes: N items, K stories of an item.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import t

from narrlit.data.schema import IntArray
from narrlit.statistics.significance import (
    SharedStories,
    group_intervals,
    group_permutation_test,
    holm,
    interval_by_story,
    mcnemar,
    mcnemar_by_story,
    p_text,
    permutation_test,
    permutation_test_by_story,
    wilson_interval,
)

Row = dict[str, Any]
"""Row of a table of results, by column."""
Groups = SharedStories | ArrayLike | None
"""Dependence of N items: (N,) group of each item, such as the plot of a query; (N, K) numbers of its stories, or their
`SharedStories`; None: the items are independent."""
Method = Literal["wilson", "score", "by_story", "by_group", "bootstrap", "permutations", "none"]
Test = Literal[
    "mcnemar",
    "mcnemar_by_story",
    "permutation",
    "permutation_by_story",
    "permutation_by_group",
    "permuted",
    "fisher",
    "none",
]
SHARES = (0.0, 1.0)
"""Smallest and largest value of an answer, of a share, and of the metrics of a ranking."""


class Estimate(NamedTuple):
    """Mean over N items with its 95 % confidence interval.

    Attributes:
        value: mean; NaN if a value is NaN, or there are no items.
        low: lower end of the interval; NaN without one.
        high: upper end of the interval; NaN without one.
        n: number of items.
        method: method of the interval: Wilson's for independent right and wrong answers, the score interval for
            independent graded values, `by_story` for items that share stories, `by_group` for items in groups,
            `bootstrap` over factors of a design; `permutations`: range of 95 % of the permutations of `value`.

    >>> print(Estimate(0.55, 0.481, 0.617, 200, "wilson"))
    0.550 [0.481, 0.617], n = 200
    """

    value: float
    low: float
    high: float
    n: int
    method: Method = "none"

    @property
    def known(self) -> bool:
        """True if there is a value."""
        return not math.isnan(self.value)

    def row(self, system: str, metric: str = "accuracy", subset: str = "all", **others: object) -> Row:
        """Return a row of `Result.figures`; `others` are further columns."""
        return {"system": system, "subset": subset, "metric": metric, **self._asdict(), **others}

    def __str__(self) -> str:
        return f"{estimate_text(self.value, self.low, self.high)}, n = {self.n:,}"


class Difference(NamedTuple):
    """Difference of the means of two systems over the same N items, with its 95 % interval and a paired test.

    Attributes:
        value: mean of the system minus that of the other one; NaN if a value is NaN.
        low: lower end of the interval.
        high: upper end of the interval.
        p: p of the two-sided test.
        test: the test: McNemar's for right and wrong answers, a permutation test for graded values; `_by_story` if
            items share stories, `_by_group` if they are in groups; `permuted`: one-sided, against permuted values.
        n: number of items.
        lost: number of items that only the other system answers correctly; None for graded values.
        won: number of items that only the system answers correctly; None for graded values.
        design_effect: factor by which shared stories multiply the variance; None if no items share stories, or they
            allow no test.

    >>> print(Difference(0.1, 0.054, 0.146, 1e-5, "mcnemar", 200, lost=1, won=20))
    +0.100 [+0.054, +0.146], p < 0.001
    """

    value: float
    low: float
    high: float
    p: float
    test: Test
    n: int
    lost: int | None = None
    won: int | None = None
    design_effect: float | None = None

    @property
    def known(self) -> bool:
        """True if there is a value."""
        return not math.isnan(self.value)

    def row(self, system: str, against: str, metric: str = "accuracy", subset: str = "all", **others: object) -> Row:
        """Return a row of `Result.differences`; `others` are further columns."""
        return {"system": system, "against": against, "subset": subset, "metric": metric, **self._asdict(), **others}

    def __str__(self) -> str:
        return f"{estimate_text(self.value, self.low, self.high, '+')}, {p_text(self.p if self.known else None)}"


def estimate_text(
    value: float, low: float = math.nan, high: float = math.nan, sign: str = "", deviation: float = math.nan
) -> str:
    """Format a value with its standard deviation and interval, if it has them; `sign` is `+` for differences.

    >>> estimate_text(0.55, 0.481, 0.617), estimate_text(0.1), estimate_text(float("nan"))
    ('0.550 [0.481, 0.617]', '0.100', 'none')
    >>> estimate_text(0.55, 0.481, 0.617, deviation=0.02)
    '0.550 ± 0.020 [0.481, 0.617]'
    """
    if math.isnan(value):
        return "none"
    text = f"{value:{sign}.3f}"
    if not math.isnan(deviation):
        text += f" ± {deviation:.3f}"
    return text if math.isnan(low) else f"{text} [{low:{sign}.3f}, {high:{sign}.3f}]"


def estimate(values: ArrayLike, groups: Groups = None, bounds: tuple[float, float] = SHARES) -> Estimate:
    """Compute a mean with its 95 % interval, by the method that the data call for.

    Args:
        values: (N,) right answers (bool), or graded values within the bounds.
        groups: dependence of the items. With the stories of triples, graded values are shares of several seeds that
            answer correctly; the interval is then as wide as that of one seed.
        bounds: smallest and largest possible value; infinite bounds give Student's t-interval.

    >>> print(estimate([True] * 110 + [False] * 90))
    0.550 [0.481, 0.617], n = 200
    >>> estimate([1, 1, 1, 1, 0, 0], groups=[0, 0, 1, 1, 2, 2]).method
    'by_group'
    """
    numbers = np.asarray(values, dtype=np.float64)
    n = len(numbers)
    if not n or np.isnan(numbers).any():
        return Estimate(math.nan, math.nan, math.nan, n)
    mean = float(numbers.mean())
    shared, group_of = _dependence(groups)
    if shared is not None and shared.num_sharing:
        return Estimate(mean, *interval_by_story(numbers, shared), n, "by_story")
    if group_of is None and bounds == SHARES and _are_answers(numbers):
        return Estimate(mean, *wilson_interval(int(numbers.sum()), n), n, "wilson")
    if shared is not None:
        return Estimate(mean, *interval_by_story(numbers, shared), n, "score")
    independent = np.arange(n) if group_of is None else group_of
    (interval,) = group_intervals(numbers[:, None], independent, bounds=bounds)
    return Estimate(mean, *interval, n, "score" if len(np.unique(independent)) == n else "by_group")


def estimate_count(right: int, n: int) -> Estimate:
    """Compute an accuracy from the number of right answers to n independent items.

    >>> print(estimate_count(110, 200))
    0.550 [0.481, 0.617], n = 200
    """
    return estimate(np.arange(n) < right)


def difference(values: ArrayLike, against: ArrayLike, groups: Groups = None) -> Difference:
    """Compare the means of two systems over the same items, by the test that the data call for.

    The interval of right and wrong answers is that of Bonett and Price (2012), which adds one item that only one system
    answers correctly to each side; for shared stories its variance is multiplied by the design effect. p and interval
    are computed differently, so that an interval may end beyond 0 where p is just below 0.05, or the reverse.

    Args:
        values: (N,) right answers (bool) or graded values, from 0 to 1, of the system.
        against: (N,) those of the other system.
        groups: dependence of the items.

    Source: McNemar (1947); Bonett and Price (2012), "Adjusted Wald confidence interval for a difference of binomial
        proportions based on paired data".

    >>> print(difference([True] * 60 + [False] * 40, [True] * 40 + [False] * 60))
    +0.200 [+0.114, +0.278], p < 0.001
    """
    first, second = np.asarray(values, dtype=np.float64), np.asarray(against, dtype=np.float64)
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values can't be paired")
    differences = first - second
    n = len(differences)
    if not n or np.isnan(differences).any():
        return Difference(math.nan, math.nan, math.nan, math.nan, "none", n)
    mean = float(differences.mean())
    shared, group_of = _dependence(groups)
    if shared is not None and not shared.num_sharing:
        shared = None
    if group_of is not None:
        (interval,) = group_intervals(differences[:, None], group_of, bounds=(-1.0, 1.0))
        p = group_permutation_test(first, second, group_of)
        by_group: Test = "permutation_by_group" if len(np.unique(group_of)) < n else "permutation"
        return Difference(mean, *interval, p, by_group, n)
    interval = _paired_interval(differences, shared)
    testable = shared is not None and shared.degrees_of_freedom > 0
    effect = shared.design_effect(differences) if shared is not None and testable else None
    test: Test
    if _are_answers(first) and _are_answers(second):
        lost, won = int((differences < 0).sum()), int((differences > 0).sum())
        if shared is None:
            p, test = mcnemar((first > 0).tolist(), (second > 0).tolist()), "mcnemar"
        else:
            p, test = mcnemar_by_story(first, second, shared), "mcnemar_by_story"
        return Difference(mean, *interval, p, test, n, lost, won, effect)
    if shared is None:
        p, test = permutation_test(first, second), "permutation"
    else:
        p, test = permutation_test_by_story(first, second, shared), "permutation_by_story"
    return Difference(mean, *interval, p, test, n, design_effect=effect)


def _paired_interval(differences: NDArray[np.float64], shared: SharedStories | None) -> tuple[float, float]:
    """Compute the interval of the mean of differences from -1 to 1, of which some share stories."""
    quantile, effect = float(ndtri(0.975)), 1.0
    if shared is not None:
        if not shared.degrees_of_freedom:
            return -1.0, 1.0
        effect = max(1.0, shared.design_effect(differences))
        quantile = float(t.isf(0.025, shared.degrees_of_freedom))
    n = len(differences) + 2
    mean = float(differences.sum()) / n
    variance = (float(differences @ differences) + 2) / n - mean**2
    margin = quantile * math.sqrt(effect * variance / n)
    return max(-1.0, mean - margin), min(1.0, mean + margin)


def _are_answers(values: NDArray[np.float64]) -> bool:
    """Return True if all values are 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def _dependence(groups: Groups) -> tuple[SharedStories | None, IntArray | None]:
    """Return how items depend on each other: by shared stories, or by groups (N,); both None: they do not."""
    if groups is None:
        return None, None
    if not isinstance(groups, SharedStories):
        numbers = np.asarray(groups)
        if numbers.ndim == 1:
            return None, numbers
        groups = SharedStories(numbers)
    return groups, None


def adjusted(rows: Sequence[Row]) -> list[Row]:
    """Add `p_adjusted` to rows of differences: p, corrected for the systems compared with the same one (Holm 1979).

    Rows are corrected together if they have the same `against`, `subset` and `metric`.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, row in enumerate(rows):
        if not math.isnan(row["p"]):
            groups.setdefault((row["against"], row["subset"], row["metric"]), []).append(number)
    corrected = [math.nan] * len(rows)
    for numbers in groups.values():
        for number, p in zip(numbers, holm([rows[number]["p"] for number in numbers]), strict=True):
            corrected[number] = p
    return [row | {"p_adjusted": p} for row, p in zip(rows, corrected, strict=True)]
