"""Contrastive losses, an anchor's own positive against every other candidate, and the alignment of embeddings.

Letters in shapes: B anchors, C positives, K negatives of an anchor's own, M = C + K candidates of an anchor, D
dimension of a vector.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from narrlit.losses.masks import with_positive


def ranking_loss(
    anchors: Tensor,
    positives: Tensor,
    target: Tensor,
    negatives: Tensor | None = None,
    keep: Tensor | None = None,
    scale: float = 20.0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """Multiple negatives ranking: pick each anchor's own positive out of all candidates.

    The mean over anchors i of `-log exp(scale cos(a_i, p_i)) / sum_c exp(scale cos(a_i, c))`, where c runs over the
    positives, then the negatives. NLP-FSDM (Eq. 1, after Henderson et al. 2017) has the sum over the anchors; it writes
    the scale as tau and multiplies by it: a larger value makes a sharper softmax. A temperature that divides, as
    InfoNCE has it, is scale = 1 / tau.

    Args:
        anchors: (B, D) unit vectors, B >= 1.
        positives: (C, D) unit vectors, every anchor's positive among them.
        target: (B,) int64, the position of each anchor's own positive among the C.
        negatives: (N, D) unit vectors, further candidates that every anchor shares; None for none.
        keep: (B, C + N) bool, False takes a candidate out of the row's softmax; None keeps all. An anchor's own
            positive stays in whatever the mask says: a row with nothing else left costs 0 and has gradient 0.
        scale: factor of the cosine, without unit, > 0.
        reduction: `mean` or `sum` over the anchors.

    Returns:
        () mean or sum over the anchors, in natural units (nats), in float32 or the inputs' precision if that is higher.

    Raises:
        ValueError: if `keep` isn't (B, C + N) or the target isn't (B,).

    >>> own, other = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> round(ranking_loss(own, own, torch.tensor([0]), other, scale=1.0).item(), 4)  # log(1 + exp(0 - 1))
    0.3133
    """
    candidates = positives if negatives is None else torch.cat([positives, negatives])
    return info_nce(candidate_cosines(anchors, candidates), target, keep, 1 / scale, reduction)


def info_nce(
    similarities: Tensor,
    target: Tensor,
    keep: Tensor | None = None,
    temperature: float = 0.09,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """InfoNCE: pick each anchor's own positive out of its candidates.

    The mean over anchors i of `-log exp(s_ip / tau) / sum_c exp(s_ic / tau)`, where c runs over the kept candidates
    and the own positive.

    Source: HITS, Eq. 1 and 2 (after van den Oord et al. 2019); tau = 0.09 is its published code's.

    Args:
        similarities: (B, M) cosines of each anchor with its candidates, B >= 1.
        target: (B,) int64, the column of each anchor's own positive.
        keep: (B, M) bool, False takes a candidate out of the row's softmax; None keeps all. An anchor's own
            positive stays in whatever the mask says: a row with nothing else left costs 0 and has gradient 0.
        temperature: tau > 0, in the unit of the similarities.
        reduction: `mean` or `sum` over the anchors.

    Returns:
        () mean or sum over the anchors, in natural units (nats), in float32 or the inputs' precision if that is higher.

    Raises:
        ValueError: if the similarities aren't (B, M), `keep` isn't either, or the target isn't (B,).

    >>> round(info_nce(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), temperature=1.0).item(), 4)  # log(1 + exp(-1))
    0.3133
    """
    mask = with_positive(keep, target, similarities)
    precision = torch.promote_types(similarities.dtype, torch.float32)
    logits = (similarities.to(precision) / temperature).masked_fill(~mask, float("-inf"))
    return F.cross_entropy(logits, target, reduction=reduction)


def candidate_cosines(anchors: Tensor, positives: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Cosines of each anchor with every positive and with its own negatives.

    Mixed precision would multiply in bfloat16, whose steps near 1 are 1/256, 0.08 of a logit at a temperature of 0.05;
    it is switched off here.

    Source: HITS, the s of Eq. 1 and 3.

    Args:
        anchors: (B, D) unit vectors.
        positives: (C, D) unit vectors.
        negatives: (B, K, D) unit vectors, K >= 0, row by row those of the anchor; None for none. Padding must be
            finite, and is left to a mask.

    Returns:
        (B, C + K), positives first, from -1 to 1, in float32 or the inputs' highest precision if that is higher.

    >>> east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> candidate_cosines(east, torch.cat([east, north]), -east[None])
    tensor([[ 1.,  0., -1.]])
    """
    if negatives is None:
        negatives = anchors.new_empty(len(anchors), 0, anchors.shape[-1])
    precision = torch.float32
    for x in (anchors, positives, negatives):
        precision = torch.promote_types(precision, x.dtype)
    with torch.autocast(anchors.device.type, enabled=False):
        a, p, n = anchors.to(precision), positives.to(precision), negatives.to(precision)
        with_positives = a @ p.T
        with_negatives = (n @ a[:, :, None]).squeeze(2)
        return torch.cat([with_positives, with_negatives], dim=1)


def view_contrast(anchors: Tensor, own: Tensor, other: Tensor, temperature: float = 0.07) -> Tensor:
    """Two-way InfoNCE: pick an anchor's own view out of it and another story's.

    The mean over anchors of `-log exp(cos(a, p) / tau) / (exp(cos(a, p) / tau) + exp(cos(a, n) / tau))`.

    Source: ttda704, Eq. 1, tau = 0.07.

    Args:
        anchors: (B, D) unit vectors of whole texts, B >= 1.
        own: (B, D) unit vectors of their views.
        other: (B, D) unit vectors of the same view of other stories.
        temperature: tau > 0, in the unit of the cosine.

    Returns:
        () mean over the anchors, in natural units (nats).

    Raises:
        ValueError: if the shapes differ.

    >>> a, n = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> round(view_contrast(a, a, n, temperature=1.0).item(), 4)  # log(1 + exp(0 - 1))
    0.3133
    """
    if not anchors.shape == own.shape == other.shape:
        shapes = ", ".join(str(tuple(x.shape)) for x in (anchors, own, other))
        raise ValueError(f"vectors are compared row by row, but the shapes are {shapes}")
    to_own, to_other = (anchors * own).sum(-1), (anchors * other).sum(-1)
    margin = to_own - to_other
    return F.softplus(-margin / temperature).mean()


def alignment_loss(first: Tensor, second: Tensor) -> Tensor:
    """Mean of `|| x/|x| - y/|y| ||^2`: twice the cosine distance, from 0 to 4.

    Source: ttda704, Eq. 2, without its weight lambda.

    Args:
        first: (B, D) vectors, B >= 1.
        second: (B, D), likewise.

    Returns:
        () mean over the rows.

    >>> import torch
    >>> alignment_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 3.0]]))
    tensor(2.)
    """
    differences = F.normalize(first, dim=-1) - F.normalize(second, dim=-1)
    return differences.square().sum(-1).mean()
