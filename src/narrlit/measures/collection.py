"""Similarities between the stories of a collection, by a measure that is fitted on the collection.

Letters in shapes: N stories, Q queries, D dimension.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.candidates import Candidates
from narrlit.measures.corrections import csls, hubness
from narrlit.measures.fit import BLOCK, PATIENCE, REFERENCES, MeasureFit
from narrlit.measures.matching import PassageVectors
from narrlit.measures.names import READ_PASSAGES
from narrlit.measures.readers import passage_reader
from narrlit.measures.representations import Contents, passages_of
from narrlit.statistics.diagnostics import SimilarityDiagnostics, similarity_diagnostics

CANDIDATES = 200
"""Number of candidates per story in a collection that is too large to compare all pairs."""
EXACT = 50_000
"""Maximum number of passages for which all pairs of stories are compared, which takes a minute on two cores."""
KEPT = 2000
"""Maximum number of stories for which the similarities of all pairs are kept in memory: 16 MB."""


class Nearest(NamedTuple):
    """Nearest neighbors of N stories, the most similar first.

    Attributes:
        rows: (N, k) rows of the neighbors.
        similarities: (N, k) similarities with the neighbors.
    """

    rows: IntArray
    similarities: Floats

    @classmethod
    def join(cls, blocks: Sequence["Nearest"]) -> "Nearest":
        """Concatenate the neighbors of several blocks of stories."""
        rows, similarities = zip(*blocks, strict=True)
        return cls(np.concatenate(rows), np.concatenate(similarities))


class CollectionSimilarity:
    """Similarities between the N stories of a collection, and of queries with these stories.

    Attributes:
        fit: fitted measure.
        hubs: (N,) hubness of each story; zeros for a measure that does not remove hubs.
    """

    def __init__(self, fit: MeasureFit, contents: Contents, hubs: Floats) -> None:
        """Combine a fitted measure with the stories that it compares.

        Args:
            fit: fitted measure.
            contents: contents of the N stories.
            hubs: (N,) hubness of each story.
        """
        self.fit = fit
        self.hubs = hubs
        self._contents = contents
        self._stories = fit.reader.represent(contents)
        self._matrix: Floats | None = None

    def __len__(self) -> int:
        """Count the stories."""
        return len(self.hubs)

    @property
    def record(self) -> dict[str, object]:
        """Measure and settings, as plain data for reports."""
        return self.fit.record

    @property
    def vectors(self) -> Floats:
        """Unit embeddings (N, D) of the stories, without any correction."""
        return self._contents.vectors

    def rows(self, rows: IntArray) -> Floats:
        """Compare some stories (B,) with all stories, (B, N)."""
        if self._matrix is not None:
            return self._matrix[rows]
        uncorrected = self._stories.take(rows).similarities(self._stories)
        return csls(uncorrected, self.hubs[rows], self.hubs)

    def between(self, rows: IntArray, columns: IntArray) -> Floats:
        """Compare some stories (B,) with some other stories (C,), (B, C)."""
        if self._matrix is not None:
            return self._matrix[np.ix_(rows, columns)]
        uncorrected = self._stories.take(rows).similarities(self._stories.take(columns))
        return csls(uncorrected, self.hubs[rows], self.hubs[columns])

    def take(self, rows: IntArray) -> "CollectionSimilarity":
        """Select some of the stories; their similarities remain those in the whole collection."""
        subset = CollectionSimilarity(self.fit, self._contents.take(rows), self.hubs[rows])
        if self._matrix is not None:
            subset._matrix = self._matrix[np.ix_(rows, rows)]
        return subset

    def with_themselves(self) -> Floats:
        """Compare each story with itself, (N,); this is also its similarity with a copy of its text."""
        similarities = []
        for row in range(len(self)):
            story = np.array([row])
            similarities.append(self.between(story, story)[0, 0])
        return np.array(similarities)

    def matrix(self) -> Floats:
        """Compare all pairs of stories, (N, N); for up to 2,000 stories the result is kept in memory."""
        if self._matrix is not None:
            return self._matrix
        matrix = np.concatenate([self.rows(rows) for rows in self._row_blocks()])
        if len(self) <= KEPT:
            self._matrix = matrix
        return matrix

    def diagnostics(self) -> SimilarityDiagnostics:
        """Measure the skewness of hubs in all stories or a sample of 1,000."""
        rows = sample_rows(len(self))
        return similarity_diagnostics(self.between(rows, rows))

    def blocks(self) -> Iterator[tuple[IntArray, Floats]]:
        """Compare all pairs of stories in blocks: yield rows (B,), and a copy of their similarities (B, N)."""
        if len(self) <= KEPT:
            self.matrix()
        for rows in self._row_blocks():
            yield rows, self.rows(rows)

    def _row_blocks(self) -> Iterator[IntArray]:
        """Divide the rows of all stories into blocks, with a progress bar if they take long."""
        with tqdm(total=len(self), desc="comparing", unit="story", delay=PATIENCE) as bar:
            for start in range(0, len(self), BLOCK):
                rows = np.arange(start, min(start + BLOCK, len(self)))
                yield rows
                bar.update(len(rows))

    def nearest(self, k: int) -> Nearest:
        """Find the k nearest neighbors of each story, other than itself.

        In a large collection a story is compared with 200 candidates.

        Returns:
            Rows (N, k) of the neighbors, nearest first, and their similarities (N, k); k is at most N - 1.
        """
        k = min(k, len(self) - 1)
        if self.is_large:
            return self._nearest_of_candidates(k)
        blocks = []
        for rows, similarities in self.blocks():
            similarities[np.arange(len(rows)), rows] = -np.inf
            blocks.append(highest(similarities, k))
        return Nearest.join(blocks)

    @property
    def is_large(self) -> bool:
        """True if comparing the passages of all pairs of stories would take more than a minute."""
        passages = self._contents.passages
        return self.fit.measure in READ_PASSAGES and passages is not None and len(passages.vectors) > EXACT

    def _nearest_of_candidates(self, k: int) -> Nearest:
        """Find the nearest neighbors of each story among its candidates."""
        candidates = self._candidates()
        count = min(max(CANDIDATES, k), len(self) - 1)
        others = np.arange(len(self))
        all_neighbors = []
        for rows in self._row_blocks():
            for row in rows:
                story = np.array([row])
                selected = candidates.nearest(self._contents.take(story), others[others != row], count)
                nearest = highest(self.between(story, selected), k)
                all_neighbors.append(Nearest(selected[nearest.rows], nearest.similarities))
        return Nearest.join(all_neighbors)

    def _candidates(self) -> Candidates:
        """Prepare the stories for the selection of candidates, by a measure of passages."""
        reader, passages = passage_reader(self.fit.reader), passages_of(self._stories)
        if reader is None or passages is None:
            raise ValueError(f"{self.fit.measure} compares no passages")
        projected = PassageVectors(passages.vectors @ reader.components, passages.starts)
        return Candidates(reader, projected, self.hubs)

    def of_queries(self, queries: Contents) -> Floats:
        """Compare Q queries with all stories, (Q, N); the hubness of a query is computed among the stories."""
        similarities = self.fit.reader.represent(queries).similarities(self._stories)
        if not self.fit.removes_hubs:
            return similarities
        return csls(similarities, hubness(similarities), self.hubs)


def sample_rows(count: int) -> IntArray:
    """Select a random sample of 1,000 rows, or all rows if there are no more, ascending."""
    if count <= REFERENCES:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:REFERENCES])


def highest(similarities: Floats, k: int) -> Nearest:
    """Find the k highest similarities of each row (B, k) and their columns, highest first, ties by column."""
    if k < similarities.shape[1]:
        unsorted_columns = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
        columns = np.sort(unsorted_columns, axis=1)
    else:
        columns = np.broadcast_to(np.arange(similarities.shape[1]), similarities.shape)
    values = np.take_along_axis(similarities, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return Nearest(np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1))
