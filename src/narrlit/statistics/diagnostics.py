"""Hubs, which are close to most stories of a collection, and lengths of stories in words.

Letters in shapes: N stories.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from narrlit.data.schema import Floats, IntArray
from narrlit.preprocessing.words import WORD, num_characters, num_words

NEIGHBORS = 10
"""Number k of nearest neighbors for the skewness of the k-occurrence."""
LARGE_SKEWNESS = 1.2
"""Skewness of hubs above which there is a warning, by the rule of thumb of scikit-hubness (Feldbauer et al. 2020)."""


@dataclass(frozen=True)
class SimilarityDiagnostics:
    """Hubness of the similarities of N stories.

    Attributes:
        stories: number N of stories.
        hub_skewness: skewness of the k-occurrence, which is the number of stories that have a story among their ten
            nearest; large if a few stories are close to many others, None if all numbers are equal.
    """

    stories: int
    hub_skewness: float | None

    @property
    def warnings(self) -> list[str]:
        """A sentence if the skewness is large."""
        if self.hub_skewness is None or self.hub_skewness <= LARGE_SKEWNESS:
            return []
        return [f"A few stories are close to many others (hubs; skewness {self.hub_skewness:.1f})."]

    @property
    def record(self) -> dict[str, object]:
        """Figures and warnings as plain data."""
        return {**asdict(self), "warnings": self.warnings}

    def __str__(self) -> str:
        """The skewness in a few words."""
        return "skewness of hubs " + ("undefined" if self.hub_skewness is None else f"{self.hub_skewness:.1f}")


def similarity_diagnostics(similarities: Floats) -> SimilarityDiagnostics:
    """Measure the skewness of hubs.

    Args:
        similarities: (N, N) similarities of all pairs of stories, with queries in rows; the diagonal is ignored.

    Source: Radovanović, Nanopoulos and Ivanović (2010), "Hubs in space", skewness of the k-occurrence, k = 10.

    >>> similarities = np.array([[1, 0.1, 0.2], [0.1, 1, 0.4], [0.2, 0.4, 1]])
    >>> print(similarity_diagnostics(similarities))
    skewness of hubs undefined
    """
    from scipy.stats import skew  # searches need no diagnostics

    count = len(similarities)
    skewness = None
    if count > 2:
        occurrences = k_occurrences(similarities)
        if np.ptp(occurrences) > 0:
            skewness = float(skew(occurrences))
    return SimilarityDiagnostics(count, skewness)


def log_lengths(texts: Sequence[str]) -> Floats:
    """Compute the logarithm of the number of words of each text, (N,); a text without words counts as one word."""
    lengths: Floats = np.log(np.maximum(word_counts(texts), 1))
    return lengths


def word_counts(texts: Sequence[str]) -> IntArray:
    """Count the words of each text, (N,), without punctuation; in scripts without spaces, they are estimated."""
    counts = []
    for text in texts:
        counts.append(len(WORD.findall(text)) if num_characters(text) is None else num_words(text))
    return np.array(counts)


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
