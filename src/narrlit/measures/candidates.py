"""Selection of candidates in a large collection, which are then compared by their passages.

Passages are reduced to principal components, a third of MiniLM's dimensions, so that a sentence can be compared with
every passage. Long stories are compared by the means of their segments, each with the segment at the same position.

Letters in shapes: N stories, P passages of N stories, S passages of one, D dimension, K components, G segments.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.matching import PassageVectors, match_scores
from narrlit.measures.readers import PassageReader
from narrlit.measures.representations import Contents

COMPONENTS = 128
"""Principal components of passages that are kept.

The 200 candidates for a sentence among 10,000 long stories held all of the ten best by 128 components, three quarters
of them by 64.
"""
COMPARED = 2_000_000
"""Pairs of passages that are compared at once, in a tenth of a second; a longer text is compared by segments."""
SEGMENTS = 8
"""Segments of a story: with eight, the 200 candidates for a long story held all of the ten best."""


def principal_components(vectors: Floats) -> Floats:
    """Compute the first principal components of centered vectors (P, D), in columns (D, K); K is 128, or D if less.

    >>> principal_components(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _, components = np.linalg.eigh(vectors.T @ vectors)  # the smallest variance first
    largest_first: Floats = components[:, ::-1]
    return largest_first[:, :COMPONENTS]


@dataclass(frozen=True, eq=False)
class Candidates:
    """N stories, some of which are chosen as candidates.

    Attributes:
        reader: of passages.
        components: (D, K) of passages.
        passages: (P, K) of the stories, along the components.
        hubs: (N,) hubness of each story.
    """

    reader: PassageReader
    components: Floats
    passages: PassageVectors
    hubs: Floats

    def nearest(self, query: Contents, allowed: IntArray, count: int) -> IntArray:
        """Choose the candidates for a story or a text.

        Args:
            query: the one story.
            allowed: rows of the stories that may be chosen.
            count: number of candidates.

        Returns:
            Rows, in order.
        """
        own = self.reader.represent(query).passages.vectors @ self.components
        if len(own) * len(self.passages.vectors) <= COMPARED:
            scores = match_scores(own, self.passages, self.reader.matching) - self.hubs / 2
        else:
            scores = self._segments @ segment_means(own).ravel()
        best = highest_of(scores[allowed], count)
        return np.sort(allowed[best])

    @cached_property
    def _segments(self) -> Floats:
        """Unit vectors of each story's segments, one behind the other, (N, G * K)."""
        stories = range(len(self.passages))
        return np.stack([segment_means(self.passages.story(number)).ravel() for number in stories])


def segment_means(story: Floats) -> Floats:
    """Average the passages (S, K) of each segment of a story, weighted by their overlap, as unit vectors (G, K).

    >>> segment_means(np.eye(2)).round(1).tolist()[3:5]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    passages = np.arange(len(story) + 1, dtype=np.float32) / len(story)
    segments = np.arange(SEGMENTS + 1, dtype=np.float32) / SEGMENTS
    starts = np.maximum(segments[:-1, None], passages[None, :-1])
    ends = np.minimum(segments[1:, None], passages[None, 1:])
    means = np.maximum(ends - starts, 0) @ story
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    unit: Floats = means / np.maximum(lengths, 1e-12)
    return unit


def highest_of(values: Floats, count: int) -> IntArray:
    """Return the places of the highest of some values, in no order; of all where there are fewer."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count - 1)[:count]
