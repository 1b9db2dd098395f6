"""Metrics of retrieval against scikit-learn and hand-computed values."""

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

from narrlit.statistics.retrieval import (
    METRICS,
    METRICS_OF_VERSIONS,
    ndcg,
    ranks,
    recall,
    reciprocal_rank,
)


@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_ndcg_agrees_with_scikit_learn_for_graded_relevance_and_negative_scores(k):
    rng = np.random.default_rng(k)
    for _ in range(30):
        scores = rng.normal(size=40)
        gains = rng.choice([0, 0, 0, 1, 2, 5], size=40).astype(float)
        gains[rng.integers(40)] = 1
        rows = np.flatnonzero(gains)
        expected = ndcg_score([gains], [scores], k=k, ignore_ties=True)
        assert ndcg(ranks(scores)[rows], gains[rows], k) == pytest.approx(expected)


def test_mrr_of_single_relevant_stories_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 20))
    rows = rng.integers(20, size=50)
    placed = ranks(scores)[np.arange(50), rows]
    own = np.mean([reciprocal_rank(np.array([rank]), np.ones(1)) for rank in placed])

    assert own == pytest.approx(label_ranking_average_precision_score(np.eye(20)[rows], scores))


def test_metrics_match_a_computation_by_hand():
    """Relevant stories at ranks 2 and 12, the second with gain 3."""
    placed = np.array([2, 12])
    gains = np.array([1.0, 3.0])
    ideal = 3 / np.log2(2) + 1 / np.log2(3)
    values = {name: metric(placed, gains) for name, metric in METRICS.items()}
    expected = {"recall@1": 0, "recall@10": 0.5, "MRR": 0.5, "nDCG@10": 1 / np.log2(3) / ideal}

    assert values == pytest.approx(expected)

    values = {name: metric(placed, gains) for name, metric in METRICS_OF_VERSIONS.items()}
    assert values == pytest.approx(expected | {"recall@10": 1})
    assert METRICS_OF_VERSIONS["recall@1"](np.array([9, 1]), np.ones(2)) == 1
    assert METRICS["recall@1"](np.array([9, 1]), np.ones(2)) == 0.5
    assert recall(placed, gains, 12) == 1
    assert ndcg(np.array([1, 2]), np.array([3.0, 1.0]), 10) == 1


def test_ties_are_ranked_by_row():
    assert ranks(np.array([[1, 1, 1], [0, 1, 1]])).tolist() == [[1, 2, 3], [3, 1, 2]]


def test_ties_of_many_stories_are_ranked_by_row():
    # Up to 16 numbers NumPy's unstable sort is stable, too.
    assert ranks(np.zeros(100)).tolist() == list(range(1, 101))


@pytest.mark.parametrize("metrics", [METRICS, METRICS_OF_VERSIONS])
def test_metrics_at_10_include_rank_10_but_not_11(metrics):
    for name in ("recall@10", "nDCG@10"):
        assert metrics[name](np.array([10]), np.ones(1)) > 0
        assert metrics[name](np.array([11]), np.ones(1)) == 0
