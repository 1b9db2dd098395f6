"""Passages matched by content and position, against plain loops."""

import itertools
import math
from itertools import product

import numpy as np
import pytest
from refusals import refused

from narrlit.measures.matching import (
    Matching,
    PassageVectors,
    best_matches,
    match_score,
    match_scores,
    match_shares,
    matches,
)

SETTINGS = [Matching(), Matching(spread=0.2, support=0), Matching(spread=math.inf, support=0.5)]


@pytest.fixture
def stories():
    """Unit vectors of the passages of four stories, of 1 to 7 passages."""
    generator = np.random.default_rng(3)
    drawn = [generator.normal(size=(size, 8)).astype(np.float32) for size in (4, 1, 7, 3)]
    return [story / np.linalg.norm(story, axis=1, keepdims=True) for story in drawn]


def weight(one, other, i, j, matching):
    """The weight of two passages, as the docstrings define it."""

    def cosine(a, b):
        return float(one[a] @ other[b])

    around = []
    for a, b in ((i - 1, j - 1), (i + 1, j + 1)):
        if 0 <= a < len(one) and 0 <= b < len(other):
            around.append(cosine(a, b))
    neighbors = sum(around) / len(around) if around else cosine(i, j)
    supported = (1 - matching.support) * cosine(i, j) + matching.support * neighbors

    latest_start = max(i / len(one), j / len(other))
    earliest_end = min((i + 1) / len(one), (j + 1) / len(other))
    gap = max(0.0, latest_start - earliest_end)
    return max(0.0, supported * math.exp(-((gap / matching.spread) ** 2) / 2))


@pytest.mark.parametrize("matching", SETTINGS)
def test_weights_match_plain_loops(stories, matching):
    for one, other in product(stories, repeat=2):
        expected = np.empty((len(one), len(other)))
        for i, j in np.ndindex(expected.shape):
            expected[i, j] = weight(one, other, i, j, matching)
        # float32 cosines of length 8: errors of some 1e-7.
        np.testing.assert_allclose(matches(one, other, matching), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("matching", SETTINGS)
def test_scores_with_many_stories_equal_those_with_each_story(stories, matching):
    together = PassageVectors.of(stories)
    for one in stories:
        each = [match_score(one, other, matching) for other in stories]
        assert np.abs(match_scores(one, together, matching) - each).max() < 1e-6


def test_the_sum_of_the_shares_is_the_score(stories):
    for one, other in itertools.product(stories, repeat=2):
        weights = matches(one, other)
        forth, back = best_matches(weights)
        loops = np.zeros((len(one), len(other)))
        for i, j in enumerate(forth):
            loops[i, j] += weights[i, j] / (2 * len(one))
        for j, i in enumerate(back):
            loops[i, j] += weights[i, j] / (2 * len(other))
        # float32 weights, of which up to 14 are added: errors of some 1e-7.
        assert np.abs(match_shares(weights) - loops).max() < 1e-6
        assert match_shares(weights).sum() == pytest.approx(match_score(one, other), abs=1e-6)


def test_exchanging_two_stories_transposes_their_shares():
    weights = np.random.default_rng(5).uniform(size=(3, 5))
    assert match_shares(weights.T) == pytest.approx(match_shares(weights).T)
    one_way = np.array([[0.9, 0.6], [0.8, 0.1]])  # the second passage's match is not mutual, in either story
    assert match_shares(one_way) == pytest.approx(np.array([[0.45, 0.15], [0.2, 0]]))


def test_scores_are_symmetric(stories):
    for one in stories:
        for other in stories:
            assert match_score(one, other) == pytest.approx(match_score(other, one), abs=1e-6)


def test_events_in_the_same_order_score_higher_than_in_reverse():
    events = np.eye(6)
    assert match_score(events, events) > match_score(events, events[::-1]) + 0.1
    anywhere = Matching(spread=math.inf, support=0)
    assert match_score(events, events, anywhere) == match_score(events, events[::-1], anywhere)


def test_neighbors_support_a_match():
    """A weak match between two strong ones counts more than one alone."""
    story = np.eye(3)
    changed = story.copy()
    changed[1] = [0, 0.5, math.sqrt(0.75)]
    supported = matches(story, changed, Matching(math.inf, 0.5))[1, 1]
    assert supported == pytest.approx(0.5 * 0.5 + 0.5 * 1)


def test_the_only_passage_of_a_query_is_close_to_every_passage():
    query = np.array([[0.0, 0.0, 1.0]])
    assert matches(query, np.eye(3), Matching(spread=0.1, support=0))[0].tolist() == [0, 0, 1]


def test_positions_are_relative_to_each_story(stories):
    together = PassageVectors.of(stories)
    assert together.sizes.tolist() == [4, 1, 7, 3]
    assert together.positions[:5].tolist() == [0.125, 0.375, 0.625, 0.875, 0.5]
    assert np.array_equal(together.story(2), stories[2])


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("spread", 0, "above_zero"),
        ("spread", math.nan, "above_zero"),
        ("support", -0.1, "share"),
        ("support", 1.1, "share"),
    ],
)
def test_invalid_settings_are_refused(option, value, code):
    with refused(code, option=option):
        Matching(**{option: value})
