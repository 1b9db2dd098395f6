"""Representations of stories that measures compare: vectors, passages or words.

Letters in shapes: N stories, M other stories, D dimension, V words, P passages.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.matching import Matching, PassageVectors, match_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EQUAL = 1e-6
"""Largest deviation of similarities that is due to rounding."""


@dataclass(frozen=True, eq=False)
class Contents:
    """Contents of N stories that readers use.

    Attributes:
        vectors: (N, D) unit vectors.
        texts: N texts.
        passages: passages of the stories; None if no measure reads them.
    """

    vectors: Floats
    texts: Sequence[str]
    passages: PassageVectors | None = None

    def __len__(self) -> int:
        """Count the stories."""
        return len(self.texts)

    def take(self, rows: IntArray) -> "Contents":
        """Select some of the stories."""
        texts = [self.texts[row] for row in rows]
        passages = None if self.passages is None else self.passages.take(rows)
        return Contents(self.vectors[rows], texts, passages)


class Representation(ABC):
    """Base class of representations of N stories."""

    @abstractmethod
    def similarities(self, others: Any) -> Floats:
        """Compare with M stories in the same representation, (N, M)."""

    @abstractmethod
    def take(self, rows: IntArray) -> "Representation":
        """Select some of the stories."""


@dataclass(frozen=True, eq=False)
class Vectors(Representation):
    """Unit vectors (N, D) of stories, compared by cosine."""

    vectors: Floats

    def similarities(self, others: "Vectors") -> Floats:
        """Return the cosines (N, M)."""
        cosines: Floats = self.vectors @ others.vectors.T
        return cosines

    def take(self, rows: IntArray) -> "Vectors":
        """Select some of the stories."""
        return Vectors(self.vectors[rows])


@dataclass(frozen=True, eq=False)
class MatchedPassages(Representation):
    """Passages of stories, compared by their best matches."""

    passages: PassageVectors
    matching: Matching

    def similarities(self, others: "MatchedPassages") -> Floats:
        """Return the match scores (N, M)."""
        return np.stack([match_scores(story, others.passages, self.matching) for story in self.passages])

    def take(self, rows: IntArray) -> "MatchedPassages":
        """Select some of the stories."""
        return MatchedPassages(self.passages.take(rows), self.matching)


@dataclass(frozen=True, eq=False)
class Words(Representation):
    """Weighted words of stories, sparse (N, V), compared by cosine."""

    counts: "csr_array"

    def similarities(self, others: "Words") -> Floats:
        """Return the cosines (N, M)."""
        cosines: Floats = (self.counts @ others.counts.T).toarray().astype(np.float32)
        return cosines

    def take(self, rows: IntArray) -> "Words":
        """Select some of the stories."""
        return Words(self.counts[rows])


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of the similarities between different stories; 1 if all similarities are equal."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, stories: Representation, count: int) -> "Scale":
        """Compute mean and deviation over all pairs of `count` stories."""
        similarities = stories.similarities(stories)[~np.eye(count, dtype=bool)]
        deviation = float(similarities.std())
        return cls(float(similarities.mean()), deviation if deviation > EQUAL else 1.0)

    def standardized(self, similarities: Floats) -> Floats:
        """Subtract the mean and divide by the deviation."""
        scaled: Floats = (similarities - self.mean) / self.deviation
        return scaled


@dataclass(frozen=True, eq=False)
class Fused(Representation):
    """Two representations of stories, compared by the mean of the standardized similarities."""

    first: Representation
    second: Representation
    scales: tuple[Scale, Scale]

    def similarities(self, others: "Fused") -> Floats:
        """Return the means of the standardized similarities (N, M)."""
        first_scale, second_scale = self.scales
        first = first_scale.standardized(self.first.similarities(others.first))
        second = second_scale.standardized(self.second.similarities(others.second))
        mean: Floats = (first + second) / 2
        return mean

    def take(self, rows: IntArray) -> "Fused":
        """Select some of the stories."""
        return Fused(self.first.take(rows), self.second.take(rows), self.scales)


def passages_of(stories: Representation) -> PassageVectors | None:
    """Return the passages in a representation; None if it has no passages."""
    if isinstance(stories, Fused):
        stories = stories.first
    return stories.passages if isinstance(stories, MatchedPassages) else None
