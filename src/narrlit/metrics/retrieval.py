"""Retrieval of relevant stories: metrics of one query's ranks, and baselines that compare words.

Letters of the shapes: Q queries, N stories, V words, R relevant stories of a query.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import IntArray
from narrlit.metrics.baselines import WORD

Gains = NDArray[np.float64]
Lexical = Literal["tfidf", "bm25"]


def ranks(scores: NDArray[Any]) -> IntArray:
    """Rank the stories (N,) or (Q, N) of each query from 1, the highest score first, equal ones by row.

    >>> ranks(np.array([0.1, -0.3, 0.9, 0.1])).tolist()
    [2, 4, 1, 3]
    """
    return np.argsort(np.argsort(-scores, axis=-1, kind="stable"), axis=-1) + 1


def ndcg(ranks: IntArray, gains: Gains, k: int) -> float:
    """Compute nDCG@k of a query from its relevant stories' ranks (R,) and gains (R,), from 0 to 1.

    The gain is linear, as in trec_eval and scikit-learn (Järvelin and Kekäläinen 2002).

    >>> round(ndcg(np.array([2, 5]), np.array([1.0, 1.0]), 10), 3)
    0.624
    """
    discounted = float((gains / np.log2(ranks + 1))[ranks <= k].sum())
    ideal = np.sort(gains)[::-1][:k]
    return discounted / float((ideal / np.log2(np.arange(len(ideal)) + 2)).sum())


def reciprocal_rank(ranks: IntArray, gains: Gains) -> float:
    """Compute 1 / rank of the first relevant story."""
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
"""The same where one of several versions is enough: recall@k as in metric learning (Oh Song et al. 2016)."""
LABELS = {"recall@1": "recall@1", "recall@10": "recall@10", "mrr": "MRR", "ndcg@10": "nDCG@10"}


def lexical_vectors(kind: Lexical, queries: Sequence[str], stories: Sequence[str]) -> tuple[Any, Any]:
    """Compute sparse vectors (Q, V) and (N, V) whose products are cosines of TF-IDF vectors, or BM25 scores.

    Words and their document frequencies are those of the stories.

    Source of BM25: Robertson and Zaragoza (2009), k1 = 1.2, b = 0.75; the weight of a word is log(1 + (N - n + 0.5) /
    (n + 0.5)), as in Lucene.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

    def words(text: str) -> list[str]:
        return WORD.findall(text.lower())

    vectorizer = (TfidfVectorizer if kind == "tfidf" else CountVectorizer)(analyzer=words, dtype=np.float64)
    documents = csr_array(vectorizer.fit_transform(stories))
    asked = csr_array(vectorizer.transform(queries))
    if kind == "bm25":
        lengths = documents.sum(axis=1)
        present = np.bincount(documents.indices, minlength=documents.shape[1])
        counts = documents.data
        norms = np.repeat(1.2 * (0.25 + 0.75 * lengths / lengths.mean()), np.diff(documents.indptr))
        weights = np.log(1 + (len(lengths) - present + 0.5) / (present + 0.5))
        documents.data = weights[documents.indices] * counts * 2.2 / (counts + norms)
    return asked, documents
