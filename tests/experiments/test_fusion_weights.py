"""Fused scores of many settings against fusion one by one; the grid; the choice among settings."""

from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from narrlit.errors import OptionError
from narrlit.experiments.fusion_weights import best_elsewhere, best_setting, fused_answers, fused_scores, simplex_grid
from narrlit.metrics.triples import TripleAccuracy
from narrlit.models.config import Fusion
from narrlit.models.heads import ViewFusion


def stories(seed, count=9, dimension=5):
    vectors = np.random.default_rng(seed).normal(size=(count, 4, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


ROWS = np.array([(0, 1, 2), (3, 2, 1), (4, 0, 3), (1, 0, 5), (8, 7, 6)])


@given(st.integers(0, 1000), st.lists(st.tuples(*[st.floats(0, 1)] * 4).filter(lambda w: sum(w) > 0.01), min_size=1))
def test_scores_are_those_of_fused_vectors(seed, weights):
    vectors = stories(seed)
    found = fused_scores(vectors, ROWS, np.array(weights))
    assert found.shape == (len(weights), len(ROWS), 2)

    for setting, scores in zip(weights, found, strict=True):
        fusion = ViewFusion(5, asdict(Fusion(*setting)))
        fused = fusion.fuse(torch.from_numpy(vectors).double()).numpy()
        plain = [[fused[x] @ fused[a], fused[x] @ fused[b]] for x, a, b in ROWS]
        np.testing.assert_allclose(scores, plain, atol=1e-6)


def test_the_same_story_twice_is_a_tie_whatever_the_weights():
    rows = np.array([(0, 1, 1), *ROWS, (2, 4, 4)])
    found = fused_scores(stories(3, 9, 383), rows, simplex_grid(0.1))
    assert (found[:, [0, -1], 0] == found[:, [0, -1], 1]).all()
    ties = fused_answers(stories(3, 9, 383), rows, np.ones(7), simplex_grid(0.5)).ties
    assert ties.any(axis=0).tolist() == [True, *[False] * len(ROWS), True]


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
    answers = fused_answers(vectors, rows, labels, grid)
    right, ties = answers.right, answers.ties

    assert right.shape == ties.shape == (len(grid), 7)

    for place in (0, 700, 1770, 1771, len(grid) - 1):
        metric = TripleAccuracy()
        a, b = torch.from_numpy(fused_scores(vectors, rows, grid[place : place + 1])[0]).unbind(1)
        metric.update(a, b, torch.tensor(labels == 1))
        assert metric.summary().correct == right[place].sum()
        assert metric.summary().ties == ties[place].sum()

    # a tie goes to B
    assert not right[:, 5].any()
    assert right[:, 6].all()


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 10, 20])
def test_the_grid_is_every_multiple_of_the_step(steps):
    expected = [counts for counts in product(range(steps + 1), repeat=4) if sum(counts) == steps]
    found = simplex_grid(1 / steps)
    assert found.tolist() == [[count / steps for count in counts] for counts in expected]
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("step", [0.3, 0, -0.1, 2, 0.001, float("nan"), 0.15])
def test_a_step_that_does_not_divide_1_is_refused(step):
    with pytest.raises(OptionError, match=f"`grid={step}`: a step from 0.01 to 1"):
        simplex_grid(step)


def test_the_most_right_answers_win_then_equal_weights_then_the_first():
    weights = np.array([[1, 0, 0, 0], [0.5, 0.1, 0.2, 0.2], [0.1, 0.5, 0.2, 0.2], [0.25, 0.25, 0.25, 0.25]])
    right = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 1]], dtype=bool)
    assert best_setting(right, weights) == 0
    assert best_setting(right[:, :2], weights) == 1
    assert best_setting(right[:, 2:], weights) == 3
    assert best_setting(right[1:3, 1:], weights[1:3]) == 0  # as far from equal weights: the first
    assert best_setting(right[[2, 1], 1:], weights[[2, 1]]) == 0


@given(st.integers(0, 500))
def test_a_folds_own_triples_decide_nothing(seed):
    generator = np.random.default_rng(seed)
    weights = simplex_grid(0.25)
    right = generator.random((len(weights), 12)) < 0.5
    folds = np.array_split(generator.permutation(12), 3)
    chosen = best_elsewhere(right, weights, folds)
    for fold, place in zip(folds, chosen, strict=True):
        noise = right.copy()
        noise[:, fold] = generator.random((len(weights), len(fold))) < 0.5
        assert best_elsewhere(noise, weights, [fold]) == [place]
