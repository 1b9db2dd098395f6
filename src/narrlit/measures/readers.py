"""Readers of stories, which are fitted on a collection and compute the representations that a measure compares.

Letters in shapes: N stories, P passages, D dimension, K components, V words.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from zlib import crc32

import numpy as np

from narrlit.data.schema import Floats
from narrlit.measures.corrections import centered, mean_of
from narrlit.measures.matching import Matching, PassageVectors
from narrlit.measures.representations import Contents, Fused, MatchedPassages, Representation, Scale, Vectors, Words
from narrlit.statistics.words import ANALYSIS, StopWords, stop_words_of, vectorizer_for

HASHED_WORDS = 2**18
"""Number of columns for words that are in no reference."""
COMPONENTS = 128
"""Number of principal components of passages.

With 128, the 200 candidates for a sentence among 10,000 long stories included all of the ten best; with 64, three
quarters of them.
"""


class Reader(ABC):
    """Base class of readers."""

    @abstractmethod
    def represent(self, stories: Contents) -> Representation:
        """Compute the representations of stories or queries that the measure compares."""

    @property
    def settings(self) -> dict[str, object]:
        """Settings of the measure, as plain data for reports."""
        return {}


@dataclass(frozen=True, eq=False)
class VectorReader(Reader):
    """Reader of a story's vector, centered by a mean (D,); None: not centered."""

    mean: Floats | None = None

    @classmethod
    def fit(cls, references: Contents) -> "VectorReader":
        """Center by the mean of the references' vectors."""
        return cls(mean_of(references.vectors))

    def represent(self, stories: Contents) -> Vectors:
        """Represent stories by their vectors."""
        return Vectors(stories.vectors if self.mean is None else centered(stories.vectors, self.mean))


@dataclass(frozen=True, eq=False)
class PassageReader(Reader):
    """Reader of the vectors of a story's passages.

    Attributes:
        mean: (D,) mean of the references' passages, by which passages are centered.
        matching: settings of matching.
        components: (D, K) principal components of the references' passages, by which candidates are chosen.
    """

    mean: Floats
    matching: Matching
    components: Floats

    @classmethod
    def fit(cls, references: Contents, matching: Matching) -> "PassageReader":
        """Compute mean and principal components of the references' passages."""
        vectors = _passages(references).vectors.astype(np.float32)
        mean = mean_of(vectors)
        return cls(mean, matching, principal_components(centered(vectors, mean)))

    def represent(self, stories: Contents) -> MatchedPassages:
        """Represent stories by their passages."""
        passages = _passages(stories)
        vectors = centered(passages.vectors.astype(np.float32), self.mean)
        return MatchedPassages(PassageVectors(vectors, passages.starts), self.matching)

    def reduce(self, stories: Contents) -> PassageVectors:
        """Reduce the passages of stories to the principal components, (P, K)."""
        passages = self.represent(stories).passages
        return PassageVectors(passages.vectors @ self.components, passages.starts)

    @property
    def settings(self) -> dict[str, object]:
        """Settings of matching."""
        return asdict(self.matching)


@dataclass(frozen=True, eq=False)
class WordReader(Reader):
    """Reader of a story's words, weighted by TF-IDF like those of the baseline `tfidf`.

    Each word of the references has a column. Other words have the highest inverse document frequency, and further
    columns by their hashes, so that stories that are no references can share them.

    Attributes:
        words: the V words of the references.
        rarity: (V + 1,) inverse document frequencies of these words, and of a word that is in no reference.
        stop_words: stop words, which are left out; None: no word is left out.
    """

    words: Sequence[str]
    rarity: Floats
    stop_words: StopWords | None

    @classmethod
    def fit(cls, references: Contents) -> "WordReader":
        """Compute the inverse document frequencies in the references, and choose the stop words of their language."""
        highest = 1 + np.log(1 + len(references))
        vectorizer = vectorizer_for(references.texts)
        if vectorizer is None:
            return cls([], np.array([highest]), stop_words_of(references.texts))
        vectorizer.fit(references.texts)
        words = vectorizer.get_feature_names_out().tolist()
        return cls(words, np.append(vectorizer.idf_, highest), vectorizer.stop_words)

    def represent(self, stories: Contents) -> Words:
        """Represent stories by weighted words."""
        from scipy.sparse import csr_array  # measures without words need neither
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.preprocessing import normalize

        words_of = CountVectorizer(stop_words=self.stop_words, **ANALYSIS).build_analyzer()
        num_known = len(self.words)
        columns: list[int] = []
        counts: list[int] = []
        starts = [0]
        for text in stories.texts:
            for word, count in Counter(words_of(text)).items():
                column = self._column_of.get(word)
                if column is None:
                    column = num_known + crc32(word.encode()) % HASHED_WORDS
                columns.append(column)
                counts.append(count)
            starts.append(len(columns))
        rarity = self.rarity[np.minimum(columns, num_known).astype(np.int64)]
        weights = (1 + np.log(counts)) * rarity
        weighted = csr_array((weights, columns, starts), shape=(len(stories), num_known + HASHED_WORDS))
        weighted.sum_duplicates()  # different words with the same hash
        return Words(normalize(weighted))

    @cached_property
    def _column_of(self) -> dict[str, int]:
        """Columns of the words of the references."""
        return {word: column for column, word in enumerate(self.words)}

    @property
    def settings(self) -> dict[str, object]:
        """Stop words."""
        return {"stop_words": self.stop_words}


@dataclass(frozen=True, eq=False)
class FusedReader(Reader):
    """Pair of readers, whose similarities are standardized and averaged."""

    first: Reader
    second: Reader
    scales: tuple[Scale, Scale]

    @classmethod
    def fit(cls, readers: tuple[Reader, Reader], references: Contents) -> "FusedReader":
        """Compute mean and deviation of the similarities of the references, for both readers."""
        first, second = readers
        count = len(references)
        scales = Scale.of(first.represent(references), count), Scale.of(second.represent(references), count)
        return cls(first, second, scales)

    def represent(self, stories: Contents) -> Fused:
        """Represent stories by both readers."""
        return Fused(self.first.represent(stories), self.second.represent(stories), self.scales)

    @property
    def settings(self) -> dict[str, object]:
        """Settings of both readers."""
        return self.first.settings | self.second.settings


def principal_components(vectors: Floats) -> Floats:
    """Compute the first principal components of centered vectors (P, D), in columns (D, K); K is at most 128.

    >>> principal_components(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _, components = np.linalg.eigh(vectors.T @ vectors)  # in ascending order of variance
    descending: Floats = components[:, ::-1]
    return descending[:, :COMPONENTS]


def passage_reader(reader: Reader) -> PassageReader | None:
    """Return the reader of passages that a reader is or contains; None for a measure without passages."""
    if isinstance(reader, FusedReader):
        reader = reader.first
    return reader if isinstance(reader, PassageReader) else None


def _passages(stories: Contents) -> PassageVectors:
    """Return the passages of stories, which must be present."""
    if stories.passages is None:
        raise ValueError("a measure of passages needs contents with passages")
    return stories.passages
