"""Versions of a story in a collection, which have the same value in a column, and permutation tests of confounds.

Letters in shapes: N stories, Q stories with another version, P pairs of versions, S permutations.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from narrlit.data.schema import IntArray
from narrlit.statistics.diagnostics import log_lengths
from narrlit.statistics.estimates import Difference, Estimate

PERMUTATIONS = 999
LENGTH_STRATA = 5
"""Number of strata of about equal size, by length."""


@dataclass(frozen=True, eq=False)
class Versions:
    """Stories of which those with the same value are versions of each other.

    Attributes:
        values: (N,) value of each story, such as tale type, work or author; None if it is unknown, and the story has no
            other versions.

    >>> versions = Versions(["510A", "300", None, "510A"])
    >>> versions.queries.tolist(), versions.partners(0).tolist()
    ([0, 3], [3])
    """

    values: Sequence[Hashable | None]

    @cached_property
    def numbers(self) -> IntArray:
        """Number of each story's value (N,), from 0; -1 if it is unknown."""
        known = [value for value in self.values if value is not None]
        number_of = _numbered(known)
        return np.array([number_of.get(value, -1) for value in self.values])

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Rows of each story (P,) and of its other versions (P,), by story; each pair in both directions."""
        rows_by_number: dict[int, list[int]] = defaultdict(list)
        for row, number in enumerate(self.numbers.tolist()):
            rows_by_number[number].append(row)
        first: list[int] = []
        second: list[int] = []
        for row, number in enumerate(self.numbers.tolist()):
            if number < 0:
                continue
            for other in rows_by_number[number]:
                if other != row:
                    first.append(row)
                    second.append(other)
        return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)

    @cached_property
    def queries(self) -> IntArray:
        """Rows of the stories with another version (Q,)."""
        first, _ = self.pairs
        return np.unique(first)

    @property
    def groups(self) -> IntArray:
        """Number of the value of each story with another version (Q,)."""
        return self.numbers[self.queries]

    def partners(self, row: int) -> IntArray:
        """Rows of a story's other versions."""
        first, second = self.pairs
        start, end = np.searchsorted(first, (row, row + 1))
        return np.asarray(second[start:end])

    def best_ranks(self, ranks: IntArray, rows: IntArray | None = None) -> IntArray:
        """Find the best rank of another version, for each of the Q stories that have one, (Q,).

        Args:
            ranks: (N, N) ranks of all stories (columns) for each story (rows), from 1.
            rows: (N,) permutation of the stories, for permuted values; None: not permuted.
        """
        first, second = self.pairs
        starts = np.searchsorted(first, self.queries)
        if rows is not None:
            first, second = rows[first], rows[second]
        best: IntArray = np.minimum.reduceat(ranks[first, second], starts)
        return best


@dataclass(frozen=True, eq=False)
class Strata:
    """Strata of stories, for example by book or by length.

    Attributes:
        name: name of the property that defines the strata.
        numbers: (N,) stratum of each story.
    """

    name: str
    numbers: IntArray

    @classmethod
    def of_values(cls, name: str, values: Sequence[Hashable | None]) -> "Strata":
        """Create a stratum for each value, and one for stories without a value."""
        values = list(values)  # an array makes a new NaN at each access
        number_of = _numbered(values)
        return cls(name, np.array([number_of[value] for value in values]))

    @classmethod
    def of_lengths(cls, texts: Sequence[str], count: int = LENGTH_STRATA) -> "Strata":
        """Divide texts by their number of words into strata of about equal size.

        >>> Strata.of_lengths(["a", "b b b", "c c", "d d d d"], count=2).numbers.tolist()
        [0, 1, 0, 1]
        """
        order = np.argsort(log_lengths(texts), kind="stable")
        numbers = np.empty(len(texts), dtype=np.int64)
        numbers[order] = np.arange(len(texts)) * count // len(texts)
        return cls("length", numbers)

    def movable(self, versions: Versions) -> int:
        """Count the stories whose value a permutation can change: those in a stratum with several values."""
        values_by_stratum: dict[int, list[int]] = defaultdict(list)
        for stratum, value in zip(self.numbers.tolist(), versions.numbers.tolist(), strict=True):
            if value >= 0:
                values_by_stratum[stratum].append(value)
        count = 0
        for values in values_by_stratum.values():
            if len(set(values)) > 1:
                count += len(values)
        return count

    def permutation(self, versions: Versions, generator: np.random.Generator) -> IntArray:
        """Permute the stories of each stratum at random; return the permuted rows (N,).

        Stories with an unknown value are not moved.
        """
        rows = np.arange(len(self.numbers))
        known = np.flatnonzero(versions.numbers >= 0)
        strata = self.numbers[known]
        by_stratum = known[np.argsort(strata, kind="stable")]
        shuffled = known[np.lexsort((generator.random(len(known)), strata))]
        rows[by_stratum] = shuffled
        return rows


def _numbered(values: Iterable[Hashable]) -> dict[Hashable, int]:
    """Number the distinct values from 0, in the order in which they first occur."""
    distinct = dict.fromkeys(values)
    return dict(zip(distinct, range(len(distinct)), strict=True))


def permuted_figures(
    ranks: IntArray, versions: Versions, strata: Strata, samples: int = PERMUTATIONS, seed: int = 0
) -> dict[str, tuple[Estimate, Difference]]:
    """Compute recall@1 and MRR for values permuted within strata, which shows the effect of the strata alone.

    If versions are found only because they are from the same book, the metrics are equally high for values that are
    permuted within books; likewise for strata of length.

    Args:
        ranks: (N, N) ranks of all stories (columns) for each story (rows), from 1, with the story itself last.
        versions: versions among the N stories.
        strata: strata of the N stories.
        samples: number of permutations.
        seed: seed of the permutations.

    Returns:
        By metric, the mean and the range of 95 % of the permutations, and the difference of this mean to the real
        values, with the probability p that a permutation is at least as high as they are.

    Source: Good (2005), "Permutation, parametric, and bootstrap tests of hypotheses", stratified permutation;
        Phipson and Smyth (2010), p = (exceeding + 1) / (samples + 1).
    """
    generator = np.random.default_rng(seed)
    drawn = np.empty((samples, 2))
    for sample in range(samples):
        rows = strata.permutation(versions, generator)
        drawn[sample] = _recall_and_mrr(versions.best_ranks(ranks, rows))
    n = len(versions.queries)
    figures = {}
    observed = _recall_and_mrr(versions.best_ranks(ranks))
    for metric, real, values in zip(("recall@1", "MRR"), observed, drawn.T, strict=True):
        mean, (low, high) = float(values.mean()), np.quantile(values, (0.025, 0.975)).tolist()
        exceeding = int((values >= real - 1e-12).sum())  # tolerance for rounding of equal means
        p = (exceeding + 1) / (samples + 1)
        permuted = Estimate(mean, low, high, n, "permutations")
        figures[metric] = permuted, Difference(mean - real, low - real, high - real, p, "permuted", n)
    return figures


def _recall_and_mrr(best: IntArray) -> tuple[float, float]:
    """Compute recall@1 and MRR from the best rank of each query (Q,)."""
    return float((best == 1).mean()), float((1 / best).mean())
