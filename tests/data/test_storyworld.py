"""StoryWorld: the same stories everywhere, true views and names, and a surface that misleads by degrees."""

import hashlib
import re
from itertools import combinations

import pytest

from narrlit.data.schema import ASPECTS, StoryTable
from narrlit.data.storyworld import SPLITS, StoryWorld, synthetic_examples, synthetic_triples

FIRST_STORIES = "e8a422069585606c"
CAPITALIZED = {"I"}
TYPES = {"PERSON", "PLACE", "ORGANIZATION"}


@pytest.fixture(scope="module")
def world():
    return StoryWorld(seed=3)


@pytest.fixture(scope="module")
def triples(world):
    return {split: world.triples(200, split) for split in SPLITS}


@pytest.fixture(scope="module")
def stories(triples):
    return [story for rows in triples.values() for row in rows for story in members(row)]


def members(triple):
    return triple.anchor, triple.positive, triple.negative


def jaccard(left, right):
    left = set(left.text.lower().split())
    right = set(right.text.lower().split())
    return len(left & right) / len(left | right)


def full_names(story):
    return {name for name, kind in story.names.items() if kind == "PERSON" and " " in name}


def agreeing(left, right):
    return {aspect for aspect in ASPECTS if getattr(left, aspect) == getattr(right, aspect)}


def shared_surface(story, anchor):
    names = story.surface.persons == anchor.surface.persons
    return names, story.surface.setting == anchor.surface.setting


def test_same_stories_everywhere():
    texts = [story.text for row in StoryWorld(seed=0).triples(5) for story in members(row)]
    anchor = StoryWorld(seed=0).triples(1)[0].anchor
    texts += [story.text for _, story in StoryWorld(seed=0).one_aspect_negatives(anchor)]
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] == FIRST_STORIES


def test_seeds_and_splits_differ(triples):
    assert StoryWorld(seed=4).triples(5) != StoryWorld(seed=3).triples(5)

    texts = {}
    for split, rows in triples.items():
        texts[split] = {story.text for row in rows for story in members(row)}
        assert len(texts[split]) == 600
    for own, other in combinations(texts.values(), 2):
        assert not own & other


def test_one_aspect_negatives_share_one_aspect(world, triples):
    for row in triples["train"][:30]:
        negatives = world.one_aspect_negatives(row.anchor, per_aspect=2)
        assert [aspect for aspect, _ in negatives] == [d for d in ASPECTS for _ in range(2)]
        for aspect, story in negatives:
            assert agreeing(story.structure, row.anchor.structure) == {aspect}
            used = "events" if aspect == "action" else aspect
            assert getattr(story.wording, used) != getattr(row.anchor.wording, used)
            assert not set(story.names) & set(row.anchor.names)


def test_one_aspect_negatives_stay_in_the_split(world, triples):
    seen = {name for row in triples["train"] for story in members(row) for name in full_names(story)}
    for row in triples["validation"][:30]:
        for _, story in world.one_aspect_negatives(row.anchor):
            assert not full_names(story) & seen


def test_planted_false_negatives(world, triples):
    planted = [
        story.structure == row.anchor.structure
        for row in triples["train"]
        for _, story in world.one_aspect_negatives(row.anchor, per_aspect=2, false_negatives=0.3)
    ]

    assert 0.25 < sum(planted) / len(planted) < 0.35

    anchor = triples["train"][0].anchor
    for _, story in world.one_aspect_negatives(anchor, false_negatives=1.0):
        assert story.structure == anchor.structure
        assert story.wording.theme != anchor.wording.theme


def test_views_are_the_sentences_of_the_text(stories):
    for story in stories:
        events = [story.text.index(event) for event in story.views.action.splitlines()]
        assert events == sorted(events)
        assert 4 <= len(events) <= 6
        assert story.views.theme in story.text
        assert story.text.endswith(story.views.outcome)


def test_names_are_those_of_the_text(stories):
    for story in stories:
        assert set(story.names.values()) == TYPES
        assert len(full_names(story)) == 3
        for full in full_names(story):
            aliases = [part for part in full.split() if part in story.names]
            assert len(aliases) == 1
        for name in story.names:
            assert re.search(rf"\b{re.escape(name)}\b", story.text)


def test_every_capitalized_word_inside_a_sentence_is_a_name(stories):
    for story in stories:
        known = {word for name in story.names for word in name.split()} | CAPITALIZED
        for sentence in re.split(r"(?<=\.) ", story.text):
            inside = re.findall(r"[\w-]+", sentence)[1:]
            assert {word for word in inside if word[0].isupper()} <= known, sentence


def test_texts_are_tidy(stories):
    for story in stories:
        assert 80 <= len(story.text.split()) <= 150
        assert not re.search(r"[{}]|  | [,.;]|\.\.|,,", story.text)
        assert not re.search(r"\ba [aeiou](?!ne\b|nique)|\ban [^aeiouh]", story.text, re.IGNORECASE)
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=\.) ", story.text))


def test_positive_has_the_structure_in_other_words(triples):
    for row in triples["validation"]:
        anchor, positive = row.anchor, row.positive
        assert anchor.structure == positive.structure
        assert anchor.wording.theme != positive.wording.theme
        assert anchor.wording.outcome != positive.wording.outcome
        assert all(a != b for a, b in zip(anchor.wording.events, positive.wording.events, strict=True))
        assert not agreeing(row.negative.structure, anchor.structure)


def test_the_surface_is_a_graded_trap(triples):
    rows = triples["validation"]
    cases = {(shared_surface(row.positive, row.anchor), shared_surface(row.negative, row.anchor)) for row in rows}
    nothing = (False, False)
    names = (True, False)
    setting = (False, True)
    both = (True, True)
    expected = {(nothing, shared) for shared in (nothing, names, setting, both)} | {(names, setting), (setting, names)}

    assert cases == expected

    for row in rows:
        for story in (row.positive, row.negative):
            same_names, same_setting = shared_surface(story, row.anchor)
            assert bool(full_names(story) & full_names(row.anchor)) == same_names
            if not same_names:
                assert not set(story.names) & set(row.anchor.names) or same_setting
            assert (story.surface.opening == row.anchor.surface.opening) == same_setting
    for split in ("validation", "test"):
        right = [jaccard(row.anchor, row.positive) > jaccard(row.anchor, row.negative) for row in triples[split]]
        assert 0.2 <= sum(right) / len(right) <= 0.4


def test_rows(world, triples):
    row = triples["train"][0]
    table = StoryTable()
    hard = world.one_aspect_negatives(row.anchor, 1)
    examples = synthetic_examples([row], [hard], table, views=True)

    stories = [*members(row), *(story for _, story in hard)]
    assert examples.texts() == [tuple(story.text for story in stories)]
    assert examples[0].kinds == ("triple", *ASPECTS)
    assert table[0].views == row.anchor.views

    found = synthetic_triples(triples["test"], table)
    assert 60 < found.labels.sum() < 140
    for triple, (_, a, b), label in zip(triples["test"], found.texts(), found.labels, strict=True):
        assert (a if label else b) == triple.positive.text
    assert table[found[0].anchor].views is None
