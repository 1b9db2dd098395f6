"""Fusion weights of text and views: a grid of weights, answers by many weights at once, and the best weights.

Letters in shapes: T triples, U different stories, W weights, P parts, D dimension.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import BoolArray, DoubleArray, IntArray
from narrlit.errors import OptionError
from narrlit.models.config import PARTS

FINEST_STEP = 0.01
"""Smallest step of a grid: 176,851 weights."""

_WEIGHTS_PER_PASS = 1024
_SHORTEST = 1e-12  # length of a fused vector, as in torch's `normalize`


def simplex_grid(step: float, parts: int = len(PARTS)) -> DoubleArray:
    """List all weights (W, P) of P parts that are multiples of a step, at least 0, and sum to 1.

    >>> simplex_grid(1)
    array([[0., 0., 0., 1.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.],
           [1., 0., 0., 0.]])
    """
    steps = round(1 / step) if FINEST_STEP <= step <= 1 else 0
    if not steps or abs(steps * step - 1) > 1e-9:
        raise OptionError("step_of_grid", step=step, finest=FINEST_STEP)
    # A weight is the number of steps between two of P - 1 bars.
    positions = steps + parts - 1
    bars = np.array(list(combinations(range(positions), parts - 1)), dtype=np.float64)
    distances = np.diff(bars, prepend=-1, append=positions)
    return (distances - 1) / steps


def fused_scores(vectors: NDArray[np.float32], indices: IntArray, weights: DoubleArray) -> DoubleArray:
    """Compute cosines (W, T, 2) of the anchor with A and with B for many weights (W, 4) of the parts.

    With unit vectors x_p, y_q of the parts of two stories, the product of the fused vectors is w^T G w with
    G_pq = x_p . y_q, and their squared lengths are the products of each story with itself. Fused vectors are never
    computed.

    Source: ttda704, appendix A.4, for the fused vector.

    Args:
        vectors: (U, 4, D) unit vectors of full text, theme, action and outcome.
        indices: (T, 3) story indices of anchor, A and B.
        weights: (W, 4) weights of the parts.
    """
    pairs_of_triples = np.concatenate([indices[:, [0, 1]], indices[:, [0, 2]]])
    # Each pair is computed once, so that equal pairs have exactly the same score.
    pairs, pair_of = np.unique(pairs_of_triples, axis=0, return_inverse=True)
    cosines_of_pairs = _pair_cosines(vectors.astype(np.float64), pairs, weights)
    cosines_of_triples = cosines_of_pairs[:, pair_of.ravel()]
    with_a, with_b = np.split(cosines_of_triples, 2, axis=1)
    return np.stack([with_a, with_b], axis=2)


def _pair_cosines(unit: DoubleArray, pairs: IntArray, weights: DoubleArray) -> DoubleArray:
    """Compute cosines (W, N) of pairs of stories for many weights (W, P) of the parts.

    Args:
        unit: (U, P, D) unit vectors of the parts of each story.
        pairs: (N, 2) story indices.
        weights: (W, P) weights of the parts.
    """
    first, second = pairs[:, 0], pairs[:, 1]
    products_of_weights = weights[:, :, None] * weights[:, None, :]
    weight_products = products_of_weights.reshape(len(weights), -1)
    squared_lengths = weight_products @ _part_products(unit, unit).T
    lengths = np.maximum(np.sqrt(np.maximum(squared_lengths, 0)), _SHORTEST)
    products = weight_products @ _part_products(unit[first], unit[second]).T
    cosines: DoubleArray = products / (lengths[:, first] * lengths[:, second])
    return cosines


def _part_products(first: DoubleArray, second: DoubleArray) -> DoubleArray:
    """Compute the products (N, P P) of each part of N stories (N, P, D) with each part of N others (N, P, D)."""
    return (first @ second.transpose(0, 2, 1)).reshape(len(first), -1)


def fused_answers(
    vectors: NDArray[np.float32], indices: IntArray, labels: IntArray, weights: DoubleArray
) -> tuple[BoolArray, BoolArray]:
    """Answer triples by many weights.

    Args:
        vectors: (U, 4, D) unit vectors of full text, theme, action and outcome.
        indices: (T, 3) story indices of anchor, A and B.
        labels: (T,) 1 if A is closer.
        weights: (W, 4) weights of the parts.

    Returns:
        (W, T) True for right answers, and (W, T) True for equal scores, which count as answers for B.
    """
    right = np.empty((len(weights), len(indices)), dtype=np.bool_)
    ties = np.empty_like(right)
    for start in range(0, len(weights), _WEIGHTS_PER_PASS):
        block = slice(start, start + _WEIGHTS_PER_PASS)
        scores = fused_scores(vectors, indices, weights[block])
        score_a, score_b = scores[..., 0], scores[..., 1]
        right[block] = (score_a > score_b) == (labels == 1)
        ties[block] = score_a == score_b
    return right, ties


def best_setting(right: BoolArray, weights: DoubleArray) -> int:
    """Find the row of the weights (W, P) with the most right answers (W, T).

    Ties are broken by the distance to equal weights, then by order.
    """
    # Rounded, so that the distances of permuted weights, such as (0.3, 0.1) and (0.1, 0.3), are exactly equal.
    from_equal = weights - 1 / weights.shape[1]
    distances = np.square(from_equal).sum(axis=1).round(9)
    most_right_first = np.lexsort((distances, -right.sum(axis=1)))
    return int(most_right_first[0])


def best_elsewhere(right: BoolArray, weights: DoubleArray, folds: Sequence[IntArray]) -> IntArray:
    """Find the row (T,) of the weights for each triple: that which is best on all other folds.

    Args:
        right: (W, T) True for right answers.
        weights: (W, P) weights of the parts.
        folds: triples of each fold.
    """
    best = np.empty(right.shape[1], dtype=np.int64)
    for fold in folds:
        best[fold] = best_setting(np.delete(right, fold, axis=1), weights)
    return best
