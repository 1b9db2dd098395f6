"""The mean and the hubs of a collection removed, against plain loops."""

import numpy as np
import pytest

from narrlit.measures.corrections import centered, csls, hubness


@pytest.fixture
def vectors():
    """Unit vectors of twelve stories with much in common."""
    drawn = np.random.default_rng(5).normal(size=(12, 6)) + 2
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_centering_removes_what_all_stories_have_in_common(vectors):
    others = ~np.eye(12, dtype=bool)
    moved = centered(vectors, vectors.mean(axis=0))
    assert np.linalg.norm(moved, axis=1) == pytest.approx(np.ones(12))
    assert (vectors @ vectors.T)[others].mean() > 0.7
    assert abs((moved @ moved.T)[others].mean()) < 0.2


def test_a_vector_equal_to_the_mean_remains_finite():
    assert centered(np.ones((1, 2)), np.ones(2)).tolist() == [[0, 0]]


def test_hubness_is_the_mean_of_the_highest_similarities_with_other_stories(vectors):
    similarities = vectors @ vectors.T
    np.fill_diagonal(similarities, -np.inf)
    for row, found in zip(similarities, hubness(similarities, neighbors=4), strict=True):
        assert found == pytest.approx(sum(sorted(row)[-4:]) / 4)


def test_a_small_collection_has_fewer_neighbors():
    similarities = np.array([[-np.inf, 0.5], [0.5, -np.inf]])
    assert hubness(similarities).tolist() == [0.5, 0.5]
    assert hubness(np.array([[-np.inf]])).tolist() == [0]


def test_csls_ranks_a_true_neighbor_above_a_hub(vectors):
    similarities = np.array([[0.60, 0.62]])
    rows = np.array([0.5])
    columns = np.array([0.3, 0.7])
    corrected = csls(similarities, rows, columns)

    assert corrected == pytest.approx(np.array([[0.60 - 0.4, 0.62 - 0.6]]))
    assert corrected[0].argmax() == 0
