"""Readers of stories: each makes the representation that a measure compares, with what it takes from a collection.

Letters in shapes: N stories, D dimension, V words.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from narrlit.data.schema import Floats
from narrlit.measures.corrections import centered
from narrlit.measures.matching import Matching, PassageVectors
from narrlit.measures.representations import Contents, Fused, MatchedPassages, Representation, Scale, Vectors, Words
from narrlit.metrics.baselines import WORD

HASHED_WORDS = 2**18


class Reader(ABC):
    """Makes stories comparable."""

    @abstractmethod
    def represent(self, stories: Contents) -> Representation:
        """Represent stories, or queries, as the measure compares them."""

    @property
    def settings(self) -> dict[str, float]:
        """Settings of the measure, as plain data for reports."""
        return {}


@dataclass(frozen=True, eq=False)
class VectorReader(Reader):
    """Reads a story as its vector, from which a mean (D,) is subtracted; None: as it is."""

    mean: Floats | None = None

    @classmethod
    def fit(cls, references: Contents) -> "VectorReader":
        """Take the mean of the references' vectors."""
        return cls(references.vectors.mean(axis=0))

    def represent(self, stories: Contents) -> Vectors:
        """Represent stories by their vectors."""
        return Vectors(stories.vectors if self.mean is None else centered(stories.vectors, self.mean))


@dataclass(frozen=True, eq=False)
class PassageReader(Reader):
    """Reads a story as its passages, from whose vectors a mean (D,) is subtracted."""

    mean: Floats
    matching: Matching

    @classmethod
    def fit(cls, references: Contents, matching: Matching) -> "PassageReader":
        """Take the mean of the references' passages."""
        return cls(_passages(references).vectors.mean(axis=0, dtype=np.float32), matching)

    def represent(self, stories: Contents) -> MatchedPassages:
        """Represent stories by their passages."""
        passages = _passages(stories)
        vectors = centered(passages.vectors.astype(np.float32), self.mean)
        return MatchedPassages(PassageVectors(vectors, passages.starts), self.matching)

    @property
    def settings(self) -> dict[str, float]:
        """Settings of matching passages."""
        return asdict(self.matching)


@dataclass(frozen=True, eq=False)
class WordReader(Reader):
    """Reads a story as its words, weighted by TF-IDF with inverse document frequencies (V,).

    A word is known by its hash, so that no vocabulary has to be kept; one that is in no reference is the rarest.
    """

    rarity: Floats

    @classmethod
    def fit(cls, references: Contents) -> "WordReader":
        """Take the document frequencies of the references."""
        return cls(TfidfTransformer().fit(_word_counts(references.texts)).idf_)

    def represent(self, stories: Contents) -> Words:
        """Represent stories by weighted words."""
        return Words(normalize(_word_counts(stories.texts).multiply(self.rarity).tocsr()))


@dataclass(frozen=True, eq=False)
class FusedReader(Reader):
    """Reads a story in two ways, whose similarities are standardized."""

    first: Reader
    second: Reader
    scales: tuple[Scale, Scale]

    @classmethod
    def fit(cls, readers: tuple[Reader, Reader], references: Contents) -> "FusedReader":
        """Take mean and deviation of both similarities of the references."""
        first, second = readers
        count = len(references)
        scales = Scale.of(first.represent(references), count), Scale.of(second.represent(references), count)
        return cls(first, second, scales)

    def represent(self, stories: Contents) -> Fused:
        """Represent stories in both ways."""
        return Fused(self.first.represent(stories), self.second.represent(stories), self.scales)

    @property
    def settings(self) -> dict[str, float]:
        """Settings of both."""
        return self.first.settings | self.second.settings


def passage_reader(reader: Reader) -> PassageReader | None:
    """Return the reader of passages in a reader; None for a measure without passages."""
    if isinstance(reader, FusedReader):
        reader = reader.first
    return reader if isinstance(reader, PassageReader) else None


def _passages(stories: Contents) -> PassageVectors:
    """Return the passages of stories."""
    if stories.passages is None:
        raise ValueError("a measure of passages needs contents with passages")
    return stories.passages


def _word_counts(texts: Sequence[str]) -> Any:
    """Count the words of N texts, sparse (N, V)."""
    vectorizer = HashingVectorizer(
        n_features=HASHED_WORDS, analyzer=_words_of, alternate_sign=False, norm=None, dtype=np.float32
    )
    return vectorizer.transform(texts)


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return WORD.findall(text.lower())
