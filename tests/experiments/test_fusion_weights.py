"""Fused scores of many settings against fusion one by one; the grid; the choice among settings."""

from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from narrlit.experiments.fusion_weights import best_elsewhere, best_setting, fused_answers, fused_scores, simplex_grid
from narrlit.models.config import Fusion
from narrlit.models.heads import ViewFusion
from narrlit.statistics.triples import TripleAccuracy

ROWS = np.array([(0, 1, 2), (3, 2, 1), (4, 0, 3), (1, 0, 5), (8, 7, 6)])
"""Triples of nine stories."""

WEIGHTS = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
SOME_WEIGHT = WEIGHTS.filter(lambda weights: sum(weights) > 0.01)


def stories(seed, count=9, dimension=5):
    """Unit vectors (count, 4, dimension) of stories and their three views."""
    vectors = np.random.default_rng(seed).normal(size=(count, 4, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@given(st.integers(0, 1000), st.lists(SOME_WEIGHT, min_size=1))
def test_scores_are_those_of_fused_vectors(seed, weights):
    vectors = stories(seed)
    found = fused_scores(vectors, ROWS, np.array(weights))
    assert found.shape == (len(weights), len(ROWS), 2)

    for setting, scores in zip(weights, found, strict=True):
        fusion = ViewFusion(5, asdict(Fusion(*setting)))
        fused = fusion.fuse(torch.from_numpy(vectors).double()).numpy()
        for (anchor, a, b), of_both in zip(ROWS, scores, strict=True):
            np.testing.assert_allclose(of_both, [fused[anchor] @ fused[a], fused[anchor] @ fused[b]], atol=1e-6)


def test_the_same_story_twice_is_a_tie_whatever_the_weights():
    vectors = stories(3, 9, 383)
    rows = np.array([(0, 1, 1), *ROWS, (2, 4, 4)])

    scores = fused_scores(vectors, rows, simplex_grid(0.1))
    same = scores[:, [0, -1]]
    assert (same[..., 0] == same[..., 1]).all()

    _, ties = fused_answers(vectors, rows, np.ones(7), simplex_grid(0.5))
    assert ties.any(axis=0).tolist() == [True, False, False, False, False, False, True]


def test_vectors_that_cancel_out_give_no_nan():
    vectors = np.zeros((3, 4, 2), dtype=np.float32)
    vectors[:, :, 0] = [1, -1, 1, -1]
    found = fused_scores(vectors, np.array([(0, 1, 2)]), np.full((1, 4), 0.25))
    assert found.tolist() == [[[0, 0]]]


def test_answers_are_counted_as_the_metric_counts_them():
    rows = np.array([*ROWS, (0, 1, 1), (2, 3, 3)])
    labels = np.array([1, 0, 1, 0, 1, 1, 0])
    vectors = stories(4)
    grid = np.concatenate([simplex_grid(0.05)] * 2)  # more than a pass takes
    right, ties = fused_answers(vectors, rows, labels, grid)

    assert right.shape == ties.shape == (len(grid), 7)

    for place in (0, 700, 1770, 1771, len(grid) - 1):
        (scores,) = fused_scores(vectors, rows, grid[[place]])
        a, b = torch.from_numpy(scores).unbind(1)
        metric = TripleAccuracy()
        metric.update(a, b, torch.tensor(labels == 1))
        assert metric.evaluation().correct == right[place].sum()
        assert metric.evaluation().ties == ties[place].sum()

    # A tie goes to B.
    assert not right[:, 5].any()
    assert right[:, 6].all()


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 10, 20])
def test_the_grid_is_every_multiple_of_the_step(steps):
    counts = [numbers for numbers in product(range(steps + 1), repeat=4) if sum(numbers) == steps]

    grid = simplex_grid(1 / steps)

    assert grid.tolist() == (np.array(counts) / steps).tolist()
    np.testing.assert_allclose(grid.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("step", [0.3, 0, -0.1, 2, 0.001, float("nan"), 0.15])
def test_a_step_that_does_not_divide_1_is_refused(step):
    with refused("step_of_grid", finest=0.01):
        simplex_grid(step)


def test_the_most_right_answers_win_then_equal_weights_then_the_first():
    weights = np.array([[1, 0, 0, 0], [0.5, 0.1, 0.2, 0.2], [0.1, 0.5, 0.2, 0.2], [0.25, 0.25, 0.25, 0.25]])
    right = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 1]], dtype=bool)

    assert best_setting(right, weights) == 0  # the most right answers
    assert best_setting(right[:, :2], weights) == 1  # of two with two right answers, that nearer to equal weights
    assert best_setting(right[:, 2:], weights) == 3
    assert best_setting(right[1:3, 1:], weights[1:3]) == 0  # as far from equal weights: the first
    assert best_setting(right[[2, 1], 1:], weights[[2, 1]]) == 0


@given(st.integers(0, 500))
def test_selection_ignores_the_triples_of_a_fold(seed):
    generator = np.random.default_rng(seed)
    weights = simplex_grid(0.25)
    right = generator.random((len(weights), 12)) < 0.5
    folds = np.array_split(generator.permutation(12), 3)
    chosen = best_elsewhere(right, weights, folds)
    for fold in folds:
        noise = right.copy()
        noise[:, fold] = generator.random((len(weights), len(fold))) < 0.5
        assert best_elsewhere(noise, weights, folds)[fold].tolist() == chosen[fold].tolist()
        assert len(set(chosen[fold].tolist())) == 1
