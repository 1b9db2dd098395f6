"""Distillation: KL divergence of a student's distribution over an anchor's candidates from its teacher's.

Letters in shapes: B anchors, C positives, K negatives of an anchor's own, M = C + K candidates of an anchor.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from narrlit.losses.masks import with_positive


def distillation_loss(
    student: Tensor, teacher: Tensor, target: Tensor, keep: Tensor | None = None, temperature: float = 0.15
) -> Tensor:
    """Mean over anchors of KL(softmax(t / T) || softmax(s / T)) T^2, over the kept candidates and the own positive.

    T^2 compensates for the gradient's 1 / T^2, so that T does not change the term's weight (Hinton et al. 2015).

    Source: HITS, Eq. 4; T = 0.15 is its published code's. The paper calls its z logits, the code takes raw cosines. The
    caller chooses (the objective's `distillation.space`: cosine or logits) by what it gives: cosines, or cosines / tau,
    where tau is InfoNCE's temperature. Both sides must be of one kind. Cosines / tau at T cost what cosines do at
    T tau, times tau^-2.

    Args:
        student: (B, M) similarities of each anchor with its candidates, B >= 1: cosines, or cosines / tau.
        teacher: (B, M) the teacher's, of the same kind; they get no gradient.
        target: (B,) int64, the column of each anchor's own positive.
        keep: (B, M) bool, False takes a candidate out of both distributions, whatever its similarities; None keeps
            all. The own positive stays: a row with nothing else left costs 0 and has gradient 0.
        temperature: T > 0, in the unit of the similarities.

    Returns:
        () in natural units (nats) times T^2, in float32 or the inputs' precision if that is higher; 0 where student
        and teacher agree.

    Raises:
        ValueError: if student, teacher and `keep` aren't all (B, M), or the target isn't (B,).

    >>> student, teacher, own = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> round(distillation_loss(student, teacher, own, temperature=1.0).item(), 4)  # KL((.731, .269) || (.5, .5))
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

    Source: HITS's weight of Eq. 5; its published code lets it fall from 0.7 to 0.05 over all steps of a round.

    Args:
        step: from 0; one below counts as 0, one beyond the last as the last.
        steps: how many there are; with one or none the weight is `start`.
        start: weight at step 0.
        end: weight at the last step.

    Returns:
        The weight, without unit: `start` and `end` themselves at the two ends.

    >>> [round(linear_weight(step, 3, 0.7, 0.1), 3) for step in (-1, 0, 1, 2, 9)]
    [0.7, 0.7, 0.4, 0.1, 0.1]
    """
    if steps <= 1:
        return start
    way = min(max(step, 0), steps - 1) / (steps - 1)
    return (1 - way) * start + way * end


def _log_softmax(similarities: Tensor, kept: Tensor, temperature: float) -> Tensor:
    """Logarithms of the probabilities; 0 where a candidate is left out, as -inf less -inf would be NaN."""
    precision = torch.promote_types(similarities.dtype, torch.float32)
    logits = (similarities.to(precision) / temperature).masked_fill(~kept, float("-inf"))
    return F.log_softmax(logits, dim=1).masked_fill(~kept, 0)
