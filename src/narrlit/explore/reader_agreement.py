"""Agreement of readers who decided on the same pairs.

Letters in shapes: N pairs, L labels, B resamples.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.console import counted
from narrlit.data.schema import IntArray
from narrlit.explore.pair_decisions import Decision, PairDecision, StoryPair
from narrlit.optional import require

SAMPLES = 10_000
"""Resamples of the pairs, by which the interval is computed."""
LABELS: tuple[Decision, ...] = get_args(Decision)


@dataclass(frozen=True, eq=False)
class ReaderAgreement:
    """Agreement of readers: Krippendorff's alpha of nominal labels.

    Alpha is 1 for perfect agreement and 0 for that of chance. `unsure` is a label like the others.

    Attributes:
        readers: names of all readers.
        pairs: number of pairs that two or more readers decided.
        equal: number of these on which all their readers decided the same.
        alpha: Krippendorff's alpha; None: it is undefined, since no pair has two readers, or all decisions are equal.
        low: lower end of the 95 % bootstrap interval over pairs; None: undefined.
        high: upper end; None: undefined.
        decisions: decisions by pair and reader, of the pairs with two or more readers.
    """

    readers: Sequence[str]
    pairs: int
    equal: int
    alpha: float | None
    low: float | None
    high: float | None
    decisions: Sequence[PairDecision]

    @property
    def record(self) -> dict[str, object]:
        """The figures as plain data."""
        figures = asdict(self)
        del figures["decisions"]
        return figures

    def table(self) -> pd.DataFrame:
        """Tabulate pairs with two or more readers: id_a, id_b, the decision of each reader, and `equal`."""
        labels_of: dict[StoryPair, dict[str, str]] = {}
        for made in self.decisions:
            labels_of.setdefault(made.pair, {})[made.reader] = made.decision
        rows = []
        for pair, labels in labels_of.items():
            is_equal = len(set(labels.values())) == 1
            rows.append({"id_a": pair.a, "id_b": pair.b, **labels, "equal": is_equal})
        return pd.DataFrame(rows, columns=["id_a", "id_b", *self.readers, "equal"])

    def __str__(self) -> str:
        """One sentence: readers, pairs, alpha with its interval."""
        if not self.pairs:
            return "Agreement of readers: unknown, since no pair was decided by two readers."
        shared = f"{counted(self.pairs, 'pair')} with two or more readers, {self.equal:,} decided alike by all"
        if self.alpha is None or self.low is None or self.high is None:
            return f"Agreement of readers: {shared}; alpha is undefined where all decisions are equal."
        interval = f"[{self.low:.3f}, {self.high:.3f}]"
        return f"Agreement of readers: Krippendorff's alpha {self.alpha:.3f} {interval}; {shared}."


def reader_agreement(decisions: Iterable[PairDecision], seed: int = 0) -> ReaderAgreement:
    """Measure the agreement of readers who decided on the same pairs: Krippendorff's alpha of nominal labels.

    Args:
        decisions: decisions, such as a `PairDecisions` or those that `read_decisions` returns.
        seed: seed of the bootstrap.

    Returns:
        A `ReaderAgreement`: `.alpha`, `.low`, `.high`, `.table()`.

    Raises:
        MissingExtraError: if nltk is not installed.

    Source: Krippendorff (2018), "Content analysis", chapter 12; the interval is the percentile bootstrap over pairs.

    >>> labels = {"anna": ["same", "same", "different", "unsure"], "ben": ["same", "same", "different", "same"]}
    >>> made = []
    >>> for reader, values in labels.items():
    ...     made += [PairDecision(StoryPair("a", str(n)), value, reader) for n, value in enumerate(values)]
    >>> round(reader_agreement(made).alpha, 3)
    0.588
    """
    all_decisions = list(decisions)
    num_readers = Counter(made.pair for made in all_decisions)
    shared = [made for made in all_decisions if num_readers[made.pair] > 1]
    counts = _label_counts(shared)
    alpha, low, high = None, None, None
    if np.count_nonzero(counts.sum(axis=0)) > 1:
        agreement = require("nltk.metrics.agreement", "explore")
        task = agreement.AnnotationTask([(made.reader, made.pair, made.decision) for made in shared])
        alpha = float(task.alpha())
        low, high = _bootstrap_interval(counts, seed)
    return ReaderAgreement(
        readers=sorted({made.reader for made in all_decisions}),
        pairs=len(counts),
        equal=int((np.count_nonzero(counts, axis=1) == 1).sum()),
        alpha=alpha,
        low=low,
        high=high,
        decisions=shared,
    )


def _label_counts(decisions: Sequence[PairDecision]) -> IntArray:
    """Count the labels of each pair, (N, L)."""
    row_of: dict[StoryPair, int] = {}
    for made in decisions:
        row_of.setdefault(made.pair, len(row_of))
    counts = np.zeros((len(row_of), len(LABELS)), dtype=np.int64)
    for made in decisions:
        counts[row_of[made.pair], LABELS.index(made.decision)] += 1
    return counts


def _bootstrap_interval(counts: IntArray, seed: int) -> tuple[float, float]:
    """Compute the 95 % percentile interval of alpha over resamples of the pairs, from label counts (N, L)."""
    probabilities = np.full(len(counts), 1 / len(counts))
    weights = np.random.default_rng(seed).multinomial(len(counts), probabilities, size=SAMPLES)
    low, high = np.quantile(nominal_alphas(counts, weights), (0.025, 0.975))
    return float(low), float(high)


def nominal_alphas(counts: IntArray, weights: IntArray) -> NDArray[np.float64]:
    """Compute Krippendorff's alpha (B,) of resamples; 1 for a resample in which all labels are equal.

    Args:
        counts: (N, L) numbers of readers who gave a pair each label, two or more readers for each pair.
        weights: (B, N) numbers of times that each pair is in a resample.
    """
    readers = counts.sum(axis=1)
    # Ordered pairs of readers with different labels, over the number of other readers.
    differing = (readers**2 - (counts**2).sum(axis=1)) / (readers - 1)
    observed = weights @ differing
    labels = weights @ counts
    total = labels.sum(axis=1)
    expected = (total**2 - (labels**2).sum(axis=1)) / (total - 1)
    disagreement = np.zeros(len(weights))
    np.divide(observed, expected, out=disagreement, where=expected > 0)
    return 1 - disagreement
