"""Vendi score and near-duplicates."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from measured import similarities_of
from refusals import refused

from narrlit.explore.diversity import diversity, vendi_score


@pytest.mark.parametrize("shape", [(7, 9), (9, 9), (40, 9)])
def test_vendi_score_is_that_of_the_matrix_of_cosines(shape):
    vectors = np.random.default_rng(0).normal(size=shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(vectors @ vectors.T / shape[0])
    values = values[values > 1e-10]
    assert vendi_score(vectors) == pytest.approx(np.exp(-(values * np.log(values)).sum()))


def test_vendi_score_is_1_for_copies_and_n_for_stories_that_share_nothing():
    assert vendi_score(np.tile(np.eye(6)[0], (50, 1))) == pytest.approx(1)
    assert vendi_score(np.eye(6)) == pytest.approx(6)
    assert vendi_score(np.repeat(np.eye(6), 10, axis=0)) == pytest.approx(6)


def test_a_collection_is_described():
    texts = ["A fox rode home at dawn.", "a fox  rode home at DAWN.", "A fox rode home at dawn, singing.", "Sea."]
    vectors = np.array([[1, 0], [1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
    frame = pd.DataFrame({"id": list("abcd"), "title": ["A", "", "C", "D"], "text": texts})
    about = {"model": "m"}
    stories = SimpleNamespace(
        frame=frame, vectors=vectors, about=about, similarities_by=lambda name: similarities_of(vectors, texts, name)
    )
    found = diversity(stories, cosine=0.9, jaccard=0.5)

    assert found.most_alike == {"similarity": 1.0, "ids": ["a", "b"], "titles": ["A", ""]}
    assert [found.record[name] for name in ("stories", "alike", "copies", "near_duplicates")] == [4, 2, 1, 2]
    assert found.mean_nearest_similarity == pytest.approx((1 + 1 + 0.8 + 0.6) / 4)
    assert 1 < found.vendi_score < 2
    assert found.table()["value"].tolist()[0] == 4
    with refused("no_neighbor"):
        diversity(SimpleNamespace(frame=frame[:1], vectors=vectors[:1], about=about))
