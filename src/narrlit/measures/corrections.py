"""Corrections of similarities within a collection, by centering and for hubness.

Letters in shapes: N stories of a collection, Q queries, D dimension.
"""

import numpy as np

from narrlit.data.schema import Floats

NEIGHBORS = 10
"""Number of nearest neighbors over which hubness is averaged."""


def mean_of(vectors: Floats) -> Floats:
    """Average vectors (N, D) in double precision, so that the mean (D,) does not depend on their order."""
    mean: Floats = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    return mean


def centered(vectors: Floats, mean: Floats) -> Floats:
    """Subtract a mean (D,) from unit vectors (N, D), and normalize the results.

    This removes what all stories of a collection have in common, such as genre, style and length.

    Source: Mu and Viswanath (2018), "All-but-the-Top", without the removal of components.

    >>> centered(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5])).round(2).tolist()
    [[0.71, -0.71], [-0.71, 0.71]]
    """
    return normalized(vectors - mean)


def normalized(vectors: Floats) -> Floats:
    """Scale vectors (N, D) to length 1; a vector of zeros remains zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Floats = vectors / np.maximum(lengths, 1e-12)
    return unit


def hubness(similarities: Floats, neighbors: int = NEIGHBORS) -> Floats:
    """Average the highest similarities of each row, (Q,); they are large for stories that are close to many others.

    Args:
        similarities: (Q, N), with -inf for a story with itself.
        neighbors: number of similarities to average, or all if there are fewer.

    >>> hubness(np.array([[0.9, 0.5, 0.1]]), neighbors=2).tolist()
    [0.7]
    """
    count = min(neighbors, similarities.shape[1])
    highest = -np.partition(-similarities, count - 1, axis=1)[:, :count]
    finite = np.isfinite(highest)
    total = np.where(finite, highest, 0).sum(axis=1)
    means: Floats = total / np.maximum(finite.sum(axis=1), 1)
    return means


def csls(similarities: Floats, rows: Floats, columns: Floats) -> Floats:
    """Subtract the mean hubness of both stories from each similarity (Q, N).

    This is half of the cross-domain similarity local scaling of Conneau et al. (2018), "Word translation without
    parallel data", section 2.3, which gives the same ranking.

    Args:
        similarities: (Q, N).
        rows: hubness of the queries, (Q,).
        columns: hubness of the stories, (N,).

    >>> csls(np.array([[0.8, 0.7]]), np.array([0.6]), np.array([0.6, 0.2])).round(2).tolist()
    [[0.2, 0.3]]
    """
    corrected: Floats = similarities - (rows[:, None] + columns[None, :]) / 2
    return corrected
