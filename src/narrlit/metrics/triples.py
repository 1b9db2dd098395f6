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

    >>> print(AccuracySummary(n=200, correct=110))
    0.550 [0.481, 0.617] (110 of 200)
    """

    n: int
    correct: int
    ties: int = 0

    @property
    def accuracy(self) -> float:
        """Share of right answers, from 0 to 1; NaN without triples."""
        return self.correct / self.n if self.n else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy; (0, 1) without triples."""
        return wilson_interval(self.correct, self.n)

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; accuracy and interval are None without triples, since JSON has no NaN."""
        return {
            "n": self.n,
            "correct": self.correct,
            "accuracy": self.accuracy if self.n else None,
            "interval": list(self.interval) if self.n else None,
            "ties": self.ties,
        }

    def __str__(self) -> str:
        if not self.n:
            return "no triples"
        low, high = self.interval
        ties = f", {self.ties} {'tie' if self.ties == 1 else 'ties'}" if self.ties else ""
        return f"{self.accuracy:.3f} [{low:.3f}, {high:.3f}] ({self.correct} of {self.n}{ties})"


class TripleAccuracy(Metric):
    """Share of triples whose closer candidate is found, as SemEval-2026 Task 4 counts it.

    A is the answer if it scores strictly higher than B; a tie is an answer for B. States are three counts, so batches,
    epochs and processes add up to exactly what the whole would give.

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

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        for name in ("correct", "ties", "total"):
            self.add_state(name, default=torch.zeros((), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, score_a: Tensor, score_b: Tensor, a_is_closer: Tensor, counted: Tensor | None = None) -> None:
        """Count a batch.

        Args:
            score_a: (N,) similarity of A to the anchor, in any unit; more is closer.
            score_b: (N,) similarity of B.
            a_is_closer: (N,) bool, the labels.
            counted: (N,) bool, False for rows that don't count (no label, or a repeat that fills up a share).

        Raises:
            ValueError: if shapes differ, labels or `counted` aren't bool, or a score is NaN, counted or not.
        """
        counted = torch.ones_like(a_is_closer) if counted is None else counted
        _check(score_a, score_b, a_is_closer, counted)
        right = (score_a > score_b) == a_is_closer
        self.correct += (right & counted).sum()
        self.ties += ((score_a == score_b) & counted).sum()
        self.total += counted.sum()

    def compute(self) -> Tensor:
        """() float32 accuracy, from 0 to 1; NaN without triples."""
        return self.correct.float() / self.total.float()

    def summary(self) -> AccuracySummary:
        """The counts with their interval; summed over all processes, so each of them must call this."""
        # Within a synchronised metric the counts are the sums already, and whoever synchronised it undoes it.
        apart = not self._is_synced
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=apart, should_unsync=apart):
            return AccuracySummary(n=int(self.total), correct=int(self.correct), ties=int(self.ties))


def _check(score_a: Tensor, score_b: Tensor, a_is_closer: Tensor, counted: Tensor) -> None:
    shapes = [tuple(x.shape) for x in (score_a, score_b, a_is_closer, counted)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise ValueError(f"scores of A, of B, labels and counted must all be (N,), not {shapes}")
    if a_is_closer.dtype != torch.bool or counted.dtype != torch.bool:
        # A label of -1 for "unknown" would otherwise count as a wrong answer.
        raise ValueError(f"labels and counted must be bool, not {a_is_closer.dtype} and {counted.dtype}")
    if bool(torch.isnan(score_a).any() | torch.isnan(score_b).any()):
        # NaN compares as False, and would pass for an answer.
        raise ValueError("a score is NaN: the model that made it is broken")
