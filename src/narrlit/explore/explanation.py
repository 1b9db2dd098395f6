"""Reasons for the similarity of two stories: passages that answer one another, and sentences that it rests on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Passage = tuple[int, int, float]
"""Sentence of A, sentence of B, strength."""


def aligned_passages(vectors_a: Floats, vectors_b: Floats, chance: float) -> list[Passage]:
    """Link sentences of two stories in order, so that the sum of the links' strengths is greatest.

    Links never cross, and no sentence has two.

    Args:
        vectors_a: (S, D) unit vectors of A's sentences.
        vectors_b: (T, D) of B's.
        chance: cosine that a link has to exceed, such as `chance_level`.

    Returns:
        Links (i, j, strength) in order; strength is the cosine minus chance, above 0.

    >>> aligned_passages(np.eye(3), np.eye(3)[1:], 0.5)
    [(1, 0, 0.5), (2, 1, 0.5)]
    """
    gains = np.maximum(vectors_a @ vectors_b.T - chance, 0)
    best = np.zeros((len(vectors_a) + 1, len(vectors_b) + 1))  # of the first i and j sentences
    for i, row in enumerate(gains):
        best[i + 1, 1:] = np.maximum.accumulate(np.maximum(best[i, 1:], best[i, :-1] + row))
    links, i, j = list[Passage](), len(vectors_a), len(vectors_b)
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            links.append((i, j, float(gains[i, j])))
    return links[::-1]


def free_passages(vectors_a: Floats, vectors_b: Floats, chance: float) -> list[Passage]:
    """Link sentences as `aligned_passages` does, but in any order.

    >>> free_passages(np.eye(2), np.eye(2)[::-1], 0.5)
    [(0, 1, 0.5), (1, 0, 0.5)]
    """
    from scipy.optimize import linear_sum_assignment

    gains = np.maximum(vectors_a @ vectors_b.T - chance, 0)
    pairs = zip(*linear_sum_assignment(gains, maximize=True), strict=True)
    return [(int(i), int(j), float(gains[i, j])) for i, j in pairs if gains[i, j] > 0]


def chance_level(vectors_a: Floats, vectors_b: Floats, background: Floats, quantile: float = 0.95) -> float:
    """Compute the cosine that the best answer to a sentence seldom exceeds in an unrelated story.

    Args:
        vectors_a: (S, D) unit vectors of A's sentences.
        vectors_b: (T, D) of B's.
        background: (N, D) of the sentences of other stories, one behind the other.
        quantile: share of sentences whose best answer stays below.

    Returns:
        The quantile of the best cosines of A's sentences in any T consecutive sentences of the background, and of B's
        in any S.

    >>> chance_level(np.eye(3)[:1], np.eye(3)[:1], np.eye(3)[1:])
    0.0
    """
    from numpy.lib.stride_tricks import sliding_window_view

    best = []
    for vectors, length in ((vectors_a, len(vectors_b)), (vectors_b, len(vectors_a))):
        cosines = vectors @ background.T
        best.append(sliding_window_view(cosines, min(length, len(background)), axis=1).max(axis=-1).ravel())
    return float(np.quantile(np.concatenate(best), quantile))
