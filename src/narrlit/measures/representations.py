"""Stories as a measure compares them: as vectors, as passages, as words.

Letters in shapes: N stories, M other stories, D dimension, V words, P passages.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.matching import Matching, PassageVectors, match_scores

EQUAL = 1e-6
"""Deviation of similarities up to which they are equal but for rounding."""


@dataclass(frozen=True, eq=False)
class Contents:
    """Representations of N stories that measures compare.

    Attributes:
        vectors: (N, D) unit vectors.
        texts: N texts.
        passages: of the stories; None where no measure reads them.
    """

    vectors: Floats
    texts: Sequence[str]
    passages: PassageVectors | None = None

    def __len__(self) -> int:
        """Count the stories."""
        return len(self.texts)

    def take(self, rows: IntArray) -> "Contents":
        """Return some of the stories."""
        passages = None if self.passages is None else self.passages.take(rows)
        return Contents(self.vectors[rows], [self.texts[row] for row in rows], passages)


class Representation(ABC):
    """N stories as a measure compares them."""

    @abstractmethod
    def similarities(self, others: Any) -> Floats:
        """Compare with M stories of the same representation, (N, M)."""

    @abstractmethod
    def take(self, rows: IntArray) -> "Representation":
        """Return some of the stories."""


@dataclass(frozen=True, eq=False)
class Vectors(Representation):
    """Stories as unit vectors (N, D), compared by their cosine."""

    vectors: Floats

    def similarities(self, others: "Vectors") -> Floats:
        """Return the cosines (N, M)."""
        cosines: Floats = self.vectors @ others.vectors.T
        return cosines

    def take(self, rows: IntArray) -> "Vectors":
        """Return some of the stories."""
        return Vectors(self.vectors[rows])


@dataclass(frozen=True, eq=False)
class MatchedPassages(Representation):
    """Stories as passages, compared by their best matches."""

    passages: PassageVectors
    matching: Matching

    def similarities(self, others: "MatchedPassages") -> Floats:
        """Return the match scores (N, M)."""
        stories = range(len(self.passages))
        rows = [match_scores(self.passages.story(number), others.passages, self.matching) for number in stories]
        return np.stack(rows)

    def take(self, rows: IntArray) -> "MatchedPassages":
        """Return some of the stories."""
        return MatchedPassages(self.passages.take(rows), self.matching)


@dataclass(frozen=True, eq=False)
class Words(Representation):
    """Stories as weighted words, sparse (N, V), compared by their cosine."""

    counts: csr_array

    def similarities(self, others: "Words") -> Floats:
        """Return the cosines (N, M)."""
        cosines: Floats = (self.counts @ others.counts.T).toarray().astype(np.float32)
        return cosines

    def take(self, rows: IntArray) -> "Words":
        """Return some of the stories."""
        return Words(self.counts[rows])


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of a measure's similarities of unlike stories; 1 where all are equal."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, stories: Representation, count: int) -> "Scale":
        """Describe the similarities of all pairs of `count` stories."""
        found = stories.similarities(stories)[~np.eye(count, dtype=bool)]
        deviation = float(found.std())
        return cls(float(found.mean()), deviation if deviation > EQUAL else 1.0)

    def standardized(self, similarities: Floats) -> Floats:
        """Subtract the mean and divide by the deviation."""
        scaled: Floats = (similarities - self.mean) / self.deviation
        return scaled


@dataclass(frozen=True, eq=False)
class Fused(Representation):
    """Stories in two representations, compared by the mean of both standardized similarities."""

    first: Representation
    second: Representation
    scales: tuple[Scale, Scale]

    def similarities(self, others: "Fused") -> Floats:
        """Return the means of the standardized similarities (N, M)."""
        first, second = self.scales
        one = first.standardized(self.first.similarities(others.first))
        other = second.standardized(self.second.similarities(others.second))
        mean: Floats = (one + other) / 2
        return mean

    def take(self, rows: IntArray) -> "Fused":
        """Return some of the stories."""
        return Fused(self.first.take(rows), self.second.take(rows), self.scales)


def passages_of(stories: Representation) -> PassageVectors | None:
    """Return the passages of stories as they are compared; None if they are compared without passages."""
    if isinstance(stories, Fused):
        stories = stories.first
    return stories.passages if isinstance(stories, MatchedPassages) else None
