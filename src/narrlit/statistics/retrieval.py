"""Retrieval of relevant stories: metrics from the ranks of one query.

Letters in shapes: Q queries, N stories, R relevant stories of a query.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import DoubleArray, IntArray


def ranks(scores: NDArray[np.floating]) -> IntArray:
    """Rank stories by their scores, (N,) or (Q, N), from 1 for the highest score; ties are ranked by row.

    >>> ranks(np.array([0.1, -0.3, 0.9, 0.1])).tolist()
    [2, 4, 1, 3]
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    return np.argsort(order, axis=-1) + 1


def ndcg(ranks: IntArray, gains: DoubleArray, k: int) -> float:
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


def reciprocal_rank(ranks: IntArray, gains: DoubleArray) -> float:
    """Compute 1 / rank of the highest-ranked relevant story."""
    return 1 / float(ranks.min())


def recall(ranks: IntArray, gains: DoubleArray, k: int) -> float:
    """Compute the share of the relevant stories that are among the first k."""
    return float((ranks <= k).mean())


def hit(ranks: IntArray, gains: DoubleArray, k: int) -> float:
    """Return 1 if a relevant story is among the first k, else 0."""
    return float(ranks.min() <= k)


METRICS: dict[str, Callable[[IntArray, DoubleArray], float]] = {
    "recall@1": partial(recall, k=1),
    "recall@10": partial(recall, k=10),
    "MRR": reciprocal_rank,
    "nDCG@10": partial(ndcg, k=10),
}
"""Metrics of a query from ranks (R,) and positive gains (R,) of its relevant stories."""
METRICS_OF_VERSIONS = METRICS | {"recall@1": partial(hit, k=1), "recall@10": partial(hit, k=10)}
"""Metrics for versions, of which one is enough: recall@k as in metric learning (Oh Song et al. 2016)."""
