"""Candidates of a large collection: chosen by passages along principal components, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from narrlit.measures import candidates
from narrlit.measures.candidates import Candidates, highest_of, segment_means
from narrlit.measures.matching import Matching, PassageVectors, match_score
from narrlit.measures.readers import PassageReader, principal_components
from narrlit.measures.representations import Contents

COUNT, DIMENSION = 30, 12


def unit(generator, rows):
    vectors = generator.normal(size=(rows, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def stories():
    generator = np.random.default_rng(4)
    passages = [unit(generator, int(generator.integers(1, 6))) for _ in range(COUNT)]
    return Contents(unit(generator, COUNT), [""] * COUNT, PassageVectors.of(passages))


@pytest.fixture
def chosen_from(stories):
    """The stories as candidates, with hubs, along 5 components."""
    reader = PassageReader.fit(stories, Matching())
    reader = replace(reader, components=reader.components[:, :5])
    moved = reader.represent(stories).passages
    along = PassageVectors(moved.vectors @ reader.components, moved.starts)
    hubs = np.random.default_rng(5).normal(size=COUNT).astype(np.float32) / 10
    return Candidates(reader, along, hubs)


def score(chosen_from, query, row):
    along = chosen_from.reader.represent(query).passages.vectors @ chosen_from.reader.components
    return match_score(along, chosen_from.passages.story(row)) - chosen_from.hubs[row] / 2


def test_components_are_orthonormal_and_have_the_largest_variance(stories):
    vectors = stories.passages.vectors
    components = principal_components(vectors)
    np.testing.assert_allclose(components.T @ components, np.eye(DIMENSION), atol=1e-5)  # float32

    kept = ((vectors @ components) ** 2).sum(axis=0)
    assert (np.diff(kept) <= 1e-5).all()
    assert kept.sum() == pytest.approx(len(vectors), rel=1e-5)


def test_candidates_are_the_best_allowed_stories_by_passages_and_hubness(stories, chosen_from):
    allowed = np.arange(3, COUNT)
    for row in range(3):
        query = stories.take(np.array([row]))
        loops = sorted(allowed, key=lambda other: -score(chosen_from, query, other))
        assert chosen_from.nearest(query, allowed, 6).tolist() == sorted(loops[:6])
        assert chosen_from.nearest(query, allowed, 99).tolist() == allowed.tolist()


def test_a_long_text_is_compared_by_segments(stories, chosen_from, monkeypatch):
    monkeypatch.setattr(candidates, "COMPARED", 0)
    allowed = np.arange(1, COUNT)
    query = stories.take(np.array([0]))
    own = segments_of(chosen_from.passages.story(0))
    cosines = [
        sum(a @ b for a, b in zip(own, segments_of(chosen_from.passages.story(row)), strict=True)) for row in allowed
    ]
    nearest = allowed[np.argsort(-np.array(cosines))]

    assert chosen_from.nearest(query, allowed, 4).tolist() == sorted(nearest[:4].tolist())
    assert chosen_from.nearest(query, allowed, 99).tolist() == allowed.tolist()


def segments_of(story):
    """Unit means of eight segments: every passage stretched to eight pieces, which are divided among the segments."""
    pieces = np.repeat(story, 8, axis=0).reshape(8, len(story), -1).mean(axis=1)
    return pieces / np.linalg.norm(pieces, axis=1, keepdims=True)


def test_segment_means_are_means_over_equal_parts_of_a_story(stories):
    for number in range(COUNT):
        story = stories.passages.story(number)
        np.testing.assert_allclose(segment_means(story), segments_of(story), atol=1e-5)  # float32


def test_highest_of_returns_the_indices_of_the_highest_values():
    assert sorted(highest_of(np.array([3.0, 1.0, 2.0]), 2).tolist()) == [0, 2]
    assert highest_of(np.array([3.0, 1.0]), 5).tolist() == [0, 1]
