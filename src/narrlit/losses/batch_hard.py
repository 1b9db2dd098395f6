"""Batch-hard triplet loss for labeled stories, and the subspaces of an embedding.

Letters in shapes: N rows (the stories of a batch), D dimension of a vector.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from narrlit.losses.triplet import distances


class BatchHard(NamedTuple):
    """Loss of a batch, and the number of rows that contribute to it."""

    loss: Tensor
    """() mean over rows, in the unit of the distances; 0, with a gradient of 0, if no row has a pair."""
    rows: Tensor
    """() int64, number of rows with both a positive and a negative."""


def batch_hard(
    vectors: Tensor,
    labels: Tensor,
    margin: float,
    stories: Tensor | None = None,
    divisor: Literal["paired", "labeled"] = "paired",
) -> BatchHard:
    """Compute the mean over rows i of `max(0, |v_i - v_p| - |v_i - v_n| + margin)`.

    The hardest positive p is the farthest row with the same label, the hardest negative n the nearest row with another
    label. A row without a label, a positive or a negative has a loss of 0. In distributed training, gather the rows of
    all processes first: each process then computes the loss of the whole batch, and the averaged gradients are correct
    without scaling.

    Source: Mendel292, section 2.4 (after Hermans et al. 2017), margin 0.537 in subspaces of unit vectors. The paper
    divides by N without defining it.

    Args:
        vectors: (N, D) of any length, N >= 1; the distance is Euclidean.
        labels: (N,) int64; a row with label -1 has no label, and is neither a positive nor a negative.
        margin: in the unit of the distances.
        stories: (N,) int64, index of each row's story, the same in all processes; two rows of one story are not a
            pair. None: every row is another story.
        divisor: rows by whose number the sum is divided: those with a pair (`paired`) or with a label (`labeled`).

    Returns:
        The loss, in float32 or the vectors' precision if that is higher. Its gradient is finite everywhere; two
        identical rows contribute a gradient of 0.

    >>> row = torch.tensor([[0.0], [3.0], [1.0]])
    >>> loss, rows = batch_hard(row, torch.tensor([0, 0, 1]), margin=0.5)  # (3 - 1 + 0.5 + 3 - 2 + 0.5) / 2
    >>> loss.item(), rows.item()
    (2.0, 2)
    """
    stories = torch.arange(len(vectors), device=vectors.device) if stories is None else stories
    vectors = _precise(vectors)
    hardest = _hardest_pairs(vectors.detach(), labels, stories)
    # Compute the two distances of each row again, with gradients: the other N x N distances need none.
    d_positive = distances(vectors, vectors[hardest.positives], "euclidean")
    d_negative = distances(vectors, vectors[hardest.negatives], "euclidean")
    costs = torch.relu(d_positive - d_negative + margin) * hardest.paired
    rows = hardest.paired.sum()
    num_averaged = rows if divisor == "paired" else (labels >= 0).sum()
    return BatchHard(costs.sum() / num_averaged.clamp(min=1), rows)


def subspaces(vectors: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """Split embeddings into subspaces, each normalized to length 1.

    Source: Mendel292, sections 2 and 2.4: v = [theme, action, outcome].

    Args:
        vectors: (N, D), or with any number of leading axes.
        sizes: dimension of each subspace, in order; their sum is D.

    Returns:
        A tensor (N, size) per subspace, in float32 or the vectors' precision if that is higher. A subspace of zeros
        remains zero, with a finite gradient.

    >>> subspaces(torch.tensor([[3.0, 4.0, 0.5]]), (2, 1))
    (tensor([[0.6000, 0.8000]]), tensor([[1.]]))
    """
    parts = torch.split(_precise(vectors), list(sizes), dim=-1)
    return tuple(F.normalize(part, dim=-1) for part in parts)


def subspace_sizes(dimension: int, ratios: Sequence[float]) -> tuple[int, ...]:
    """Distribute D dimensions over subspaces in proportion to ratios, at least one dimension each.

    Fractions are rounded by the largest remainder method.

    Args:
        dimension: D, at least the number of subspaces.
        ratios: one per subspace, above 0; their sum need not be 1. Mendel292 (appendix B) has .5, .25, .25.

    Returns:
        Dimension of each subspace; their sum is D.

    Raises:
        ValueError: if there are no ratios, a ratio is not above 0, their sum is not finite, or D is too small.

    >>> subspace_sizes(256, (0.5, 0.25, 0.25)), subspace_sizes(10, (1, 1, 1))
    ((128, 64, 64), (4, 3, 3))
    """
    total = sum(ratios)
    if not ratios or not min(ratios) > 0 or not math.isfinite(dimension * total):
        raise ValueError(f"ratios must be numbers above 0 with a finite sum, not {tuple(ratios)}")
    if dimension < len(ratios):
        raise ValueError(f"{dimension} dimensions are too few for {len(ratios)} subspaces")
    quotas = [dimension * ratio / total for ratio in ratios]
    sizes = [max(1, math.floor(quota)) for quota in quotas]
    indices = range(len(sizes))

    def shortfall(i: int) -> float:
        """Return how far a subspace is below its quota."""
        return quotas[i] - sizes[i]

    while sum(sizes) < dimension:
        sizes[max(indices, key=shortfall)] += 1
    # Quotas below 1 were raised to 1: shrink the subspaces furthest above their quota.
    while sum(sizes) > dimension:
        shrinkable = [i for i in indices if sizes[i] > 1]
        sizes[min(shrinkable, key=shortfall)] -= 1
    return tuple(sizes)


class HardestPairs(NamedTuple):
    """Hardest positive and negative of each of N rows.

    Attributes:
        positives: (N,) farthest row with the same label; arbitrary if there is none.
        negatives: (N,) nearest row with another label; arbitrary if there is none.
        paired: (N,) bool, True for rows that have both.
    """

    positives: Tensor
    negatives: Tensor
    paired: Tensor


def _hardest_pairs(vectors: Tensor, labels: Tensor, stories: Tensor) -> HardestPairs:
    """Find the hardest positive and negative of each row (N, D) by labels (N,) and stories (N,)."""
    # No matrix product: |x|^2 + |y|^2 - 2 x.y rounds small distances, which changes the order of near rows.
    row_distances = torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")
    labeled = labels >= 0
    both_labeled = labeled[:, None] & labeled
    other_story = stories[:, None] != stories
    pairs = both_labeled & other_story
    same_label = labels[:, None] == labels
    positives, negatives = pairs & same_label, pairs & ~same_label
    farthest = row_distances.masked_fill(~positives, -torch.inf).argmax(1)
    nearest = row_distances.masked_fill(~negatives, torch.inf).argmin(1)
    return HardestPairs(farthest, nearest, paired=positives.any(1) & negatives.any(1))


def _precise(x: Tensor) -> Tensor:
    """Convert half precision to float32; return higher precisions unchanged."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
