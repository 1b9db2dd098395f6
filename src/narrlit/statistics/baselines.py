"""Baselines without training, for comparison with embeddings and to find shortcuts in data.

A baseline is a function of N triples of texts (anchor, A, B) that returns float64 scores (N, 2) of A and B; higher
scores mean more similar.
"""

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np

from narrlit.data.schema import DoubleArray, normal_form
from narrlit.statistics.words import WeightedBaseline, lexical_vectors

TripleTexts = tuple[str, str, str]


def random_scores(triples: Sequence[TripleTexts]) -> DoubleArray:
    """Answer each triple at random, by a digest of its texts: the same in any order, process and release.

    The two scores sum to 1 and are never equal, even in float32.

    >>> random_scores([("x", "y", "z")]).sum()
    np.float64(1.0)
    """
    first = np.array([_coin(texts) for texts in triples])
    return np.stack([first, 1 - first], axis=1)


def _coin(texts: TripleTexts) -> float:
    """Compute a number between 0 and 1 from a digest of texts: an odd number divided by 2^21, which is never 0.5."""
    joined = json.dumps(list(texts))  # quoted, so that the texts remain separate
    digest = blake2b(joined.encode(), digest_size=4).digest()
    twenty_bits = int.from_bytes(digest, "big") >> 12
    return (2 * twenty_bits + 1) / 2**21


def jaccard_scores(triples: Sequence[TripleTexts]) -> DoubleArray:
    """Compute the Jaccard index of the sets of lower-case words, split at white space, from 0 to 1.

    Source: the task's organizers, `set(text.lower().split())`.

    >>> jaccard_scores([("a cat sat", "the cat sat", "a dog")])
    array([[0.5 , 0.25]])
    """
    scores = np.empty((len(triples), 2))
    for row, triple in enumerate(triples):
        anchor, a, b = map(_lower_words, triple)
        scores[row] = _jaccard_index(anchor, a), _jaccard_index(anchor, b)
    return scores


def _lower_words(text: str) -> set[str]:
    """Collect the distinct words of a text in lower case, split at white space."""
    return set(normal_form(text).lower().split())


def _jaccard_index(first: set[str], second: set[str]) -> float:
    """Divide the number of common words by the number of all words; 0 without words."""
    return len(first & second) / max(1, len(first | second))


def tfidf_scores(triples: Sequence[TripleTexts]) -> DoubleArray:
    """Compute cosines of TF-IDF vectors, from 0 to 1; document frequencies come from all texts of the triples.

    >>> [[a, b]] = tfidf_scores([("a cat sat", "the cat sat", "a dog")])
    >>> bool(a > b)
    True
    """
    return _lexical_scores("tfidf", triples)


def bm25_scores(triples: Sequence[TripleTexts]) -> DoubleArray:
    """Compute the BM25 scores of the candidates for the anchor as the query, 0 or more.

    Document frequencies and the mean length come from all texts of the triples.

    >>> [[a, b]] = bm25_scores([("a cat sat", "the cat sat", "a dog")])
    >>> bool(a > b)
    True
    """
    return _lexical_scores("bm25", triples)


def _lexical_scores(kind: WeightedBaseline, triples: Sequence[TripleTexts]) -> DoubleArray:
    """Compute the products of an anchor's vector with those of both candidates."""
    texts = list(chain.from_iterable(triples))
    anchors, stories = lexical_vectors(kind, texts[0::3], texts)
    a, b = stories[1::3], stories[2::3]
    return np.column_stack([anchors.multiply(a).sum(axis=1), anchors.multiply(b).sum(axis=1)])


def length_scores(triples: Sequence[TripleTexts]) -> DoubleArray:
    """Count the characters of each candidate; the longer candidate is the answer.

    >>> length_scores([("x", "long", "short")])
    array([[4., 5.]])
    """
    return np.array([(len(a), len(b)) for _, a, b in triples], dtype=np.float64).reshape(-1, 2)


BASELINES: dict[str, Callable[[Sequence[TripleTexts]], DoubleArray]] = {
    "random": random_scores,
    "jaccard": jaccard_scores,
    "tfidf": tfidf_scores,
    "bm25": bm25_scores,
    "longer": length_scores,
}
"""Baselines by their name in reports."""
