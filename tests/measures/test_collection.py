"""Measures fitted on a collection, against plain loops and on the sample tales."""

from itertools import product

import numpy as np
import pytest
from measured import fitted
from random_contents import random_contents
from refusals import refused
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from narrlit.data.tales import sample_tales
from narrlit.library.collection import Collection
from narrlit.measures import MEASURES, collection
from narrlit.measures.fit import MeasureFit, reference_rows
from narrlit.measures.matching import Matching, match_score
from narrlit.measures.names import check_measure
from narrlit.measures.representations import Contents


def test_the_measure_passages_matches_plain_loops():
    stories = random_contents(14)
    measured = fitted("passages", stories, Matching(0.4, 0.3))
    mean = stories.passages.vectors.mean(axis=0)
    moved = []
    for number in range(14):
        vectors = stories.passages.story(number) - mean
        moved.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    scores = np.empty((14, 14))
    for i, j in product(range(14), repeat=2):
        scores[i, j] = match_score(moved[i], moved[j], Matching(0.4, 0.3))
    hubs = [np.sort(np.delete(row, i))[-10:].mean() for i, row in enumerate(scores)]
    expected = scores - np.add.outer(hubs, hubs) / 2

    np.testing.assert_allclose(measured.matrix(), expected, atol=1e-5)  # float32 sums of up to 24 terms
    np.testing.assert_allclose(measured.with_themselves(), np.diag(expected), atol=1e-5)


def test_centered_keeps_hubs_and_csls_removes_them():
    stories = random_contents(14)
    moved = stories.vectors - stories.vectors.mean(axis=0)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    cosines = moved @ moved.T

    np.testing.assert_allclose(fitted("centered", stories).matrix(), cosines, atol=1e-6)

    without_own = cosines - 9 * np.eye(14)
    hubs = np.sort(without_own, axis=1)[:, -10:].mean(axis=1)
    expected = cosines - (hubs[:, None] + hubs[None]) / 2

    np.testing.assert_allclose(fitted("csls", stories).matrix(), expected, atol=1e-6)

    plain = stories.vectors @ stories.vectors.T
    np.testing.assert_allclose(fitted("cosine", stories).matrix(), plain, atol=1e-6)


def test_the_lexical_measure_matches_scikit_learn():
    texts = [row["text"] for row in sample_tales()]
    references, others = texts[:20], texts[20:]
    fit = MeasureFit.of("lexical", Contents(np.ones((20, 2)), references))
    words = fit.reader.represent(Contents(np.ones((20, 2)), references))
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    vectors = vectorizer.fit_transform(references)

    np.testing.assert_allclose(words.similarities(words), (vectors @ vectors.T).toarray(), atol=1e-6)  # float32
    assert fit.record == {"measure": "lexical", "fitted_on": 20, "stop_words": "english"}

    # Words of no reference share no word with the references, but make other stories longer.
    unknown = CountVectorizer(stop_words="english").fit([*references, *others])
    known = [word in vectorizer.vocabulary_ for word in unknown.get_feature_names_out()]
    rarity = np.full(len(known), 1 + np.log(21))
    rarity[known] = vectorizer.idf_
    counts = unknown.transform(texts).toarray()
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * rarity
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    found = fit.reader.represent(Contents(np.ones((4, 2)), others))

    np.testing.assert_allclose(found.similarities(words), weights[20:] @ weights[:20].T, atol=1e-6)
    np.testing.assert_allclose(found.similarities(found), weights[20:] @ weights[20:].T, atol=1e-6)


def test_stories_without_words_are_like_no_other():
    stories = Contents(np.ones((3, 2)), ["it was", "!", "and the"])
    for texts in (stories, Contents(np.ones((1, 2)), ["a wolf"])):
        found = MeasureFit.of("lexical", stories).reader.represent(texts)
        assert found.similarities(found).diagonal().tolist() == pytest.approx(
            [float(texts is not stories)] * len(texts)
        )


def test_fused_is_the_mean_of_standardized_similarities_corrected_for_hubness():
    stories = random_contents(14)
    off = ~np.eye(14, dtype=bool)
    parts = []
    for name in ("passages", "lexical"):
        found = MeasureFit.of(name, stories).reader.represent(stories)
        plain = found.similarities(found)
        parts.append((plain - plain[off].mean()) / plain[off].std())

    mean = (parts[0] + parts[1]) / 2
    hubs = np.sort(np.where(off, mean, -np.inf), axis=1)[:, -10:].mean(axis=1)
    expected = mean - (hubs[:, None] + hubs[None]) / 2

    np.testing.assert_allclose(fitted("fused", stories).matrix(), expected, atol=1e-5)


def test_equal_similarities_are_not_scaled_by_their_deviation():
    stories = random_contents(3)
    disjoint = Contents(stories.vectors, ["king", "queen", "fox"], stories.passages)
    matrix = fitted("fused", disjoint).matrix()
    assert np.abs(matrix).max() < 20  # by its own words a story was a million deviations from itself


@pytest.mark.parametrize("name", MEASURES)
def test_nearest_excludes_the_story_and_agrees_with_the_matrix(name):
    measured = fitted(name, random_contents(14))
    matrix = measured.matrix()
    rows, values = measured.nearest(5)

    assert not (rows == np.arange(14)[:, None]).any()

    np.fill_diagonal(matrix, -np.inf)
    np.testing.assert_allclose(values, -np.sort(-matrix, axis=1)[:, :5], atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(matrix, rows, axis=1), values, atol=1e-5)


def test_a_large_collection_is_compared_by_candidates(monkeypatch):
    stories = random_contents(40)
    measured = fitted("passages", stories)
    exact = measured.nearest(3)
    monkeypatch.setattr(collection, "EXACT", 10)
    monkeypatch.setattr(collection, "CANDIDATES", 39)

    assert measured.is_large

    rows, values = measured.nearest(3)
    assert rows.tolist() == exact[0].tolist()
    np.testing.assert_allclose(values, exact[1], atol=1e-5)

    monkeypatch.setattr(collection, "CANDIDATES", 8)
    few, _ = measured.nearest(3)  # all six components of the passages are kept: the nearest are among the candidates
    assert few.tolist() == exact[0].tolist()


def test_a_measure_is_fitted_on_a_sample_of_a_large_collection(monkeypatch):
    monkeypatch.setattr("narrlit.measures.fit.REFERENCES", 20)
    stories = random_contents(40)
    digests = [f"{number:02d}" for number in np.random.default_rng(1).permutation(40)]
    measured = fitted("csls", stories, digests=digests)
    assert measured.record == {"measure": "csls", "fitted_on": 20}

    rows = reference_rows(digests)
    assert {digests[row] for row in rows} == set(sorted(digests)[:20])

    moved = stories.vectors - stories.vectors[rows].mean(axis=0)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    cosines = moved @ moved.T - 9 * np.eye(40)

    nearest = np.sort(cosines[:, rows], axis=1)[:, -10:]
    np.testing.assert_allclose(measured.hubs, nearest.mean(axis=1), atol=1e-6)


def test_queries_are_compared_with_the_fitted_stories():
    stories = random_contents(14)
    queries = random_contents(3, seed=1)
    measured = fitted("csls", stories)
    mean = stories.vectors.mean(axis=0)
    units = [
        (found.vectors - mean) / np.linalg.norm(found.vectors - mean, axis=1)[:, None] for found in (queries, stories)
    ]
    cosines = units[0] @ units[1].T
    own = np.sort(cosines, axis=1)[:, -10:].mean(axis=1)
    expected = cosines - (own[:, None] + measured.hubs[None]) / 2

    np.testing.assert_allclose(measured.of_queries(queries), expected, atol=1e-6)


def test_a_subset_keeps_the_fit_of_the_whole_collection():
    measured = fitted("passages", random_contents(14))
    rows = np.array([7, 2, 11])
    np.testing.assert_allclose(measured.take(rows).matrix(), measured.matrix()[np.ix_(rows, rows)], atol=1e-5)
    np.testing.assert_allclose(measured.between(rows[:1], rows[1:]), measured.matrix()[7:8, [2, 11]], atol=1e-5)


@pytest.mark.usefixtures("memoized_minilm")
def test_passages_find_versions_of_tales_that_other_measures_miss():
    rows = sample_tales()
    tales = Collection.of([row["text"] for row in rows], "minilm")
    types = np.array([row["atu"] for row in rows])
    found = {}
    for name in ("passages", "cosine", "lexical"):
        nearest, _ = tales.similarities_by(name).nearest(1)
        found[name] = (types[nearest[:, 0]] == types).mean()

    # 18, 8 and 3 of 24 where this was measured: two tales more or less leave the order as it is.
    assert found["passages"] > found["cosine"] + 0.2
    assert found["cosine"] > found["lexical"] + 0.05


def test_an_unknown_measure_is_refused():
    with refused("unknown_measure", measure="passage", near="passages"):
        check_measure("passage")
