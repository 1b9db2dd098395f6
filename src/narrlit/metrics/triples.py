"""Accuracy over triples: how often the candidate that scores higher is the one that is closer."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from narrlit.metrics.statistics import wilson_interval


@dataclass(frozen=True, slots=True)
class AccuracySummary:
    """An accuracy with what is needed to judge it.

    Attributes:
        n: how many triples were judged.
        correct: how many of them rightly.
        ties: how many had equal scores, and so went to B.
        undefined: how many had a score that is NaN; with one or more of them there is no accuracy.

    >>> print(AccuracySummary(n=200, correct=110))
    0.550 [0.481, 0.617] (110 of 200)
    """

    n: int
    correct: int
    ties: int = 0
    undefined: int = 0

    @property
    def known(self) -> bool:
        """Whether there is an accuracy: of at least one triple, and no score was NaN."""
        return self.n > 0 and not self.undefined

    @property
    def accuracy(self) -> float:
        """Share of right answers, from 0 to 1; NaN where there is none."""
        return self.correct / self.n if self.known else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy; (0, 1) where there is none."""
        return wilson_interval(self.correct, self.n) if self.known else (0.0, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; where there is no accuracy it is None, since JSON has no NaN."""
        return {
            "n": self.n,
            "correct": self.correct,
            "accuracy": self.accuracy if self.known else None,
            "interval": list(self.interval) if self.known else None,
            "ties": self.ties,
            **({"undefined": self.undefined} if self.undefined else {}),
        }

    def __str__(self) -> str:
        if not self.n:
            return "no triples"
        if self.undefined:
            return f"undefined: {self.undefined} of {self.n} triples have a score that is NaN"
        low, high = self.interval
        ties = f", {self.ties} {'tie' if self.ties == 1 else 'ties'}" if self.ties else ""
        return f"{self.accuracy:.3f} [{low:.3f}, {high:.3f}] ({self.correct} of {self.n}{ties})"


class TripleAccuracy(Metric):
    """Share of triples whose closer candidate is found, as SemEval-2026 Task 4 counts it.

    A is the answer if it scores strictly higher than B; a tie is an answer for B. States are three counts, so batches,
    epochs and processes add up to exactly what the whole would give. A score that is NaN is an error, or, with
    `allow_nan`, makes the accuracy NaN: a fit that has diverged goes on, and its record says so.

    >>> metric = TripleAccuracy()
    >>> metric.update(torch.tensor([0.9, 0.2, 0.5]), torch.tensor([0.1, 0.3, 0.5]), torch.tensor([True, True, False]))
    >>> print(metric.summary())
    0.667 [0.208, 0.939] (2 of 3, 1 tie)
    """

    full_state_update = False
    higher_is_better = True
    is_differentiable = False

    correct: Tensor
    ties: Tensor
    total: Tensor
    undefined: Tensor

    def __init__(self, allow_nan: bool = False, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.allow_nan = allow_nan
        for name in ("correct", "ties", "total", "undefined"):
            self.add_state(name, default=torch.zeros((), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, score_a: Tensor, score_b: Tensor, a_is_closer: Tensor, counted: Tensor | None = None) -> None:
        """Count a batch.

        Args:
            score_a: (N,) similarity of A to the anchor, in any unit; more is closer.
            score_b: (N,) similarity of B.
            a_is_closer: (N,) bool, the labels.
            counted: (N,) bool, False for rows that don't count (no label, or a repeat that fills up a share).

        Raises:
            ValueError: if shapes differ, labels or `counted` aren't bool, or a score is NaN, counted or not, unless
                that is allowed.
        """
        counted = torch.ones_like(a_is_closer) if counted is None else counted
        _check(score_a, score_b, a_is_closer, counted)
        undefined = torch.isnan(score_a) | torch.isnan(score_b)
        if not self.allow_nan and bool(undefined.any()):
            # NaN compares as False, and would pass for an answer.
            raise ValueError("a score is NaN: the model that made it is broken")
        self.undefined += (undefined & counted).sum()
        right = answered_rightly(score_a, score_b, a_is_closer)
        self.correct += (right & counted).sum()
        self.ties += ((score_a == score_b) & counted).sum()
        self.total += counted.sum()

    def compute(self) -> Tensor:
        """() float32 accuracy, from 0 to 1; NaN without triples, or where a score was NaN."""
        accuracy = self.correct.float() / self.total.float()
        return torch.where(self.undefined > 0, torch.nan, accuracy)

    def summary(self) -> AccuracySummary:
        """The counts with their interval; summed over all processes, so each of them must call this."""
        # Within a synchronised metric the counts are the sums already, and whoever synchronised it undoes it.
        apart = not self._is_synced
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=apart, should_unsync=apart):
            return AccuracySummary(int(self.total), int(self.correct), int(self.ties), int(self.undefined))


def answered_rightly(score_a: Tensor, score_b: Tensor, a_is_closer: Tensor) -> Tensor:
    """Which answers are right, (N,) bool: A is the answer if it scores strictly higher, a tie is an answer for B.

    Args:
        score_a: (N,) similarity of A to the anchor, in any unit; more is closer.
        score_b: (N,) similarity of B.
        a_is_closer: (N,) bool, the labels.
    """
    return (score_a > score_b) == a_is_closer


def _check(score_a: Tensor, score_b: Tensor, a_is_closer: Tensor, counted: Tensor) -> None:
    shapes = [tuple(x.shape) for x in (score_a, score_b, a_is_closer, counted)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise ValueError(f"scores of A, of B, labels and counted must all be (N,), not {shapes}")
    if a_is_closer.dtype != torch.bool or counted.dtype != torch.bool:
        # A label of -1 for "unknown" would otherwise count as a wrong answer.
        raise ValueError(f"labels and counted must be bool, not {a_is_closer.dtype} and {counted.dtype}")
