"""Masks of the candidates that an anchor is compared with: True keeps a candidate.

Letters in shapes: B anchors, C positives, K negatives of an anchor's own, M = C + K candidates of an anchor.
"""

import torch
from torch import Tensor


def duplicates_mask(candidates: Tensor, anchors: Tensor, positives: Tensor) -> Tensor:
    """Mask padding, and candidates of the group of the row's own anchor or positive.

    A story may occur in a batch several times, as the positive of one row and a negative of another; it never counts as
    its own negative, nor do versions of one story. A story without versions is a group by itself.

    Args:
        candidates: (M,) int64, the group of each candidate, or (B, M) where each anchor has candidates of its own; -1
            for padding.
        anchors: (B,) int64, the group of each anchor.
        positives: (B,) int64, the group of each anchor's own positive.

    Returns:
        (B, M) bool. The own positive's column is False here; losses keep it.

    >>> duplicates_mask(torch.tensor([7, 8, 5, -1]), torch.tensor([5, 6]), torch.tensor([7, 8])).int()
    tensor([[0, 1, 0, 0],
            [1, 0, 1, 0]], dtype=torch.int32)
    """
    is_anchor = candidates == anchors[:, None]
    is_positive = candidates == positives[:, None]
    return ~is_anchor & ~is_positive & (candidates >= 0)


def teacher_mask(teacher: Tensor, target: Tensor, margin: float = -0.05) -> Tensor:
    """Mask candidates that the teacher finds too similar; kept are those with `t(a, c) <= t(a, p) + margin`.

    With a margin below 0 a candidate must be clearly less similar than the positive to count as a negative; the others
    may be false negatives.

    Source: HITS, Eq. 3, which masks where t(a, c) > t(a, p) + margin, margin = -0.05.

    Args:
        teacher: (B, M) the teacher's cosines of each anchor with its candidates, positives among them.
        target: (B,) int64, the column of each anchor's own positive.
        margin: added to the positive's cosine, from -2 to 2.

    Returns:
        (B, M) bool, True keeps; the own positive's column is True.

    >>> teacher_mask(torch.tensor([[0.80, 0.76, 0.70]]), torch.tensor([0])).int()
    tensor([[1, 0, 1]], dtype=torch.int32)
    """
    # In bfloat16 the sum would be rounded to steps of up to 1/256.
    cosines = teacher.to(torch.promote_types(teacher.dtype, torch.float32))
    positive = cosines.gather(1, target[:, None])
    return (cosines <= positive + margin).scatter(1, target[:, None], True)


def with_positive(keep: Tensor | None, target: Tensor, similarities: Tensor) -> Tensor:
    """Keep every own positive: a row of nothing but -inf would be NaN and spoil every gradient.

    Args:
        keep: (B, M) bool; None keeps all.
        target: (B,) int64, the column of each anchor's own positive.
        similarities: (B, M), which tell the shape.

    Returns:
        (B, M) bool, with the own positives kept.

    Raises:
        ValueError: if a shape does not fit.

    >>> with_positive(torch.tensor([[False, False]]), torch.tensor([1]), torch.zeros(1, 2))
    tensor([[False,  True]])
    """
    shape = similarities.shape
    if len(shape) != 2 or target.shape != shape[:1]:
        raise ValueError(f"similarities must be (B, M), target (B,), not {tuple(shape)} and {tuple(target.shape)}")
    if keep is None:
        return torch.ones_like(similarities, dtype=torch.bool)
    if keep.shape != shape:
        raise ValueError(f"keep has shape {tuple(keep.shape)}, but anchors x candidates is {tuple(shape)}")
    return keep.scatter(1, target[:, None], True)
