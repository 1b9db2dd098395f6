"""Readers of stories, which are fitted on a collection and compute the representations that a measure compares.

Letters in shapes: N stories, D dimension, V words.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from narrlit.data.schema import Floats, normal_form
from narrlit.measures.corrections import centered
from narrlit.measures.matching import Matching, PassageVectors
from narrlit.measures.representations import Contents, Fused, MatchedPassages, Representation, Scale, Vectors, Words
from narrlit.metrics.baselines import WORD

HASHED_WORDS = 2**18


class Reader(ABC):
    """Base class of readers."""

    @abstractmethod
    def represent(self, stories: Contents) -> Representation:
        """Compute the representations of stories or queries that the measure compares."""

    @property
    def settings(self) -> dict[str, float]:
        """Settings of the measure, as plain data for reports."""
        return {}


@dataclass(frozen=True, eq=False)
class VectorReader(Reader):
    """Reader of a story's vector, centered by a mean (D,); None: not centered."""

    mean: Floats | None = None

    @classmethod
    def fit(cls, references: Contents) -> "VectorReader":
        """Center by the mean of the references' vectors."""
        return cls(references.vectors.mean(axis=0))

    def represent(self, stories: Contents) -> Vectors:
        """Represent stories by their vectors."""
        return Vectors(stories.vectors if self.mean is None else centered(stories.vectors, self.mean))


@dataclass(frozen=True, eq=False)
class PassageReader(Reader):
    """Reader of the vectors of a story's passages, centered by a mean (D,)."""

    mean: Floats
    matching: Matching

    @classmethod
    def fit(cls, references: Contents, matching: Matching) -> "PassageReader":
        """Center by the mean of the references' passages."""
        return cls(_passages(references).vectors.mean(axis=0, dtype=np.float32), matching)

    def represent(self, stories: Contents) -> MatchedPassages:
        """Represent stories by their passages."""
        passages = _passages(stories)
        vectors = centered(passages.vectors.astype(np.float32), self.mean)
        return MatchedPassages(PassageVectors(vectors, passages.starts), self.matching)

    @property
    def settings(self) -> dict[str, float]:
        """Settings of matching."""
        return asdict(self.matching)


@dataclass(frozen=True, eq=False)
class WordReader(Reader):
    """Reader of a story's words, weighted by TF-IDF with inverse document frequencies (V,).

    Words are represented by hashes, so that no vocabulary is stored. A word that is in no reference has the highest
    inverse document frequency.
    """

    rarity: Floats

    @classmethod
    def fit(cls, references: Contents) -> "WordReader":
        """Compute the inverse document frequencies in the references."""
        from sklearn.feature_extraction.text import TfidfTransformer  # measures without words need no scikit-learn

        return cls(TfidfTransformer().fit(_word_counts(references.texts)).idf_)

    def represent(self, stories: Contents) -> Words:
        """Represent stories by weighted words."""
        from sklearn.preprocessing import normalize

        weighted = _word_counts(stories.texts).multiply(self.rarity).tocsr()
        return Words(normalize(weighted))


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
    def settings(self) -> dict[str, float]:
        """Settings of both readers."""
        return self.first.settings | self.second.settings


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


def _word_counts(texts: Sequence[str]) -> Any:
    """Count the words of N texts, sparse (N, V)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=HASHED_WORDS, analyzer=_words_of, alternate_sign=False, norm=None, dtype=np.float32
    )
    return vectorizer.transform(texts)


def _words_of(text: str) -> list[str]:
    """List the words of a text in lower case."""
    return WORD.findall(normal_form(text).lower())
