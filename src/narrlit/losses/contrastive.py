"""Contrastive losses, which compare an anchor's positive with all other candidates, and the alignment of embeddings.

Letters in shapes: B anchors, C positives, K negatives per anchor, M = C + K candidates per anchor, D dimension of a
vector.
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
    """Multiple negatives ranking: select each anchor's positive among all candidates.

    The loss is the mean over anchors i of `-log exp(scale cos(a_i, p_i)) / sum_c exp(scale cos(a_i, c))`, where c runs
    over all positives and negatives. A larger scale makes a sharper softmax; InfoNCE's temperature is 1 / scale.

    Source: NLP-FSDM, Eq. 1 (after Henderson et al. 2017), which sums over the anchors and calls the scale tau.

    Args:
        anchors: (B, D) unit vectors, B >= 1.
        positives: (C, D) unit vectors, including each anchor's positive.
        target: (B,) int64, row of each anchor's positive in `positives`.
        negatives: (N, D) unit vectors, further candidates for all anchors; None for none.
        keep: (B, C + N) bool, False removes a candidate from the row's softmax; None keeps all. An anchor's positive
            is always kept: a row with no other candidate has loss 0 and gradient 0.
        scale: factor of the cosine, > 0.
        reduction: `mean` or `sum` over the anchors.

    Returns:
        () mean or sum over the anchors, in natural units (nats), in float32 or the inputs' precision if that is higher.

    Raises:
        ValueError: if `keep` is not (B, C + N) or `target` is not (B,).

    >>> anchor, negative = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> round(ranking_loss(anchor, anchor, torch.tensor([0]), negative, scale=1.0).item(), 4)  # log(1 + exp(0 - 1))
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
    """InfoNCE: select each anchor's positive among its candidates.

    The loss is the mean over anchors i of `-log exp(s_ip / tau) / sum_c exp(s_ic / tau)`, where c runs over the
    positive and all candidates that are kept.

    Source: HITS, Eq. 1 and 2 (after van den Oord et al. 2019); tau = 0.09 is from its published code.

    Args:
        similarities: (B, M) cosines of each anchor with its candidates, B >= 1.
        target: (B,) int64, column of each anchor's positive.
        keep: (B, M) bool, False removes a candidate from the row's softmax; None keeps all. An anchor's positive is
            always kept: a row with no other candidate has loss 0 and gradient 0.
        temperature: tau > 0, in the unit of the similarities.
        reduction: `mean` or `sum` over the anchors.

    Returns:
        () mean or sum over the anchors, in natural units (nats), in float32 or the inputs' precision if that is higher.

    Raises:
        ValueError: if `similarities` or `keep` is not (B, M), or `target` is not (B,).

    >>> round(info_nce(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), temperature=1.0).item(), 4)  # log(1 + exp(-1))
    0.3133
    """
    mask = with_positive(keep, target, similarities)
    precision = torch.promote_types(similarities.dtype, torch.float32)
    logits = (similarities.to(precision) / temperature).masked_fill(~mask, float("-inf"))
    return F.cross_entropy(logits, target, reduction=reduction)


def candidate_cosines(anchors: Tensor, positives: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Compute the cosines of each anchor with all positives and with its own negatives.

    Autocast is disabled: bfloat16 would round cosines near 1 to steps of 1/256, which at a temperature of 0.05 is 0.08
    in the logits.

    Source: HITS, s in Eq. 1 and 3.

    Args:
        anchors: (B, D) unit vectors.
        positives: (C, D) unit vectors.
        negatives: (B, K, D) unit vectors, the K >= 0 negatives of each anchor; None for none. Padding must be finite;
            mask its cosines.

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
    """InfoNCE over two candidates: an anchor's own view and the same view of another story.

    The loss is the mean over anchors of `-log exp(cos(a, p) / tau) / (exp(cos(a, p) / tau) + exp(cos(a, n) / tau))`,
    where p is the anchor's own view and n the other story's.

    Source: ttda704, Eq. 1, tau = 0.07.

    Args:
        anchors: (B, D) unit vectors of full texts, B >= 1.
        own: (B, D) unit vectors of the anchors' views.
        other: (B, D) unit vectors of the same views of other stories.
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
    """Compute the mean of `|| x/|x| - y/|y| ||^2`, which is twice the cosine distance, from 0 to 4.

    Source: ttda704, Eq. 2, without its weight lambda.

    Args:
        first: (B, D) vectors of any length, B >= 1.
        second: (B, D) vectors of any length.

    Returns:
        () mean over the rows.

    >>> import torch
    >>> alignment_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 3.0]]))
    tensor(2.)
    """
    differences = F.normalize(first, dim=-1) - F.normalize(second, dim=-1)
    return differences.square().sum(-1).mean()
