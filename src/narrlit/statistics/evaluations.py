"""Accuracies as run.json has them: evaluations, made of estimates and read as estimates."""

import math
from typing import Any

from narrlit.console import counted
from narrlit.models.run_file import Evaluation
from narrlit.statistics.estimates import Estimate


def evaluation_of(accuracy: Estimate, correct: int, ties: int = 0, undefined: int = 0) -> Evaluation:
    """Describe an accuracy as run.json has it.

    Args:
        accuracy: the accuracy; NaN if a score was NaN.
        correct: number of right answers.
        ties: number of equal scores, which count as answer B.
        undefined: number of triples with a NaN score.
    """
    fields: dict[str, Any] = {"n": accuracy.n, "correct": correct, "accuracy": None, "interval": None, "ties": ties}
    if accuracy.known:
        interval = [accuracy.low, accuracy.high]
        fields |= {"accuracy": accuracy.value, "interval": interval, "interval_method": accuracy.method}
    if undefined:
        fields["undefined"] = undefined
    return Evaluation(**fields)


def estimate_of(evaluation: Evaluation) -> Estimate:
    """Return the accuracy of an evaluation in run.json; NaN if scores were NaN."""
    if evaluation.accuracy is None:
        return Estimate(math.nan, math.nan, math.nan, evaluation.n)
    low, high = evaluation.interval or (math.nan, math.nan)
    return Estimate(evaluation.accuracy, low, high, evaluation.n, evaluation.interval_method or "wilson")


def accuracy_text(evaluation: Evaluation) -> str:
    """Format the accuracy of an evaluation, with its ties; or say why it has none.

    >>> from narrlit.statistics.estimates import estimate_count
    >>> print(accuracy_text(evaluation_of(estimate_count(110, 200), 110, ties=1)))
    0.550 [0.481, 0.617], n = 200, 1 tie
    """
    if not evaluation.n:
        return "no triples"
    if evaluation.undefined:
        return f"undefined: {evaluation.undefined} of {evaluation.n} triples have a NaN score"
    ties = f", {counted(evaluation.ties, 'tie')}" if evaluation.ties else ""
    return f"{estimate_of(evaluation)}{ties}"
