"""Diagnostics of similarities, against plain loops: length and hubs."""

import numpy as np
import pytest
from scipy.stats import skew

from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.representations import Contents
from narrlit.metrics.diagnostics import SimilarityDiagnostics, k_occurrences, log_lengths, similarity_diagnostics


def random_similarities(count, seed=0):
    """Similarities that are not symmetric, so that rows and columns differ."""
    return np.random.default_rng(seed).normal(size=(count, count))


def test_length_is_correlated_with_the_mean_similarity_to_other_stories():
    found = random_similarities(30)
    texts = ["word " * (1 + 3 * number) for number in range(30)]
    means = [np.delete(row, number).mean() for number, row in enumerate(found.T)]
    lengths = [np.log(1 + 3 * number) for number in range(30)]
    measured = similarity_diagnostics(found, texts)

    assert measured.length_correlation == pytest.approx(np.corrcoef(means, lengths)[0, 1])

    found[np.diag_indices(30)] = 1000  # a story with itself does not count
    assert similarity_diagnostics(found, texts).length_correlation == pytest.approx(measured.length_correlation)


def test_hubs_are_neighbors_of_many_stories():
    found = random_similarities(40)
    counts = [0] * 40
    for i in range(40):
        others = sorted((j for j in range(40) if j != i), key=lambda j: -found[i, j])
        for j in others[:10]:
            counts[j] += 1

    assert k_occurrences(found).tolist() == counts

    texts = ["word " * (1 + number) for number in range(40)]
    assert similarity_diagnostics(found, texts).hub_skewness == pytest.approx(skew(counts))

    hub = found.copy()
    hub[:, :2] += 100
    assert similarity_diagnostics(hub, texts).hub_skewness > 2


def test_only_large_figures_give_warnings():
    texts = ["word " * (1 + number) for number in range(60)]
    plain = random_similarities(60)
    assert similarity_diagnostics(plain, texts).warnings == []

    longer = plain + 0.01 * np.arange(60)  # in columns: stories are close to queries
    (line,) = similarity_diagnostics(longer, texts).warnings
    assert line.startswith("Similarity depends on length: long stories are close to all others (correlation +0.")

    (line,) = similarity_diagnostics(plain - 0.01 * np.arange(60), texts).warnings
    assert "short stories" in line

    hubs = plain.copy()
    hubs[:, :3] += 100
    assert similarity_diagnostics(hubs, texts).warnings[-1].startswith("A few stories are close to many others")
    assert SimilarityDiagnostics(24, 0.35, 0.09, 1.1).warnings == []  # may be chance in so few stories
    assert SimilarityDiagnostics(24, None, None, None).warnings == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_figures_of_few_or_equal_stories_are_undefined(count):
    measured = similarity_diagnostics(np.ones((count, count)), ["a b"] * count)
    assert measured.length_correlation is None
    assert measured.length_p is None
    assert measured.hub_skewness is None
    assert str(measured).endswith("log length undefined, skewness of hubs undefined")
    assert measured.record["stories"] == count


def test_a_text_without_words_has_a_length():
    assert log_lengths(["...", "one", "l'un l'autre"]).tolist() == [0, 0, np.log(2)]


def test_diagnostics_use_the_similarities_of_the_whole_collection():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(50, 5)).astype(np.float32) + 1
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = ["word " * int(generator.integers(1, 50)) for _ in range(50)]
    measured = CollectionSimilarity.of("csls", Contents(vectors, texts))

    assert measured.diagnostics() == similarity_diagnostics(measured.matrix(), texts)
