"""Check of an explanation: similarity of two stories without the passages with the largest shares.

Letters in shapes: S and T passages of two stories, D dimension, F fractions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from narrlit.data.schema import Floats, IntArray
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.measures.matching import match_score, match_shares, matches

FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Fractions of the passages that are removed from both stories."""
DRAWS = 5
"""Number of random orders of the passages; similarities are averaged over them."""


@dataclass(frozen=True, eq=False)
class DeletionCurve:
    """Similarities of two stories after removing the passages with the largest shares, or random passages.

    Attributes:
        frame: one row per fraction of the passages that is removed from both stories, starting at 0. Columns: removed
            (the fraction), score and score_random (scores of the remaining passages), cosine and cosine_random (cosines
            of the remaining texts, embedded whole).
    """

    frame: pd.DataFrame

    def table(self) -> pd.DataFrame:
        """Return a copy of the frame."""
        return self.frame.copy()

    def __str__(self) -> str:
        """Format the means over all fractions above 0 as two sentences."""
        whole, shortened = self.frame.iloc[0], self.frame.iloc[1:].mean()
        return (
            "Without a tenth to a half of the passages, those with the largest shares first, the score falls from "
            f"{whole.score:.3f} to {shortened.score:.3f} on average; without random ones to "
            f"{shortened.score_random:.3f}. The cosine of the texts, embedded whole, goes from {whole.cosine:.3f} to "
            f"{shortened.cosine:.3f}; without random ones to {shortened.cosine_random:.3f}."
        )


def deletion_curve(
    encoder: StoryEncoder, passages: tuple[list[str], list[str]], vectors: tuple[Floats, Floats], progress: bool = False
) -> DeletionCurve:
    """Remove passages from two stories, and compare the remaining texts.

    By definition, the score falls fastest when the passages with the largest shares are removed. The cosine of the
    remaining texts falls as well if these passages also matter when the encoder reads whole stories.

    Args:
        encoder: encoder that embeds the remaining texts.
        passages: texts of the passages of both stories.
        vectors: (S, D) and (T, D) vectors of the passages, as the measure compares them.
        progress: show a progress bar on stderr.

    Source: the deletion curves of Samek et al. (2017), "Evaluating the visualization of what a deep neural network has
        learned".
    """
    first_passages = np.array(passages[0], dtype=object)
    second_passages = np.array(passages[1], dtype=object)
    first_vectors, second_vectors = vectors
    orders = _orders(match_shares(matches(first_vectors, second_vectors)))
    scores: list[float] = []
    texts: list[str] = []  # alternately of the first and the second story
    for fraction in FRACTIONS:
        for order in orders:
            first, second = _remaining(order.first, fraction), _remaining(order.second, fraction)
            scores.append(match_score(first_vectors[first], second_vectors[second]))
            texts.append(" ".join(first_passages[first]))
            texts.append(" ".join(second_passages[second]))
    embedded = unit_vectors(encoder.embed_prepared(texts, ["story"] * len(texts), progress))
    of_first, of_second = embedded[::2], embedded[1::2]
    cosines = (of_first * of_second).sum(axis=1)
    score_by_order = np.array(scores).reshape(len(FRACTIONS), len(orders))
    cosine_by_order = cosines.reshape(len(FRACTIONS), len(orders))
    frame = pd.DataFrame(
        {
            "removed": FRACTIONS,
            "score": score_by_order[:, 0].astype(float),
            "score_random": score_by_order[:, 1:].mean(axis=1).astype(float),
            "cosine": cosine_by_order[:, 0].astype(float),
            "cosine_random": cosine_by_order[:, 1:].mean(axis=1).astype(float),
        }
    )
    return DeletionCurve(frame)


class _Order(NamedTuple):
    """Order in which the passages of the first story (S,) and of the second (T,) are removed."""

    first: IntArray
    second: IntArray


def _orders(shares: Floats) -> list[_Order]:
    """Return orders of the passages of both stories: first by their shares (S, T), then random orders."""
    of_first, of_second = shares.sum(axis=1), shares.sum(axis=0)
    orders = [_Order(np.argsort(-of_first, kind="stable"), np.argsort(-of_second, kind="stable"))]
    generator = np.random.default_rng(0)
    for _ in range(DRAWS):
        orders.append(_Order(generator.permutation(len(of_first)), generator.permutation(len(of_second))))
    return orders


def _remaining(order: IntArray, fraction: float) -> IntArray:
    """Return the rows that remain, at least one, after removing the first ones of an order; in story order."""
    removed = int(np.ceil(fraction * len(order)))
    remaining = order[min(removed, len(order) - 1) :]
    return np.sort(remaining)
