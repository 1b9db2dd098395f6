"""Diagnostics of similarities, against plain loops: hubs, and lengths."""

import numpy as np
import pytest
from measured import fitted
from scipy.stats import skew

from narrlit.measures.representations import Contents
from narrlit.statistics.diagnostics import SimilarityDiagnostics, k_occurrences, log_lengths, similarity_diagnostics


def random_similarities(count, seed=0):
    """Similarities that are not symmetric, so that rows and columns differ."""
    return np.random.default_rng(seed).normal(size=(count, count))


def test_hubs_are_neighbors_of_many_stories():
    found = random_similarities(40)
    counts = [0] * 40
    for i in range(40):
        others = sorted((j for j in range(40) if j != i), key=lambda j: -found[i, j])
        for j in others[:10]:
            counts[j] += 1

    assert k_occurrences(found).tolist() == counts

    assert similarity_diagnostics(found).hub_skewness == pytest.approx(skew(counts))

    hub = found.copy()
    hub[:, :2] += 100
    assert similarity_diagnostics(hub).hub_skewness > 2


def test_only_large_figures_give_warnings():
    plain = random_similarities(60)
    assert similarity_diagnostics(plain).warnings == []

    hubs = plain.copy()
    hubs[:, :3] += 100
    assert similarity_diagnostics(hubs).warnings[-1].startswith("A few stories are close to many others")
    assert SimilarityDiagnostics(24, 1.1).warnings == []
    assert SimilarityDiagnostics(24, None).warnings == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_skewness_of_few_or_equal_stories_is_undefined(count):
    measured = similarity_diagnostics(np.ones((count, count)))
    assert measured.hub_skewness is None
    assert measured.record == {"stories": count, "hub_skewness": None, "warnings": []}


def test_a_text_without_words_has_a_length():
    assert log_lengths(["...", "one", "l'un l'autre"]).tolist() == [0, 0, np.log(2)]


def test_diagnostics_use_the_similarities_of_the_whole_collection():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(50, 5)).astype(np.float32) + 1
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = ["word " * int(generator.integers(1, 50)) for _ in range(50)]
    measured = fitted("csls", Contents(vectors, texts))

    assert measured.diagnostics() == similarity_diagnostics(measured.matrix())
