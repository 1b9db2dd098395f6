"""Matching of passages as a differentiable similarity of stories.

Letters in shapes: B stories with up to S passages, C other stories with up to T passages, D dimension of a vector.
"""

import math

import torch
from torch import Tensor


def passage_scores(
    first: Tensor,
    second: Tensor,
    first_present: Tensor,
    second_present: Tensor,
    spread: float = 0.4,
    sharpness: float | None = None,
) -> Tensor:
    """Score each pair of stories by the best matches of their passages, averaged over both directions.

    The weight of two passages is their cosine, at least 0, times the closeness of their relative positions. The score
    is that of the measure `passages` without the support of neighbors: `narrlit.measures.matching.match_score` with
    the same spread.

    Args:
        first: (B, S, D) unit vectors of the passages, in order; padding comes last and must be finite.
        second: (C, T, D) unit vectors of the other stories' passages.
        first_present: (B, S) bool, False for padding; every story has at least one passage.
        second_present: (C, T) bool.
        spread: standard deviation of the Gaussian of the distance between positions, where a story has length 1; inf:
            positions are ignored.
        sharpness: instead of the best match, the mean of a passage's matches by a softmax of their weights times this
            factor, > 0, so that all of them are trained; None: the best match alone.

    Returns:
        (B, C), from 0 to 1, in float32 or the inputs' precision if that is higher.

    >>> passages = torch.eye(2)[None]
    >>> present = torch.ones(1, 2, dtype=torch.bool)
    >>> passage_scores(passages, passages.flip(1), present, present)  # adjacent parts of a story have distance 0
    tensor([[1.]])
    """
    precision = torch.promote_types(torch.promote_types(first.dtype, second.dtype), torch.float32)
    with torch.autocast(first.device.type, enabled=False):
        cosines = torch.einsum("bsd,ctd->bsct", first.to(precision), second.to(precision))
    weights = cosines.clamp(min=0)
    if math.isfinite(spread):
        weights = weights * _closeness(first_present, second_present, spread).to(precision)
    forth = _best(weights, second_present[None, None], 3, sharpness)  # (B, S, C)
    back = _best(weights, first_present[:, :, None, None], 1, sharpness)  # (B, C, T)
    of_first = first_present[:, :, None].to(precision)
    of_second = second_present[None].to(precision)
    forth_mean = (forth * of_first).sum(1) / of_first.sum(1)
    back_mean = (back * of_second).sum(2) / of_second.sum(2)
    return (forth_mean + back_mean) / 2


def _best(weights: Tensor, present: Tensor, dim: int, sharpness: float | None) -> Tensor:
    """Reduce weights (B, S, C, T), at least 0, to the best along a dimension, or to their mean by a softmax."""
    if sharpness is None:
        return (weights * present).amax(dim)
    logits = (sharpness * weights).masked_fill(~present, float("-inf"))
    return (logits.softmax(dim) * weights).sum(dim)


def _closeness(first_present: Tensor, second_present: Tensor, spread: float) -> Tensor:
    """Compute the closeness of the positions of passages, (B, S, C, T), as `narrlit.measures.matching` does."""
    first, first_half = _intervals(first_present)
    second, second_half = _intervals(second_present)
    distances = (first[:, :, None, None] - second).abs()
    gaps = (distances - first_half[:, None, None, None] - second_half[:, None]).clamp(min=0)
    return torch.exp(-0.5 * (gaps / spread) ** 2)


def _intervals(present: Tensor) -> tuple[Tensor, Tensor]:
    """Return the relative middles (B, S) of passages, and half the length (B,) of those of each story."""
    counts = present.sum(1)
    middles = (torch.arange(present.shape[1], device=present.device) + 0.5) / counts[:, None]
    return middles, 0.5 / counts
