"""Masks of an anchor's candidates: True keeps a candidate.

Letters in shapes: B anchors, C positives, K negatives per anchor, M = C + K candidates per anchor.
"""

import torch
from torch import Tensor


def duplicates_mask(candidates: Tensor, anchors: Tensor, positives: Tensor) -> Tensor:
    """Mask padding, and candidates from the same group as the row's anchor or positive.

    A story can occur several times in a batch, for example as the positive of one row and a negative of another. It is
    never its own negative, and versions of one story are never each other's negatives. A story without versions is a
    group by itself.

    Args:
        candidates: (M,) int64, group of each candidate, or (B, M) if each anchor has its own candidates; -1 for
            padding.
        anchors: (B,) int64, group of each anchor.
        positives: (B,) int64, group of each anchor's positive.

    Returns:
        (B, M) bool. The column of the row's positive is False; the losses keep the positive nevertheless.

    >>> duplicates_mask(torch.tensor([7, 8, 5, -1]), torch.tensor([5, 6]), torch.tensor([7, 8])).int()
    tensor([[0, 1, 0, 0],
            [1, 0, 1, 0]], dtype=torch.int32)
    """
    is_anchor = candidates == anchors[:, None]
    is_positive = candidates == positives[:, None]
    return ~is_anchor & ~is_positive & (candidates >= 0)


def teacher_mask(teacher: Tensor, target: Tensor, margin: float = -0.05) -> Tensor:
    """Mask likely false negatives, those with a teacher's cosine `t(a, c) > t(a, p) + margin`.

    With a margin below 0, only candidates that are clearly less similar than the positive count as negatives.

    Source: HITS, Eq. 3, with margin = -0.05.

    Args:
        teacher: (B, M) the teacher's cosines of each anchor with its candidates, including the positive.
        target: (B,) int64, column of each anchor's positive.
        margin: added to the positive's cosine, from -2 to 2.

    Returns:
        (B, M) bool, True keeps a candidate; the column of the row's positive is True.

    >>> teacher_mask(torch.tensor([[0.80, 0.76, 0.70]]), torch.tensor([0])).int()
    tensor([[1, 0, 1]], dtype=torch.int32)
    """
    # In bfloat16 the sum would be rounded to steps of up to 1/256.
    cosines = teacher.to(torch.promote_types(teacher.dtype, torch.float32))
    positive = cosines.gather(1, target[:, None])
    return (cosines <= positive + margin).scatter(1, target[:, None], True)


def with_positive(keep: Tensor | None, target: Tensor, similarities: Tensor) -> Tensor:
    """Add each row's positive to a mask: the softmax of a row of -inf alone would be NaN.

    Args:
        keep: (B, M) bool; None keeps all.
        target: (B,) int64, column of each anchor's positive.
        similarities: (B, M), of which only shape and device are used.

    Returns:
        (B, M) bool, True for all positives.

    Raises:
        ValueError: if the shapes do not match.

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
