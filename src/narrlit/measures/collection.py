"""Similarity of the stories of a collection by a measure that is fitted on the collection.

Letters in shapes: N stories, R references among them, Q queries, D dimension.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from narrlit.data.schema import Floats, IntArray
from narrlit.measures.candidates import Candidates, principal_components
from narrlit.measures.corrections import csls, hubness
from narrlit.measures.matching import Matching, PassageVectors
from narrlit.measures.readers import FusedReader, PassageReader, Reader, VectorReader, WordReader, passage_reader
from narrlit.measures.representations import Contents, Representation, passages_of
from narrlit.metrics.diagnostics import SimilarityDiagnostics, similarity_diagnostics
from narrlit.metrics.names import READ_PASSAGES, MeasureName

KEEP_HUBS = ("centered", "cosine")
"""Measures that leave hubs where they are."""
REFERENCES = 1000
"""Number of stories on which a measure is fitted; a smaller collection is used as a whole."""
CANDIDATES = 200
"""Number of candidates per story in a collection that is too large to compare all pairs."""
EXACT = 50_000
"""Passages of a collection up to which all stories are compared with all: a minute on two cores."""
BLOCK = 128
"""Stories that are compared with all others at once."""
KEPT = 2000
"""Stories up to which the similarities of all pairs are computed once and kept: 16 MB."""
PATIENCE = 2
"""Seconds after which a comparison shows its progress."""


class Nearest(NamedTuple):
    """Nearest neighbors of N stories, the most similar first.

    Attributes:
        rows: (N, k) of the neighbors.
        similarities: (N, k) of the stories with them.
    """

    rows: IntArray
    similarities: Floats

    @classmethod
    def join(cls, blocks: Sequence["Nearest"]) -> "Nearest":
        """Join the neighbors of several blocks of stories."""
        rows = [block.rows for block in blocks]
        similarities = [block.similarities for block in blocks]
        return cls(np.concatenate(rows), np.concatenate(similarities))


@dataclass(frozen=True, eq=False)
class MeasureFit:
    """A measure fitted on R reference stories of a collection.

    Attributes:
        measure: name of the measure.
        reader: represents stories, with what it takes from the references.
        mean: (D,) of the references' vectors.
        references: number R of references.
    """

    measure: MeasureName
    reader: Reader
    mean: Floats
    references: int

    @classmethod
    def of(cls, measure: MeasureName, references: Contents, matching: Matching = Matching()) -> "MeasureFit":
        """Fit a measure.

        Args:
            measure: name of the measure.
            references: R stories.
            matching: how passages are matched.
        """
        reader: Reader
        match measure:
            case "cosine":
                reader = VectorReader()
            case "centered" | "csls":
                reader = VectorReader.fit(references)
            case "passages":
                reader = PassageReader.fit(references, matching)
            case "lexical":
                reader = WordReader.fit(references)
            case "fused":
                parts = PassageReader.fit(references, matching), WordReader.fit(references)
                reader = FusedReader.fit(parts, references)
        return cls(measure, reader, references.vectors.mean(axis=0), len(references))

    @property
    def removes_hubs(self) -> bool:
        """Hubness is subtracted from the similarities."""
        return self.measure not in KEEP_HUBS

    @property
    def record(self) -> dict[str, object]:
        """Measure and settings, as plain data for reports."""
        return {"measure": self.measure, "fitted_on": self.references, **self.reader.settings}


class CollectionSimilarity:
    """Similarities of N stories of a collection, and of queries with them.

    Attributes:
        fit: the measure.
        hubs: (N,) hubness of each story; zeros for a measure that does not remove hubs.
    """

    def __init__(self, fit: MeasureFit, contents: Contents, hubs: Floats) -> None:
        """Hold a fitted measure with the stories that it compares.

        Args:
            fit: the measure.
            contents: of N stories.
            hubs: (N,) hubness of each.
        """
        self.fit = fit
        self.hubs = hubs
        self._contents = contents
        self._stories = fit.reader.represent(contents)
        self._matrix: Floats | None = None

    @classmethod
    def of(cls, measure: MeasureName, contents: Contents, matching: Matching = Matching()) -> "CollectionSimilarity":
        """Fit a measure on a collection: on all stories, or on a random sample of 1,000.

        Args:
            measure: name of the measure.
            contents: of N stories.
            matching: how passages are matched.
        """
        rows = reference_rows(len(contents))
        fit = MeasureFit.of(measure, contents.take(rows), matching)
        unfitted = cls(fit, contents, np.zeros(len(contents), dtype=np.float32))
        if not fit.removes_hubs or len(contents) < 2:
            return unfitted
        hubs = reference_hubness(unfitted._stories, rows, len(contents))
        return cls(fit, contents, hubs)

    def __len__(self) -> int:
        """Count the stories."""
        return len(self.hubs)

    @property
    def record(self) -> dict[str, object]:
        """Measure and settings, as plain data for reports."""
        return self.fit.record

    @property
    def vectors(self) -> Floats:
        """Unit vectors (N, D) of the stories, as the encoder made them."""
        return self._contents.vectors

    def rows(self, rows: IntArray) -> Floats:
        """Compare some stories, (B,), with all, (B, N)."""
        if self._matrix is not None:
            return self._matrix[rows]
        uncorrected = self._stories.take(rows).similarities(self._stories)
        return csls(uncorrected, self.hubs[rows], self.hubs)

    def between(self, rows: IntArray, columns: IntArray) -> Floats:
        """Compare some stories (B,) with some others (C,), (B, C)."""
        if self._matrix is not None:
            return self._matrix[np.ix_(rows, columns)]
        uncorrected = self._stories.take(rows).similarities(self._stories.take(columns))
        return csls(uncorrected, self.hubs[rows], self.hubs[columns])

    def take(self, rows: IntArray) -> "CollectionSimilarity":
        """Return the similarities of some of the stories, as they are in the whole collection."""
        part = CollectionSimilarity(self.fit, self._contents.take(rows), self.hubs[rows])
        if self._matrix is not None:
            part._matrix = self._matrix[np.ix_(rows, rows)]
        return part

    def with_themselves(self) -> Floats:
        """Compare each story with itself, (N,): what a copy of its text would have."""
        own = [self.between(row, row)[0, 0] for row in np.arange(len(self))[:, None]]
        return np.array(own)

    def matrix(self) -> Floats:
        """Compare all stories with all, (N, N); of up to 2,000 stories this is done once."""
        if self._matrix is not None:
            return self._matrix
        matrix = np.concatenate([self.rows(rows) for rows in self._row_blocks()])
        if len(self) <= KEPT:
            self._matrix = matrix
        return matrix

    def diagnostics(self) -> SimilarityDiagnostics:
        """Measure how far the similarities follow the length of stories and have hubs, in a sample of 1,000 or all."""
        rows = reference_rows(len(self))
        texts = [self._contents.texts[row] for row in rows]
        return similarity_diagnostics(self.between(rows, rows), texts)

    def blocks(self) -> Iterator[tuple[IntArray, Floats]]:
        """Compare all stories with all in blocks: rows (B,), and a copy of their similarities (B, N)."""
        if len(self) <= KEPT:
            self.matrix()
        for rows in self._row_blocks():
            yield rows, self.rows(rows)

    def _row_blocks(self) -> Iterator[IntArray]:
        """Divide the rows of all stories into blocks, with a progress bar where they take long."""
        with tqdm(total=len(self), desc="comparing", unit="story", delay=PATIENCE) as bar:
            for start in range(0, len(self), BLOCK):
                rows = np.arange(start, min(start + BLOCK, len(self)))
                yield rows
                bar.update(len(rows))

    def nearest(self, k: int) -> Nearest:
        """Find the k nearest neighbors of each story, itself left out.

        In a large collection a story is compared with 200 candidates.

        Returns:
            Rows (N, k) of the neighbors, nearest first, and their similarities (N, k); k is N - 1 at most.
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
        """Comparing all stories with all by their passages would take more than a minute."""
        passages = self._contents.passages
        return self.fit.measure in READ_PASSAGES and passages is not None and len(passages.vectors) > EXACT

    def _nearest_of_candidates(self, k: int) -> Nearest:
        """Find the nearest neighbors of each story among its candidates."""
        candidates = self._candidates()
        count = min(max(CANDIDATES, k), len(self) - 1)
        others = np.arange(len(self))
        stories = []
        for rows in self._row_blocks():
            for row in rows:
                story = self._contents.take(np.array([row]))
                chosen = candidates.nearest(story, others[others != row], count)
                nearest = highest(self.between(np.array([row]), chosen), k)
                stories.append(Nearest(chosen[nearest.rows], nearest.similarities))
        return Nearest.join(stories)

    def _candidates(self) -> Candidates:
        """Return the stories as candidates, by a measure of passages."""
        reader, passages = passage_reader(self.fit.reader), passages_of(self._stories)
        if reader is None or passages is None:
            raise ValueError(f"{self.fit.measure} compares no passages")
        sample = passages.take(reference_rows(len(self)))
        components = principal_components(sample.vectors)
        along = PassageVectors(passages.vectors @ components, passages.starts)
        return Candidates(reader, components, along, self.hubs)

    def of_queries(self, queries: Contents) -> Floats:
        """Compare Q queries with all stories, (Q, N).

        A query's own hubness is that among the stories.
        """
        similarities = self.fit.reader.represent(queries).similarities(self._stories)
        if not self.fit.removes_hubs:
            return similarities
        return csls(similarities, hubness(similarities), self.hubs)


def reference_rows(count: int) -> IntArray:
    """Choose the rows of a collection that measures are fitted on: all, or a random sample of 1,000, in order."""
    if count <= REFERENCES:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:REFERENCES])


def reference_hubness(stories: Representation, rows: IntArray, count: int) -> Floats:
    """Compute the hubness of `count` stories, (N,): the mean similarity with the ten nearest references.

    Args:
        stories: N stories.
        rows: those that are references, of which a story itself is none of its own.
        count: N.
    """
    references = stories.take(rows)
    place_of = np.full(count, -1)
    place_of[rows] = np.arange(len(rows))
    blocks = []
    for start in range(0, count, BLOCK):
        block = np.arange(start, min(start + BLOCK, count))
        similarities = stories.take(block).similarities(references)
        own = place_of[block]
        is_reference = own >= 0
        similarities[is_reference, own[is_reference]] = -np.inf
        blocks.append(hubness(similarities))
    return np.concatenate(blocks)


def highest(similarities: Floats, k: int) -> Nearest:
    """Return the columns of the k highest of each row (B, k), the highest first and equal ones by column, and them."""
    if k < similarities.shape[1]:
        columns = np.sort(np.argpartition(-similarities, k - 1, axis=1)[:, :k], axis=1)
    else:
        columns = np.broadcast_to(np.arange(similarities.shape[1]), similarities.shape)
    values = np.take_along_axis(similarities, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return Nearest(np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1))
