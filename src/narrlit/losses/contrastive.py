"""Multiple negatives ranking, and the masks that say which candidates an anchor is ranked against.

Letters of the shapes: B anchors, C positives, M negatives, D dimension of a vector.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def ranking_loss(
    anchors: Tensor,
    positives: Tensor,
    target: Tensor,
    negatives: Tensor | None = None,
    keep: Tensor | None = None,
    scale: float = 20.0,
) -> Tensor:
    """Multiple negatives ranking: pick each anchor's own positive out of all candidates.

    The mean over anchors i of `-log exp(scale cos(a_i, p_i)) / sum_c exp(scale cos(a_i, c))`, where c runs over the
    positives, then the negatives. NLP-FSDM (Eq. 1, after Henderson et al. 2017) writes the scale as tau and multiplies
    by it: a larger value makes a sharper softmax. A temperature that divides, as InfoNCE has it, is scale = 1 / tau.

    Args:
        anchors: (B, D) unit vectors, B >= 1.
        positives: (C, D) unit vectors, every anchor's positive among them.
        target: (B,) int64, the place of each anchor's own positive among the C.
        negatives: (M, D) unit vectors, further candidates of every anchor; None for none.
        keep: (B, C + M) bool, False takes a candidate out of the row's softmax; None keeps all. An anchor's own
            positive stays in whatever the mask says: a row with nothing else left costs 0 and has gradient 0.
        scale: factor of the cosine, without unit.

    Returns:
        () mean over the anchors, in natural units (nats), in float32 or the inputs' precision if that is higher.

    Raises:
        ValueError: if `keep` isn't (B, C + M).

    >>> own, other = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> round(ranking_loss(own, own, torch.tensor([0]), other, scale=1.0).item(), 4)  # log(1 + exp(0 - 1))
    0.3133
    """
    candidates = positives if negatives is None else torch.cat([positives, negatives])
    logits = scale * _cosines(anchors, candidates)
    if keep is not None:
        if keep.shape != logits.shape:
            raise ValueError(f"keep has shape {tuple(keep.shape)}, but anchors x candidates is {tuple(logits.shape)}")
        # The own positive stays: a row of nothing but -inf would be NaN and spoil every gradient of the batch.
        kept = keep.scatter(1, target[:, None], True)
        logits = logits.masked_fill(~kept, float("-inf"))
    return F.cross_entropy(logits, target)


def duplicates_mask(stories: Tensor, anchors: Tensor, positives: Tensor) -> Tensor:
    """Candidates that may be negatives: no padding, and not the row's anchor or positive once more.

    A story may stand in a batch several times, as the positive of one row and a negative of another. Pushing it away
    from itself teaches nothing but noise, so the very same story never counts as its own negative.

    Args:
        stories: (C + M,) int64, the story of each candidate, positives first, -1 for padding.
        anchors: (B,) int64, the story of each anchor.
        positives: (B,) int64, the story of each anchor's own positive.

    Returns:
        (B, C + M) bool for `ranking_loss`. The own positive's column is False here; `ranking_loss` keeps it.

    >>> duplicates_mask(torch.tensor([7, 8, 5, -1]), torch.tensor([5, 6]), torch.tensor([7, 8])).int()
    tensor([[0, 1, 0, 0],
            [1, 0, 1, 0]], dtype=torch.int32)
    """
    is_anchor = stories[None, :] == anchors[:, None]
    is_positive = stories[None, :] == positives[:, None]
    return ~is_anchor & ~is_positive & (stories >= 0)[None, :]


def own_negatives_mask(owners: Tensor, rows: Tensor, positives: int) -> Tensor:
    """Every positive, but only the row's own negatives, for objectives where each anchor brings K of its own.

    Without this mask an anchor is ranked against the negatives of the whole batch.

    Args:
        owners: (M,) int64, the row each negative was made for, -1 for padding.
        rows: (B,) int64 >= 0, the number of each anchor's row; `torch.arange(B)` unless batches are gathered.
        positives: C, how many positives stand before the negatives.

    Returns:
        (B, C + M) bool, to be joined with other masks by `&`.

    >>> own_negatives_mask(torch.tensor([0, 1, -1]), torch.arange(2), positives=2).int()
    tensor([[1, 1, 1, 0, 0],
            [1, 1, 0, 1, 0]], dtype=torch.int32)
    """
    own = owners[None, :] == rows[:, None]
    return torch.cat([own.new_ones(len(rows), positives), own], dim=1)


def _cosines(x: Tensor, y: Tensor) -> Tensor:
    """Dot products of unit vectors, (B, D) and (C, D) to (B, C), never below float32.

    Mixed precision would multiply in bfloat16, whose steps near 1 are 1/256: times a scale of 20 that is 0.08 a logit.
    """
    with torch.autocast(x.device.type, enabled=False):
        precision = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
        return x.to(precision) @ y.to(precision).T
