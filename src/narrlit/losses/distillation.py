"""Distillation: KL divergence between a teacher's and a student's distribution over an anchor's candidates.

Letters in shapes: B anchors, C positives, K negatives per anchor, M = C + K candidates per anchor.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from narrlit.losses.masks import with_positive


def distillation_loss(
    student: Tensor, teacher: Tensor, target: Tensor, keep: Tensor | None = None, temperature: float = 0.15
) -> Tensor:
    """Compute the mean over anchors of KL(softmax(t / T) || softmax(s / T)) T^2.

    The softmax is over the positive and all candidates that are kept. T^2 compensates for the factor 1 / T^2 of the
    gradient, so that T does not change the weight of the loss (Hinton et al. 2015).

    Source: HITS, Eq. 4; T = 0.15 is from its published code. The paper defines z as logits, the code uses cosines. Pass
    either cosines or cosines / tau, where tau is InfoNCE's temperature (the objective's option `distillation.space`).
    The loss of cosines / tau at temperature T is that of cosines at T tau, times tau^-2.

    Args:
        student: (B, M) similarities of each anchor with its candidates, B >= 1: cosines, or cosines / tau.
        teacher: (B, M) the teacher's similarities, of the same kind; no gradient flows into them.
        target: (B,) int64, column of each anchor's positive.
        keep: (B, M) bool, False removes a candidate from both distributions; None keeps all. The positive is always
            kept: a row with no other candidate has loss 0 and gradient 0.
        temperature: T > 0, in the unit of the similarities.

    Returns:
        () in natural units (nats) times T^2, in float32 or the inputs' precision if that is higher; 0 if student and
        teacher agree.

    Raises:
        ValueError: if `student`, `teacher` and `keep` are not all (B, M), or `target` is not (B,).

    >>> student, teacher, target = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> round(distillation_loss(student, teacher, target, temperature=1.0).item(), 4)  # KL((.731, .269) || (.5, .5))
    0.1109
    """
    if student.shape != teacher.shape:
        raise ValueError(f"student has shape {tuple(student.shape)}, but the teacher {tuple(teacher.shape)}")
    kept = with_positive(keep, target, student)
    log_s = _log_softmax(student, kept, temperature)
    log_t = _log_softmax(teacher.detach(), kept, temperature)
    divergence = log_t.exp() * (log_t - log_s)
    return divergence.sum(dim=1).mean() * temperature**2


def linear_weight(step: int, steps: int, start: float, end: float) -> float:
    """Compute a weight that changes linearly from `start` at step 0 to `end` at the last step, steps - 1.

    Source: HITS, the weight in Eq. 5; in its published code it falls from 0.7 to 0.05 over the steps of a round.

    Args:
        step: from 0; clamped to 0 and the last step.
        steps: number of steps; with one or none the weight is `start`.
        start: weight at step 0.
        end: weight at the last step.

    Returns:
        The weight; exactly `start` and `end` at the two ends.

    >>> [round(linear_weight(step, 3, 0.7, 0.1), 3) for step in (-1, 0, 1, 2, 9)]
    [0.7, 0.7, 0.4, 0.1, 0.1]
    """
    if steps <= 1:
        return start
    progress = min(max(step, 0), steps - 1) / (steps - 1)
    return (1 - progress) * start + progress * end


def _log_softmax(similarities: Tensor, kept: Tensor, temperature: float) -> Tensor:
    """Compute log-probabilities; 0 for candidates that are not kept, because -inf minus -inf would be NaN."""
    precision = torch.promote_types(similarities.dtype, torch.float32)
    logits = (similarities.to(precision) / temperature).masked_fill(~kept, float("-inf"))
    return F.log_softmax(logits, dim=1).masked_fill(~kept, 0)
