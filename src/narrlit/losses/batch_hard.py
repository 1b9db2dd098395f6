"""Batch-hard triplet loss over labels, and the subspaces of an embedding that it is computed in.

Letters in shapes: N rows (stories of a batch), D dimension of a vector.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from narrlit.losses.triplet import distances


class BatchHard(NamedTuple):
    """Loss of a batch, and the number of rows that contribute."""

    loss: Tensor
    """() mean over rows, in the unit of the distances; 0 with a graph where none has a pair."""
    rows: Tensor
    """() int64, rows that have both a positive and a negative."""


def batch_hard(
    vectors: Tensor,
    labels: Tensor,
    margin: float,
    stories: Tensor | None = None,
    divisor: Literal["paired", "labeled"] = "paired",
) -> BatchHard:
    """Mean over rows i of `max(0, |v_i - v_p| - |v_i - v_n| + margin)`, p and n the hardest that the batch holds.

    p is the row farthest from i among those with its label, n the nearest among those with another. A row that has no
    label, no p or no n costs nothing. Where several processes train, gather their rows before: each process then has
    the whole batch's loss, and averaged gradients are right without a factor.

    Source: Mendel292, section 2.4 (after Hermans et al. 2017), margin 0.537 in subspaces of unit vectors. Its mean is
    over N, which it does not define.

    Args:
        vectors: (N, D) of any length, N >= 1; the distance is Euclidean.
        labels: (N,) int64, -1 where a row has none: it is then neither positive nor negative of another.
        margin: in the unit of the distances.
        stories: (N,) int64, the story of each row, numbered alike in all processes; rows of the same story are no pair.
            None: all are different ones.
        divisor: rows that the sum is divided by: those that have a pair (`paired`) or a label (`labeled`).

    Returns:
        The loss, in float32 or the vectors' precision if that is higher. Its gradient is finite everywhere; that of the
        distance of two rows that coincide is 0.

    >>> row = torch.tensor([[0.0], [3.0], [1.0]])
    >>> loss, rows = batch_hard(row, torch.tensor([0, 0, 1]), margin=0.5)  # (3 - 1 + 0.5 + 3 - 2 + 0.5) / 2
    >>> loss.item(), rows.item()
    (2.0, 2)
    """
    stories = torch.arange(len(vectors), device=vectors.device) if stories is None else stories
    vectors = _precise(vectors)
    hardest = _hardest_pairs(vectors.detach(), labels, stories)
    # Measured once more, with a graph: of all N x N distances two a row need one, and `distances` is right at 0.
    d_positive = distances(vectors, vectors[hardest.positives], "euclidean")
    d_negative = distances(vectors, vectors[hardest.negatives], "euclidean")
    costs = torch.relu(d_positive - d_negative + margin) * hardest.paired
    rows = hardest.paired.sum()
    counted = rows if divisor == "paired" else (labels >= 0).sum()
    return BatchHard(costs.sum() / counted.clamp(min=1), rows)


def subspaces(vectors: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Cut embeddings into subspaces, each normalized to length 1.

    Source: Mendel292, sections 2 and 2.4: v = [theme, action, outcome].

    Args:
        vectors: (N, D), or any number of axes before the last.
        sizes: dimension of each subspace, in order; together D.

    Returns:
        A tensor (N, size) for each, in float32 or the vectors' precision if that is higher. A subspace of zeros stays
        so, and its gradient is finite.

    >>> subspaces(torch.tensor([[3.0, 4.0, 0.5]]), (2, 1))
    (tensor([[0.6000, 0.8000]]), tensor([[1.]]))
    """
    return tuple(F.normalize(part, dim=-1) for part in torch.split(_precise(vectors), list(sizes), dim=-1))


def subspace_sizes(dimension: int, ratios: Sequence[float]) -> tuple[int, ...]:
    """Divide D dimensions by ratios, by largest remainder; each subspace gets at least one.

    Args:
        dimension: D.
        ratios: one for each subspace, above 0; their sum need not be 1. Mendel292 (appendix B) has .5, .25, .25.

    Returns:
        Dimensions of the subspaces, whose sum is D.

    >>> subspace_sizes(256, (0.5, 0.25, 0.25)), subspace_sizes(10, (1, 1, 1))
    ((128, 64, 64), (4, 3, 3))
    """
    quotas = [dimension * ratio / sum(ratios) for ratio in ratios]
    sizes = [max(1, math.floor(quota)) for quota in quotas]
    indices = range(len(sizes))

    def missing(i: int) -> float:
        """Return how far a subspace is below its quota."""
        return quotas[i] - sizes[i]

    while sum(sizes) < dimension:
        sizes[max(indices, key=missing)] += 1
    # Small ratios were lifted to 1: the subspaces furthest above their quota become smaller.
    while sum(sizes) > dimension:
        divisible = [i for i in indices if sizes[i] > 1]
        sizes[min(divisible, key=missing)] -= 1
    return tuple(sizes)


class HardestPairs(NamedTuple):
    """Rows that are farthest from and nearest to each of N rows, among those that it is paired with.

    Attributes:
        positives: (N,) farthest row of the same label; any row where there is none.
        negatives: (N,) nearest row of another label; any row where there is none.
        paired: (N,) bool, True for rows that have both.
    """

    positives: Tensor
    negatives: Tensor
    paired: Tensor


def _hardest_pairs(vectors: Tensor, labels: Tensor, stories: Tensor) -> HardestPairs:
    # Not by matrix product: |x|^2 + |y|^2 - 2 x.y loses small distances to rounding, and so the order of near rows.
    apart = torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")
    known = labels >= 0
    pairs = known[:, None] & known & (stories[:, None] != stories)
    alike = labels[:, None] == labels
    positives, negatives = pairs & alike, pairs & ~alike
    farthest = apart.masked_fill(~positives, -torch.inf).argmax(1)
    nearest = apart.masked_fill(~negatives, torch.inf).argmin(1)
    return HardestPairs(farthest, nearest, paired=positives.any(1) & negatives.any(1))


def _precise(x: Tensor) -> Tensor:
    """Convert half precision to float32; leave anything more precise as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
