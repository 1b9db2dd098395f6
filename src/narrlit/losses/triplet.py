"""Triplet loss on distances, with a fixed or an adaptive margin.

Letters in shapes: B triples, D dimension of a vector.
"""

from typing import Literal

import torch
from torch import Tensor

Distance = Literal["cosine", "euclidean", "squared_euclidean"]


def distances(x: Tensor, y: Tensor, metric: Distance = "cosine") -> Tensor:
    """Compute the distance of each row of x to the same row of y.

    Args:
        x: (B, D) vectors; unit vectors if the metric is cosine.
        y: (B, D) vectors of the same kind.
        metric: "cosine" is 1 - x.y, from 0 to 2; "euclidean" is |x - y|; "squared_euclidean" is |x - y|^2, which for
            unit vectors is twice the cosine distance.

    Returns:
        (B,) distances. The gradient is finite everywhere; that of "euclidean" is 0 where x and y are equal.

    Raises:
        ValueError: if the metric is unknown, or the shapes differ.

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> [round(distances(x, y, metric).item(), 4) for metric in ("cosine", "euclidean", "squared_euclidean")]
    [1.0, 1.4142, 2.0]
    """
    if x.shape != y.shape:
        raise ValueError(f"vectors are compared row by row, but the shapes are {tuple(x.shape)} and {tuple(y.shape)}")
    if metric == "cosine":
        return 1 - (x * y).sum(dim=-1)
    if metric == "euclidean":
        # Not the square root of a sum: its gradient at 0 is NaN, while that of vector_norm is 0.
        norms: Tensor = torch.linalg.vector_norm(x - y, dim=-1)
        return norms
    if metric == "squared_euclidean":
        return (x - y).square().sum(dim=-1)
    raise ValueError(f"no distance named {metric!r}: cosine, euclidean, squared_euclidean")


def triplet_loss(
    d_positive: Tensor, d_negative: Tensor, margin: float | Tensor, reduction: Literal["mean", "none"] = "mean"
) -> Tensor:
    """Compute the mean of `max(0, d(a, p) - d(a, n) + margin)`, so that positives are closer than negatives.

    Source: ttda704 (single view; margin 0.3 on cosine distance); Mendel292 (margin 1.038); Comhis (margin 0.2), which
    writes the same loss with cosines: `0.2 - (cos(x, p) - cos(x, n))`.

    Args:
        d_positive: (B,) distances of the anchors to their positives, B >= 1.
        d_negative: (B,) distances of the anchors to their negatives.
        margin: in the unit of the distances; a number, or (B,) with one margin per triple.
        reduction: `mean` over the triples, or `none`.

    Returns:
        () mean over all B triples, including those with a loss of 0; (B,) losses without reduction.

    >>> triplet_loss(torch.tensor([0.5, 0.1]), torch.tensor([0.4, 0.9]), margin=0.3).item()  # (0.4 + 0) / 2
    0.20000000298023224
    """
    costs = torch.relu(d_positive - d_negative + margin)
    return costs.mean() if reduction == "mean" else costs


def adaptive_margin(
    d_positive: Tensor, d_negative: Tensor, base: float, maximum: float, detach: bool = False
) -> Tensor:
    """Compute a margin that grows with the gap between the distances: `base + 0.5 clamp(d_n - d_p, 0, maximum - base)`.

    The margin is at most (base + maximum) / 2. As published, gradient flows through the margin too: for gaps from 0 to
    maximum - base this halves the gradient of the triplet loss. With `detach`, the loss is the same and the gradient is
    not halved.

    Source: ttda704's published code, on squared Euclidean distances; its paper has a fixed margin of 0.3.

    Args:
        d_positive: (B,) distances of the anchors to their positives.
        d_negative: (B,) distances of the anchors to their negatives.
        base: margin of a triple that is ranked incorrectly, in the unit of the distances.
        maximum: limit of base + gap, in the same unit.
        detach: stop the gradient through the margin.

    Returns:
        (B,) margins for `triplet_loss`.

    >>> adaptive_margin(torch.zeros(3), torch.tensor([-1.0, 0.5, 9.0]), base=0.5, maximum=1.5)
    tensor([0.5000, 0.7500, 1.0000])
    """
    margin = base + 0.5 * (d_negative - d_positive).clamp(0, maximum - base)
    return margin.detach() if detach else margin
