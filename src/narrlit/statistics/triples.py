"""Accuracy over triples: the share of triples whose closer candidate scores higher."""

import math

import torch
from torch import Tensor
from torchmetrics import Metric

from narrlit.compat.torchmetrics import is_synced
from narrlit.models.run_file import Evaluation
from narrlit.statistics.estimates import Estimate, estimate_count
from narrlit.statistics.evaluations import estimate_of, evaluation_of


class TripleAccuracy(Metric):
    """Share of triples whose closer candidate scores higher, as in SemEval-2026 Task 4.

    The answer is A if it scores strictly higher than B; a tie counts as answer B. The states are counts, so that
    batches and processes are summed exactly. A NaN score is an error or, with `allow_nan`, makes the accuracy NaN.

    >>> metric = TripleAccuracy()
    >>> metric.update(torch.tensor([0.9, 0.2, 0.5]), torch.tensor([0.1, 0.3, 0.5]), torch.tensor([True, True, False]))
    >>> print(metric.summary())
    0.667 [0.208, 0.939], n = 3
    >>> print(metric.evaluation().ties)
    1
    """

    full_state_update = False
    higher_is_better = True

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
        """Add a batch of N triples.

        Args:
            score_a: (N,) scores of A; higher scores mean closer.
            score_b: (N,) scores of B.
            a_is_closer: (N,) bool, labels.
            counted: (N,) bool, False for rows to ignore; None: no row is ignored.

        Raises:
            ValueError: for other shapes or dtypes, or for a NaN score without `allow_nan`.
        """
        counted = torch.ones_like(a_is_closer) if counted is None else counted
        shapes = [tuple(column.shape) for column in (score_a, score_b, a_is_closer, counted)]
        if len(set(shapes)) > 1 or score_a.ndim != 1:
            raise ValueError(f"scores of A, of B, labels and counted must all be (N,), not {shapes}")
        if a_is_closer.dtype != torch.bool or counted.dtype != torch.bool:
            # A label of -1 for "unknown" would otherwise count as a wrong answer.
            raise ValueError(f"labels and counted must be bool, not {a_is_closer.dtype} and {counted.dtype}")
        undefined = torch.isnan(score_a) | torch.isnan(score_b)
        if not self.allow_nan and bool(undefined.any()):
            # Comparisons with NaN are False, which would count as answer B.
            raise ValueError("a score is NaN: the model's weights are damaged")
        self.undefined += (undefined & counted).sum()
        self.correct += (answered_correctly(score_a, score_b, a_is_closer) & counted).sum()
        self.ties += ((score_a == score_b) & counted).sum()
        self.total += counted.sum()

    def compute(self) -> Tensor:
        """Compute the accuracy, () float32; NaN without triples or with a NaN score."""
        accuracy = self.correct.float() / self.total.float()
        return torch.where(self.undefined > 0, torch.nan, accuracy)

    def summary(self) -> Estimate:
        """Compute the accuracy with its interval from the counts of all processes; each process must call this."""
        return estimate_of(self.evaluation())

    def evaluation(self) -> Evaluation:
        """Describe the counts of all processes as run.json has them; each process must call this."""
        # A synchronized metric already has the sums of all processes.
        needs_sync = not is_synced(self)
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=needs_sync, should_unsync=needs_sync):
            n, correct, ties, undefined = map(int, (self.total, self.correct, self.ties, self.undefined))
        accuracy = Estimate(math.nan, math.nan, math.nan, n) if undefined else estimate_count(correct, n)
        return evaluation_of(accuracy, correct, ties, undefined)


def answered_correctly(score_a: Tensor, score_b: Tensor, a_is_closer: Tensor) -> Tensor:
    """Mark correct answers, (N,) bool: the answer is A if it scores strictly higher; a tie counts as answer B."""
    return (score_a > score_b) == a_is_closer
