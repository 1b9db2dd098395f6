"""How many settings of a fusion judge triples: all of them at once, from the cosines of the parts.

With unit vectors x_p, y_q of two stories' parts, the fused vectors' product is w^T G w with G_pq = x_p . y_q, and so
are their squared lengths, with the blocks of each story with itself. No fused vector is ever made.

Letters of the shapes: W settings, T triples, U different stories, P pairs of stories, D dimension.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.data.table import IndexedTriples, IntArray
from narrlit.errors import OptionError
from narrlit.metrics.triples import answered_rightly
from narrlit.models.fusion import PARTS

Weights = NDArray[np.float64]
_PARTS = len(PARTS)
_SETTINGS_A_PASS = 1024
_SHORTEST = 1e-12  # of a fused vector, as in torch's `normalize`
FINEST = 0.01
"""The smallest step of a grid: 176,851 settings."""


def simplex_grid(step: float) -> Weights:
    """All weights of the four parts that are multiples of a step, at least 0, and sum to 1.

    Args:
        step: from 0.01 to 1; a whole number of them is 1.

    Returns:
        (W, 4), ascending by the first part's weight, then by the second's and so on.

    Raises:
        OptionError: if no whole number of steps is 1, or the step is too small.

    >>> simplex_grid(1)
    array([[0., 0., 0., 1.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.],
           [1., 0., 0., 0.]])
    """
    steps = round(1 / step) if FINEST <= step <= 1 else 0
    if not steps or abs(steps * step - 1) > 1e-9:
        raise OptionError(f"--grid {step}: a step from {FINEST} to 1 of which a whole number is 1, such as 0.1 or 0.05")
    return np.array(list(_shares(steps, _PARTS)), dtype=np.float64) / steps


def _shares(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to deal `total` among the parts, in ascending order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _shares(total - first, parts - 1):
            yield (first, *rest)


def fused_scores(vectors: NDArray[np.float32], triples: IndexedTriples, weights: Weights) -> Weights:
    """Cosines of fused vectors for many settings.

    Source: ttda704, appendix A.4, for the fused vector.

    Args:
        vectors: (U, 4, D) unit vectors of the parts of the triples' table, in the order of PARTS.
        triples: T of them, as rows of that table.
        weights: (W, 4), in the order of PARTS.

    Returns:
        (W, T, 2) cosines of the anchor with A and with B; equal where A and B are the same story.
    """
    ends = np.concatenate([np.stack([triples.anchors, x], axis=1) for x in (triples.a, triples.b)])
    # Each pair is computed once, so that the same two stories have the same score to the last bit, and tie.
    pairs, place = np.unique(ends, axis=0, return_inverse=True)
    products = _weighted(_blocks(vectors, pairs[:, 0], pairs[:, 1]), weights)
    stories = np.arange(len(vectors))
    squares = _weighted(_blocks(vectors, stories, stories), weights)
    lengths = np.maximum(np.sqrt(np.maximum(squares, 0)), _SHORTEST)
    cosines = products / (lengths[:, pairs[:, 0]] * lengths[:, pairs[:, 1]])
    return np.stack(np.split(cosines[:, place.ravel()], 2, axis=1), axis=2)


def fused_answers(
    vectors: NDArray[np.float32], triples: IndexedTriples, weights: Weights
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which triples each setting answers rightly, and which are ties, as `TripleAccuracy` counts them.

    Args:
        vectors: (U, 4, D) unit vectors of the parts of the triples' table, in the order of PARTS.
        triples: T labelled ones, as rows of that table.
        weights: (W, 4), in the order of PARTS.

    Returns:
        Right answers (W, T); ties (W, T).
    """
    right = np.empty((len(weights), len(triples)), dtype=np.bool_)
    ties = np.empty_like(right)
    labels = torch.from_numpy(triples.labels == 1)
    for start in range(0, len(weights), _SETTINGS_A_PASS):
        here = slice(start, start + _SETTINGS_A_PASS)
        a, b = torch.from_numpy(fused_scores(vectors, triples, weights[here])).unbind(2)
        right[here] = answered_rightly(a, b, labels).numpy()
        ties[here] = (a == b).numpy()
    return right, ties


def best_setting(right: NDArray[np.bool_], weights: Weights) -> int:
    """The setting with the most right answers; of equals the one nearest to equal weights, then the first.

    Args:
        right: (W, T), which of the triples that may decide each setting answers rightly.
        weights: (W, 4).
    """
    # Rounded: 0.3 and 0.1 are as far from equal weights as 0.1 and 0.3, whatever the last bit says.
    away = np.square(weights - 1 / _PARTS).sum(axis=1).round(9)
    return int(np.lexsort((away, -right.sum(axis=1)))[0])


def best_elsewhere(right: NDArray[np.bool_], weights: Weights, folds: Sequence[IntArray]) -> list[int]:
    """For each fold the setting that is best on all others, as `best_setting` has it; its own triples decide nothing.

    Args:
        right: (W, T), which triples each setting answers rightly.
        weights: (W, 4).
        folds: the triples of each fold; every triple is in one of them.
    """
    everything = np.arange(right.shape[1])
    return [best_setting(right[:, np.setdiff1d(everything, fold)], weights) for fold in folds]


def _blocks(vectors: NDArray[np.float32], rows: IntArray, columns: IntArray) -> Weights:
    """Products (P, 16) of the parts of the stories in `rows` (P,) with those of the stories in `columns` (P,)."""
    found = np.empty((len(rows), _PARTS * _PARTS))
    for place, (x, y) in enumerate(zip(rows, columns, strict=True)):
        found[place] = (vectors[x].astype(np.float64) @ vectors[y].astype(np.float64).T).ravel()
    return found


def _weighted(blocks: Weights, weights: Weights) -> Weights:
    """Each block between each setting's weights: (W, P) of (P, 16) and (W, 4)."""
    outer = (weights[:, :, None] * weights[:, None, :]).reshape(len(weights), -1)
    return np.asarray(outer @ blocks.T)
