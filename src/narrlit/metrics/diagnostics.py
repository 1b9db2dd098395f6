"""Diagnostics of a similarity: its dependence on the length of stories, and hubs, which are close to most stories.

Letters in shapes: N stories.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from narrlit.data.schema import Floats, IntArray

WORD = re.compile(r"\w+(?:['’]\w+)*")
"""Word of a story's length; inner apostrophes belong to it: "don't" is one word."""
NEIGHBORS = 10
"""Number k of nearest neighbors for the skewness of the k-occurrence."""
LARGE_CORRELATION = 0.3
"""Correlation with length above which there is a warning: length then explains a tenth of the variance."""
LARGE_SKEWNESS = 1.2
"""Skewness of hubs above which there is a warning, by the rule of thumb of scikit-hubness (Feldbauer et al. 2020)."""
LEVEL = 0.05
"""Largest p of a correlation for a warning: with 24 stories, a correlation of 0.3 is often due to chance."""


@dataclass(frozen=True)
class SimilarityDiagnostics:
    """Dependence of the similarities of N stories on length, and hubness.

    Attributes:
        stories: number N of stories.
        length_correlation: Pearson correlation, -1 to 1, between the mean similarity of the others to a story and the
            logarithm of its number of words; None if all means or all lengths are equal.
        length_p: p of the correlation; None without a correlation.
        hub_skewness: skewness of the k-occurrence, which is the number of stories that have a story among their ten
            nearest; large if a few stories are close to many others, None if all numbers are equal.
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
                f"Similarity depends on length: {kind} stories are close to all others "
                f"(correlation {correlation:+.2f})."
            )
        if skewness is not None and skewness > LARGE_SKEWNESS:
            lines.append(f"A few stories are close to many others (hubs; skewness {skewness:.1f}).")
        return lines

    @property
    def record(self) -> dict[str, object]:
        """Figures and warnings as plain data."""
        return {**asdict(self), "warnings": self.warnings}

    def __str__(self) -> str:
        """Figures in one line."""
        length = "undefined" if self.length_correlation is None else f"{self.length_correlation:+.2f}"
        hubs = "undefined" if self.hub_skewness is None else f"{self.hub_skewness:.1f}"
        return f"correlation of mean similarity with log length {length}, skewness of hubs {hubs}"


def similarity_diagnostics(similarities: Floats, texts: Sequence[str]) -> SimilarityDiagnostics:
    """Measure how strongly the similarities of stories depend on their length, and the skewness of hubs.

    Args:
        similarities: (N, N) similarities of all pairs of stories, with queries in rows; the diagonal is ignored.
        texts: N texts.

    Source: Radovanović, Nanopoulos and Ivanović (2010), "Hubs in space", skewness of the k-occurrence, k = 10.

    >>> similarities = np.array([[1, 0.1, 0.2], [0.1, 1, 0.4], [0.2, 0.4, 1]])
    >>> print(similarity_diagnostics(similarities, ["one", "one two", "one two three four"]))
    correlation of mean similarity with log length +0.98, skewness of hubs undefined
    """
    from scipy.stats import pearsonr, skew  # searches need no diagnostics

    count = len(texts)
    correlation = p = skewness = None
    if count > 2:
        others = ~np.eye(count, dtype=bool)
        means = similarities.mean(axis=0, where=others, dtype=np.float64)
        lengths = log_lengths(texts)
        if np.ptp(means) > 0 and np.ptp(lengths) > 0:
            result = pearsonr(means, lengths)
            correlation, p = float(result.statistic), float(result.pvalue)
        occurrences = k_occurrences(similarities)
        if np.ptp(occurrences) > 0:
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
    """Count for each story the stories that have it among their k nearest, (N,); ties are resolved by row.

    >>> k_occurrences(np.array([[1, 0.9, 0.2], [0.9, 1, 0.4], [0.2, 0.4, 1]]), k=1).tolist()
    [1, 2, 0]
    """
    num_stories = len(similarities)
    is_self = np.eye(num_stories, dtype=bool)
    to_others = np.where(is_self, -np.inf, similarities)
    nearest_first = np.argsort(-to_others, axis=1, kind="stable")
    neighbors = nearest_first[:, : min(k, num_stories - 1)]
    return np.bincount(neighbors.ravel(), minlength=num_stories)
