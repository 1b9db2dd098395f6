"""Diagnostics of a similarity: whether it follows the length of stories, and whether a few stories are near to all.

Letters in shapes: N stories.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import pearsonr, skew

from narrlit.data.schema import Floats, IntArray
from narrlit.metrics.baselines import WORD

NEIGHBORS = 10
"""Nearest stories that are counted in the skewness of hubs."""
LARGE_CORRELATION = 0.3
"""Correlation with length from which a similarity is warned of: length explains a tenth of its variance."""
LARGE_SKEWNESS = 1.2
"""Skewness of hubs that is warned of, by the rule of thumb of scikit-hubness (Feldbauer et al. 2020)."""
LEVEL = 0.05
"""Largest p of a correlation that is warned of: of 24 stories, one of 0.3 is often chance."""


@dataclass(frozen=True)
class SimilarityDiagnostics:
    """Dependence of the similarities of N stories on length and hubs.

    Attributes:
        stories: N.
        length_correlation: Pearson correlation, -1 to 1, of a story's mean similarity to the others with its log number
            of words; None where all means or all lengths are equal.
        length_p: p of that correlation; None without it.
        hub_skewness: skewness of how often a story is among the ten nearest of others: about 0 where all are alike in
            this, large where a few stories are near to many; None where all are in as many.
    """

    stories: int
    length_correlation: float | None
    length_p: float | None
    hub_skewness: float | None

    @property
    def warnings(self) -> list[str]:
        """Warnings about large values, one sentence each."""
        lines = []
        correlation, p, skewness = self.length_correlation, self.length_p, self.hub_skewness
        if correlation is not None and p is not None and abs(correlation) > LARGE_CORRELATION and p < LEVEL:
            kind = "long" if correlation > 0 else "short"
            lines.append(
                f"Similarity follows length: {kind} stories are near to all others (correlation {correlation:+.2f})."
            )
        if skewness is not None and skewness > LARGE_SKEWNESS:
            lines.append(f"A few stories are near to many others (hubs; skewness {skewness:.1f}).")
        return lines

    @property
    def record(self) -> dict[str, object]:
        """Figures and warnings as plain data."""
        return {**asdict(self), "warnings": self.warnings}

    def __str__(self) -> str:
        """The figures in a line."""
        length = "undefined" if self.length_correlation is None else f"{self.length_correlation:+.2f}"
        hubs = "undefined" if self.hub_skewness is None else f"{self.hub_skewness:.1f}"
        return f"correlation of mean similarity with log length {length}, skewness of hubs {hubs}"


def similarity_diagnostics(similarities: Floats, texts: Sequence[str]) -> SimilarityDiagnostics:
    """Measure how far the similarities of stories follow their length, and how skewed their hubs are.

    Args:
        similarities: (N, N) of each story with each; the diagonal is left out. Larger is more alike.
        texts: N texts.

    Source: Radovanović, Nanopoulos and Ivanović (2010), "Hubs in space", skewness of the k-occurrence, k = 10.

    >>> likeness = np.array([[1, 0.1, 0.2], [0.1, 1, 0.4], [0.2, 0.4, 1]])
    >>> print(similarity_diagnostics(likeness, ["one", "one two", "one two three four"]))
    correlation of mean similarity with log length +0.98, skewness of hubs undefined
    """
    count = len(texts)
    others = ~np.eye(count, dtype=bool)
    correlation = p = skewness = None
    if count > 2:
        means = similarities.mean(axis=1, where=others, dtype=np.float64)
        lengths = log_lengths(texts)
        if np.ptp(means) > 0 and np.ptp(lengths) > 0:
            result = pearsonr(means, lengths)
            correlation, p = float(result.statistic), float(result.pvalue)
    occurrences = k_occurrences(similarities)
    if count > 2 and np.ptp(occurrences) > 0:
        skewness = float(skew(occurrences))
    return SimilarityDiagnostics(count, correlation, p, skewness)


def log_lengths(texts: Sequence[str]) -> Floats:
    """Compute the logarithm of the number of words of each text, (N,); a text without words counts as one word."""
    lengths: Floats = np.log(np.maximum(word_counts(texts), 1))
    return lengths


def word_counts(texts: Sequence[str]) -> IntArray:
    """Count the words of each text, (N,)."""
    return np.array([len(WORD.findall(text)) for text in texts])


def k_occurrences(similarities: Floats, k: int = NEIGHBORS) -> IntArray:
    """Count how often each story is among the k nearest of the others, (N,); among equally near ones the first count.

    >>> k_occurrences(np.array([[1, 0.9, 0.2], [0.9, 1, 0.4], [0.2, 0.4, 1]]), k=1).tolist()
    [1, 2, 0]
    """
    others = np.where(np.eye(len(similarities), dtype=bool), -np.inf, similarities)
    count = min(k, len(similarities) - 1)
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :count]
    return np.bincount(nearest.ravel(), minlength=len(similarities))
