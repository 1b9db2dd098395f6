"""Selection of candidates in a large collection, which are then compared by their passages.

Passages are reduced to principal components, a third of MiniLM's dimensions, so that a sentence can be compared with
every passage. For long texts, only the means of segments at the same position are compared.

Letters in shapes: N stories, P passages of all stories, S passages of one story, D dimension, K components, G segments.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.corrections import normalized
from narrlit.measures.matching import PassageVectors, match_scores
from narrlit.measures.readers import PassageReader
from narrlit.measures.representations import Contents

COMPARED = 2_000_000
"""Maximum number of pairs of passages to compare, in a tenth of a second; longer texts are compared by segments."""
SEGMENTS = 8
"""Number of segments of a story: with eight, the 200 candidates for a long story included all of the ten best."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """N stories, from which candidates are selected.

    Attributes:
        reader: reader of passages.
        passages: (P, K) passages of the stories, reduced by the reader.
        hubs: (N,) hubness of each story.
    """

    reader: PassageReader
    passages: PassageVectors
    hubs: Floats

    def nearest(self, query: Contents, allowed: IntArray, count: int) -> IntArray:
        """Select the candidates for a story or a text.

        Args:
            query: contents of the story or text.
            allowed: rows of the stories that can be selected.
            count: number of candidates.

        Returns:
            Rows of the candidates, ascending.
        """
        projected = self.reader.reduce(query).vectors
        if len(projected) * len(self.passages.vectors) <= COMPARED:
            scores = match_scores(projected, self.passages, self.reader.matching) - self.hubs / 2
        else:
            scores = self._segments @ segment_means(projected).ravel()
        best = highest_of(scores[allowed], count)
        return np.sort(allowed[best])

    @cached_property
    def _segments(self) -> Floats:
        """Concatenated unit vectors of each story's segments, (N, G * K)."""
        return np.stack([segment_means(story).ravel() for story in self.passages])


def segment_means(story: Floats) -> Floats:
    """Average the passages (S, K) of each segment of a story, weighted by their overlap, as unit vectors (G, K).

    >>> segment_means(np.eye(2)).round(1).tolist()[3:5]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    passage_edges = np.arange(len(story) + 1, dtype=np.float32) / len(story)
    segment_edges = np.arange(SEGMENTS + 1, dtype=np.float32)[:, None] / SEGMENTS
    starts = np.maximum(segment_edges[:-1], passage_edges[:-1])
    ends = np.minimum(segment_edges[1:], passage_edges[1:])
    overlaps = np.maximum(ends - starts, 0)
    return normalized(overlaps @ story)


def highest_of(values: Floats, count: int) -> IntArray:
    """Return the indices of the `count` highest values, or of all if there are fewer, in any order."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count - 1)[:count]
