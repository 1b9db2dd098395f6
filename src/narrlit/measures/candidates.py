"""Candidates: the stories of a large collection among which those most like one by their passages are looked for.

Passages are compared along the principal components of some of them, a sixth of MiniLM's dimensions, so that a sentence
can be compared with every passage.

Letters of the shapes: N stories, P passages of N stories, S passages of one, D dimension, K components.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import IntArray
from narrlit.measures.corrections import centered
from narrlit.measures.matching import PassageVectors, match_scores
from narrlit.measures.readers import PassageReader
from narrlit.measures.representations import Contents

Floats = NDArray[np.floating[Any]]
COMPONENTS = 64
"""Principal components of passages that are kept."""
COMPARED = 2_000_000
"""Pairs of passages that are compared at once, in a tenth of a second; for a longer text, stories are chosen before."""
PRESELECTED = 500
"""Stories, those nearest by centered vectors, whose passages are compared with a longer text's."""


def principal_components(vectors: Floats) -> Floats:
    """Compute the first principal components of centered vectors (P, D), in columns (D, K); K is 64 or D.

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
        mean: (D,) of vectors.
        vectors: (N, D) centered unit vectors.
        passages: (P, K) of the stories, along the components.
        hubs: (N,) hubness of each story.
    """

    reader: PassageReader
    components: Floats
    mean: Floats
    vectors: Floats
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
        matching = self.reader.matching
        own = self.reader.represent(query).passages.vectors @ self.components
        if len(own) * len(self.passages.vectors) <= COMPARED:
            scores = match_scores(own, self.passages, matching)[allowed]
        else:
            cosines = self.vectors[allowed] @ centered(query.vectors, self.mean)[0]
            allowed = allowed[highest_of(cosines, max(PRESELECTED, count))]
            scores = match_scores(own, self.passages.take(allowed), matching)
        best = highest_of(scores - self.hubs[allowed] / 2, count)
        return np.sort(allowed[best])


def highest_of(values: Floats, count: int) -> IntArray:
    """Return the places of the highest of some values, in no order; of all where there are fewer."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, count - 1)[:count]
