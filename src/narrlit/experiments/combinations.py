"""Combinations of systems: at least one right, majority vote, and a weighted mean with weights from other folds.

Letters in shapes: N triples, K systems.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import IntArray
from narrlit.data.splits import grouped_folds
from narrlit.experiments.fusion_weights import best_elsewhere, simplex_grid
from narrlit.experiments.systems import SEEN, Flags, SystemAnswers

FOLDS = 5
MOST_WEIGHTS = 3003
ORACLE = "at least one right (oracle)"


def combine(systems: Sequence[SystemAnswers], groups: IntArray) -> tuple[list[SystemAnswers], list[list[float]]]:
    """Combine systems by oracle, majority vote (of three or more) and weighted mean; also return weights by fold."""
    if len(systems) < 2:
        return [], []
    first, labels = systems[0], systems[0].labels
    combined = replace(first, flags=_training_flag(systems), scores=None, vectors=None)
    answers = np.stack([system.answers for system in systems])
    any_right = (answers == labels).any(axis=0)
    results = [replace(combined, name=ORACLE, answers=any_right == labels)]
    if len(systems) > 2:
        results.append(replace(combined, name="majority vote", answers=_majority(answers)))
    scores = [system.scores for system in systems if system.scores is not None]
    num_folds = min(FOLDS, len(np.unique(groups)))
    if len(scores) < 2 or num_folds < 2:
        return results, []
    means, weights = weighted_mean(scores, labels, grouped_folds(groups, num_folds))
    scores_of_means = np.stack([means, np.zeros_like(means)], axis=1)  # 0 is a tie
    results.append(replace(combined, name="weighted mean", answers=means > 0, scores=scores_of_means))
    return results, weights


def _majority(answers: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the most frequent answer (N,) of K systems (K, N), with an equal vote that of the first system."""
    votes_a = answers.sum(axis=0)
    votes_b = len(answers) - votes_a
    majority: NDArray[np.bool_] = np.where(votes_a == votes_b, answers[0], votes_a > votes_b)
    return majority


def _training_flag(systems: Sequence[SystemAnswers]) -> Flags:
    """Return the flag of a combination of systems, if one of them may have been trained on the triples."""
    flags: Flags = {}
    for system in systems:
        if SEEN in system.flags:
            flags[SEEN] = system.flags[SEEN]
    return flags


def weighted_mean(
    scores: Sequence[NDArray[np.float64]], labels: NDArray[np.bool_], folds: Sequence[IntArray]
) -> tuple[NDArray[np.float64], list[list[float]]]:
    """Average the score differences A minus B (N,) of systems, with weights chosen on other folds.

    The differences of each system are divided by their root mean square, because scales differ between models.

    Args:
        scores: (N, 2) scores of A and B, by system.
        labels: (N,) True where A is closer.
        folds: triples of each fold.

    Returns:
        The means (N,), and the weights of each fold.
    """
    by_system = np.stack(scores)
    differences = by_system[:, :, 0] - by_system[:, :, 1]
    differences /= np.maximum(np.sqrt(np.square(differences).mean(axis=1, keepdims=True)), 1e-12)
    grid = simplex_grid(_grid_step(len(differences)), len(differences))
    means = grid @ differences
    best = best_elsewhere((means > 0) == labels, grid, folds)
    return means[best, np.arange(len(labels))], [grid[best[fold[0]]].tolist() for fold in folds]


def _grid_step(num_systems: int) -> float:
    """Choose the finest step, 0.1 or larger, for a grid with at most MOST_WEIGHTS weights."""
    for steps in (10, 5, 2):
        if comb(steps + num_systems - 1, num_systems - 1) <= MOST_WEIGHTS:
            return 1 / steps
    return 1.0
