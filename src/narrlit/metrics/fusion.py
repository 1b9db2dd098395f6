"""Triples answered by many fusion weights at once, from the cosines of the parts (full, theme, action, outcome).

With unit vectors x_p, y_q of two stories' parts, the product of the fused vectors is w^T G w with G_pq = x_p . y_q, and
so are their squared lengths, with the blocks of each story with itself. No fused vector is ever computed.

Shapes: W weights, T triples, U stories, P pairs of stories, D dimension.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from narrlit.errors import OptionError

Weights = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

FINEST_STEP = 0.01
"""Smallest step of a grid: 176,851 weights."""

_PARTS = 4
_WEIGHTS_PER_PASS = 1024
_SHORTEST = 1e-12  # length of a fused vector, as in torch's `normalize`


def simplex_grid(step: float) -> Weights:
    """List all weights of the four parts that are multiples of a step, at least 0, and sum to 1.

    Args:
        step: from 0.01 to 1, a divisor of 1.

    Returns:
        (W, 4) in ascending order.

    Raises:
        OptionError: if 1 is no multiple of the step, or the step is too small.

    >>> simplex_grid(1)
    array([[0., 0., 0., 1.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.],
           [1., 0., 0., 0.]])
    """
    steps = round(1 / step) if FINEST_STEP <= step <= 1 else 0
    if not steps or abs(steps * step - 1) > 1e-9:
        raise OptionError(
            f"--grid {step}: a step from {FINEST_STEP} to 1 that divides 1 is needed, such as 0.1 or 0.05"
        )
    rows = [(a, b, c, steps - a - b - c) for a, b, c in product(range(steps + 1), repeat=3) if a + b + c <= steps]
    return np.array(rows, dtype=np.float64) / steps


def fused_scores(vectors: NDArray[np.float32], indices: IntArray, weights: Weights) -> Weights:
    """Compute cosines of fused vectors for many weights.

    Source: ttda704, appendix A.4, for the fused vector.

    Args:
        vectors: (U, 4, D) unit vectors of full text, theme, action and outcome.
        indices: (T, 3) story indices of anchor, A and B.
        weights: (W, 4) weights of the parts.

    Returns:
        (W, T, 2) cosines of the anchor with A and with B; equal where A and B are the same story.
    """
    ends = np.concatenate([indices[:, [0, 1]], indices[:, [0, 2]]])
    # Each pair is computed once, so that the same two stories have the same score to the last bit, and tie.
    pairs, inverse = np.unique(ends, axis=0, return_inverse=True)
    unit = vectors.astype(np.float64)
    outer = (weights[:, :, None] * weights[:, None, :]).reshape(len(weights), -1)
    squares = outer @ (unit @ unit.transpose(0, 2, 1)).reshape(len(unit), -1).T
    lengths = np.maximum(np.sqrt(np.maximum(squares, 0)), _SHORTEST)
    products = outer @ (unit[pairs[:, 0]] @ unit[pairs[:, 1]].transpose(0, 2, 1)).reshape(len(pairs), -1).T
    cosines = products / (lengths[:, pairs[:, 0]] * lengths[:, pairs[:, 1]])
    return np.stack(np.split(cosines[:, inverse.ravel()], 2, axis=1), axis=2)


def fused_answers(
    vectors: NDArray[np.float32], indices: IntArray, labels: IntArray, weights: Weights
) -> tuple[BoolArray, BoolArray]:
    """Answer triples by each of many weights, as `TripleAccuracy` counts answers.

    Args:
        vectors: (U, 4, D) unit vectors of full text, theme, action and outcome.
        indices: (T, 3) story indices of anchor, A and B.
        labels: (T,) 1 where A is closer, 0 where B is.
        weights: (W, 4) weights of the parts.

    Returns:
        Right answers (W, T); ties (W, T), which are answers for B.
    """
    right = np.empty((len(weights), len(indices)), dtype=np.bool_)
    ties = np.empty_like(right)
    for start in range(0, len(weights), _WEIGHTS_PER_PASS):
        part = slice(start, start + _WEIGHTS_PER_PASS)
        scores = fused_scores(vectors, indices, weights[part])
        right[part] = (scores[..., 0] > scores[..., 1]) == (labels == 1)
        ties[part] = scores[..., 0] == scores[..., 1]
    return right, ties


def best_setting(right: BoolArray, weights: Weights) -> int:
    """Find the weights with the most right answers; of equals those nearest to equal weights, then the first.

    Args:
        right: (W, T) right answers.
        weights: (W, 4).

    Returns:
        Row of `weights`.
    """
    # Rounded: 0.3 and 0.1 are as far from equal weights as 0.1 and 0.3, whatever the last bit.
    distances = np.square(weights - 1 / _PARTS).sum(axis=1).round(9)
    return int(np.lexsort((distances, -right.sum(axis=1)))[0])


def best_elsewhere(right: BoolArray, weights: Weights, folds: Sequence[IntArray]) -> list[int]:
    """Find for each fold the weights that are best on all others, as `best_setting` does.

    Args:
        right: (W, T) right answers.
        weights: (W, 4).
        folds: rows of the triples of each fold; every triple is in one fold.
    """
    everything = np.arange(right.shape[1])
    return [best_setting(right[:, np.setdiff1d(everything, fold)], weights) for fold in folds]
