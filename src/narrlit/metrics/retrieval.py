"""Retrieval of relevant stories: metrics from the ranks of one query, and lexical baselines.

Letters in shapes: Q queries, N stories, V words, R relevant stories of a query.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from narrlit.data.schema import IntArray, normal_form
from narrlit.metrics.baselines import WORD

Gains = NDArray[np.float64]
Lexical = Literal["tfidf", "bm25"]
K1, B = 1.2, 0.75
"""Parameters of BM25: saturation of word counts, and influence of a story's length."""


def ranks(scores: NDArray[np.floating]) -> IntArray:
    """Rank stories by their scores, (N,) or (Q, N), from 1 for the highest score; ties are ranked by row.

    >>> ranks(np.array([0.1, -0.3, 0.9, 0.1])).tolist()
    [2, 4, 1, 3]
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    return np.argsort(order, axis=-1) + 1


def ndcg(ranks: IntArray, gains: Gains, k: int) -> float:
    """Compute nDCG@k of a query from the ranks (R,) and gains (R,) of its relevant stories, from 0 to 1.

    The gain is linear, as in trec_eval and scikit-learn (Järvelin and Kekäläinen 2002).

    >>> round(ndcg(np.array([2, 5]), np.array([1.0, 1.0]), 10), 3)
    0.624
    """
    discounted = gains / np.log2(ranks + 1)
    ideal_gains = np.sort(gains)[::-1][:k]
    ideal_ranks = np.arange(1, len(ideal_gains) + 1)
    ideal = ideal_gains / np.log2(ideal_ranks + 1)
    return float(discounted[ranks <= k].sum()) / float(ideal.sum())


def reciprocal_rank(ranks: IntArray, gains: Gains) -> float:
    """Compute 1 / rank of the highest-ranked relevant story."""
    return 1 / float(ranks.min())


def recall(ranks: IntArray, gains: Gains, k: int) -> float:
    """Compute the share of the relevant stories that are among the first k."""
    return float((ranks <= k).mean())


def hit(ranks: IntArray, gains: Gains, k: int) -> float:
    """Return 1 if a relevant story is among the first k, else 0."""
    return float(ranks.min() <= k)


METRICS: dict[str, Callable[[IntArray, Gains], float]] = {
    "recall@1": partial(recall, k=1),
    "recall@10": partial(recall, k=10),
    "mrr": reciprocal_rank,
    "ndcg@10": partial(ndcg, k=10),
}
"""Metrics of a query from ranks (R,) and positive gains (R,) of its relevant stories."""
METRICS_OF_VERSIONS = METRICS | {"recall@1": partial(hit, k=1), "recall@10": partial(hit, k=10)}
"""Metrics for versions, of which one is enough: recall@k as in metric learning (Oh Song et al. 2016)."""
LABELS = {"recall@1": "recall@1", "recall@10": "recall@10", "mrr": "MRR", "ndcg@10": "nDCG@10"}


def lexical_vectors(kind: Lexical, queries: Sequence[str], stories: Sequence[str]) -> tuple[Any, Any]:
    """Compute sparse vectors of queries (Q, V) and stories (N, V), whose products are TF-IDF cosines or BM25 scores.

    Vocabulary and document frequencies come from the stories.

    Source of BM25: Robertson and Zaragoza (2009), k1 = 1.2, b = 0.75; the weight of a word is log(1 + (N - n + 0.5) /
    (n + 0.5)), as in Lucene.
    """

    def words(text: str) -> list[str]:
        return WORD.findall(normal_form(text).lower())

    vectorizer_class = TfidfVectorizer if kind == "tfidf" else CountVectorizer
    vectorizer = vectorizer_class(analyzer=words, dtype=np.float64)
    story_vectors = csr_array(vectorizer.fit_transform(stories))
    query_vectors = csr_array(vectorizer.transform(queries))
    if kind == "bm25":
        story_vectors.data = _bm25_weights(story_vectors)
    return query_vectors, story_vectors


def _bm25_weights(counts: Any) -> NDArray[np.float64]:
    """Compute the BM25 weights of the words of stories, in the order of the values of their sparse counts (N, V)."""
    num_stories, num_words = counts.shape
    document_frequencies = np.bincount(counts.indices, minlength=num_words)
    word_weights = np.log(1 + (num_stories - document_frequencies + 0.5) / (document_frequencies + 0.5))
    lengths = counts.sum(axis=1)
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    norm_of_count = np.repeat(norms, np.diff(counts.indptr))
    weight_of_count = word_weights[counts.indices]
    weights: NDArray[np.float64] = weight_of_count * counts.data * (K1 + 1) / (counts.data + norm_of_count)
    return weights
