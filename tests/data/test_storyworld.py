import hashlib
import pickle
import re
from dataclasses import replace

import pytest

from narrlit.data.records import DIMENSIONS, Negative
from narrlit.data.storyworld import SPLITS, StoryWorld, example, judged
from narrlit.data.storyworld.inventory import check, load_inventory
from narrlit.data.storyworld.realise import wording_of
from narrlit.data.storyworld.world import FIELDS
from narrlit.datamodules import StoryWorldData
from narrlit.errors import DataError, OptionError

FIRST_STORIES = "279e99b4acaeb207"
CAPITALISED = {"I"}
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


def words(text):
    return set(re.findall(r"[a-z']+", text.lower()))


def jaccard(left, right):
    return len(words(left) & words(right)) / len(words(left) | words(right))


def wordings(story):
    wording = wording_of(load_inventory(), story)
    return {"theme": wording.theme, "course": wording.events, "outcome": wording.outcome}


def full_names(story):
    return {name for name, kind in story.names.items() if kind == "PERSON" and " " in name}


def places(story):
    return {name for name, kind in story.names.items() if kind == "PLACE"}


def agreeing(left, right):
    return {
        dimension for dimension in DIMENSIONS if getattr(left, FIELDS[dimension]) == getattr(right, FIELDS[dimension])
    }


def test_same_stories_everywhere():
    texts = [story.text for row in StoryWorld(seed=0).triples(5) for story in members(row)]
    anchor = StoryWorld(seed=0).triples(1)[0].anchor
    texts += [story.text for _, story in StoryWorld(seed=0).one_dimension_negatives(anchor)]
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] == FIRST_STORIES


def test_a_larger_count_only_adds(world):
    assert world.triples(5)[:3] == world.triples(3)
    assert world.triples(0) == []


def test_seeds_and_splits_differ(triples):
    assert StoryWorld(seed=4).triples(5) != StoryWorld(seed=3).triples(5)
    texts = {split: {story.text for row in rows for story in members(row)} for split, rows in triples.items()}
    for split, own in texts.items():
        assert len(own) == 600
        assert not any(own & other for name, other in texts.items() if name != split)


def test_splits_have_persons_of_their_own(triples):
    names = {split: {n for row in rows for s in members(row) for n in full_names(s)} for split, rows in triples.items()}
    assert not names["train"] & names["validation"]
    assert not (names["train"] | names["validation"]) & names["test"]


def test_positive_has_the_structure_and_nothing_of_the_surface(triples):
    for row in triples["validation"]:
        anchor, positive = row.anchor, row.positive
        assert anchor.structure == positive.structure
        told, retold = wordings(anchor), wordings(positive)
        assert told["theme"] != retold["theme"]
        assert told["outcome"] != retold["outcome"]
        assert all(one != other for one, other in zip(told["course"], retold["course"], strict=True))
        assert not set(anchor.names) & set(positive.names)
        inventory = load_inventory()
        assert inventory.setting_of(*places(anchor)) != inventory.setting_of(*places(positive))


def test_negative_has_the_surface_and_nothing_of_the_structure(triples):
    for row in triples["validation"]:
        assert row.negative.names == row.anchor.names
        assert not agreeing(row.negative.structure, row.anchor.structure)


def test_word_overlap_misleads(triples):
    right = [
        jaccard(r.anchor.text, r.positive.text) > jaccard(r.anchor.text, r.negative.text) for r in triples["validation"]
    ]
    assert sum(right) / len(right) <= 0.35


def test_one_dimension_negatives_share_one_dimension(world, triples):
    for row in triples["train"][:30]:
        negatives = world.one_dimension_negatives(row.anchor, per_dimension=2)
        assert [dimension for dimension, _ in negatives] == [d for d in DIMENSIONS for _ in range(2)]
        for dimension, story in negatives:
            assert agreeing(story.structure, row.anchor.structure) == {dimension}
            assert wordings(story)[FIELDS[dimension]] != wordings(row.anchor)[FIELDS[dimension]]
            assert not set(story.names) & set(row.anchor.names)


def test_one_dimension_negatives_are_the_same_each_time(world, triples):
    anchor = triples["train"][0].anchor
    once = world.one_dimension_negatives(anchor, 2)
    assert once == StoryWorld(seed=3).one_dimension_negatives(anchor, 2)
    assert once[:2] == world.one_dimension_negatives(anchor, 3)[:2]
    assert once != StoryWorld(seed=4).one_dimension_negatives(anchor, 2)


def test_one_dimension_negatives_stay_in_the_split(world, triples):
    seen = {name for row in triples["train"] for story in members(row) for name in full_names(story)}
    for row in triples["validation"][:30]:
        for _, story in world.one_dimension_negatives(row.anchor):
            assert not full_names(story) & seen


def test_planted_false_negatives(world, triples):
    planted = [
        story.structure == row.anchor.structure
        for row in triples["train"]
        for _, story in world.one_dimension_negatives(row.anchor, per_dimension=2, false_negatives=0.3)
    ]
    assert 0.25 < sum(planted) / len(planted) < 0.35
    anchor = triples["train"][0].anchor
    for _, story in world.one_dimension_negatives(anchor, false_negatives=1.0):
        assert story.structure == anchor.structure
        assert wordings(story)["theme"] != wordings(anchor)["theme"]


def test_views_are_the_sentences_of_the_text(stories):
    for story in stories:
        events = [story.text.index(event) for event in story.views.events]
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


def test_every_capitalised_word_inside_a_sentence_is_a_name(stories):
    for story in stories:
        known = {word for name in story.names for word in name.split()} | CAPITALISED
        for sentence in re.split(r"(?<=\.) ", story.text):
            inside = re.findall(r"[\w-]+", sentence)[1:]
            assert {word for word in inside if word[0].isupper()} <= known, sentence


def test_texts_are_tidy(stories):
    for story in stories:
        assert 80 <= len(story.text.split()) <= 150
        assert not re.search(r"[{}]|  | [,.;]|\.\.|,,", story.text)
        assert not re.search(r"\ba [aeiou](?!ne\b|nique)|\ban [^aeiouh]", story.text, re.IGNORECASE)
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=\.) ", story.text))


def test_there_are_enough_stories(world, stories):
    assert world.distinct_stories >= 10**6
    assert len({story.structure for story in stories}) > 200


def test_subplot_and_theme_move(stories):
    assert len({story.text[: story.text.index(story.views.theme)].count(".") for story in stories}) >= 4


def test_rows(world, triples):
    row = triples["train"][0]
    assert judged(row, a_is_closer=True).texts == tuple(story.text for story in members(row))
    assert judged(row, a_is_closer=False).texts == (row.anchor.text, row.negative.text, row.positive.text)
    hard = world.one_dimension_negatives(row.anchor, 1)
    made = example(row, hard)
    assert made.texts[:2] == (row.anchor.text, row.positive.text)
    assert made.negatives == (Negative(row.negative.text, "triple"), *(Negative(s.text, d) for d, s in hard))
    assert len(example(row).negatives) == 1


def test_planted_false_negatives_reach_the_data_and_its_record():
    plain, planted = (
        StoryWorldData(3, negatives_per_dimension=2),
        StoryWorldData(3, negatives_per_dimension=2, false_negatives=1.0),
    )
    before, after = plain.read_examples(), planted.read_examples()
    assert [example.negatives[0] for example in before] == [example.negatives[0] for example in after]
    assert all(one.negatives[1:] != other.negatives[1:] for one, other in zip(before, after, strict=True))
    made = StoryWorld(0).one_dimension_negatives(StoryWorld(0).triples(1)[0].anchor, 2, 1.0)
    assert after[0].negatives[1:] == tuple(Negative(story.text, kind) for kind, story in made)
    noted = planted.provenance["train"]["storyworld"]
    assert noted == {"seed": 0, "triples": 3, "negatives_per_dimension": 2, "false_negatives": 1.0}
    assert plain.provenance["train"]["storyworld"]["false_negatives"] == 0.0
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(OptionError, match=r"data.false_negatives is .*: a share from 0 to 1"):
            StoryWorldData(false_negatives=share)


def test_stories_can_be_sent_to_workers(triples):
    assert pickle.loads(pickle.dumps(triples["test"][0])) == triples["test"][0]


def test_wrong_arguments_are_refused(world, triples):
    anchor = triples["train"][0].anchor
    with pytest.raises(OptionError, match="validation"):
        world.triples(1, "dev")
    with pytest.raises(OptionError, match="negative"):
        world.triples(-1)
    with pytest.raises(OptionError, match="between"):
        world.one_dimension_negatives(anchor, false_negatives=1.5)
    with pytest.raises(OptionError, match="StoryWorld"):
        world.one_dimension_negatives(replace(anchor, views=replace(anchor.views, theme="Nothing of the kind.")))


def test_a_broken_inventory_is_noticed():
    whole = load_inventory()
    check(whole)
    key, events = next(iter(whole.courses.items()))
    for broken, message in (
        (replace(whole, themes={}), "fewer than 12"),
        (replace(whole, outcomes={**whole.outcomes, "odd": ("{villain} won.",) * 5}), "unknown slot"),
        (replace(whole, outcomes={**whole.outcomes, "odd": ("The end.",) * 5}), "occurs twice"),
        (replace(whole, courses={**whole.courses, key: events[:2]}), "2 events"),
    ):
        with pytest.raises(DataError, match=message):
            check(broken)
