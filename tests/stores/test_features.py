"""Stories as frozen vectors: packed story by story and sentence by sentence, as plain loops would."""

import numpy as np
import pytest
import torch
from embedding_server import hashed_vector
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from narrlit.errors import DataError
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.preprocessing.sentences import split_sentences as sentences
from narrlit.stores import frozen as frozen_module
from narrlit.stores.features import FeatureTable, feature_table, whole
from narrlit.stores.frozen import FrozenVectors
from narrlit.stores.mapped import MappedVectors
from narrlit.stores.sources import VectorOptions

STORIES = ["A knight rode out. She won. The end.", "One sentence only.", "A diver sank. The end."]
ROLE_PROMPTS = Prompts(anchor="query: ", candidate="passage: ")


@pytest.fixture
def frozen(tmp_path, monkeypatch):
    """frozen(prompts): vectors that follow from prompt and text, in place of an encoder's."""

    def open_source(config, options, prompts, device, on_cut):
        return lambda texts, role: np.array([hashed_vector(prompts[role] + text) for text in texts], np.float32)

    monkeypatch.setattr(frozen_module, "open_source", open_source)
    (tmp_path / "model").mkdir()

    def build(prompts=None, dtype="float32"):
        config = EncoderConfig(str(tmp_path / "model"), prompts=prompts or Prompts())
        return FrozenVectors(config, VectorOptions(str(tmp_path / "stores"), dtype=dtype), torch.device("cpu"))

    return build


def by_hand(texts, prompt=""):
    return torch.tensor([hashed_vector(prompt + text) for text in texts])


def test_a_storys_sentences_stand_in_their_order(frozen):
    table = feature_table(frozen(), STORIES, sentences)
    assert table.lengths.tolist() == [3, 1, 2]
    assert table.dimension == 6
    packed = table.stories(np.array([2, 0]))
    assert packed.lengths == (2, 3)
    assert packed.rows.tolist() == [2, 0]
    said = ["A diver sank.", "The end.", "A knight rode out.", "She won.", "The end."]
    assert torch.equal(packed.vectors, by_hand(said))


def test_a_whole_story_is_one_vector(frozen):
    packed = feature_table(frozen(), STORIES, whole).stories(np.array([1, 2, 0]))
    assert packed.lengths == (1, 1, 1)
    assert torch.equal(packed.vectors, by_hand([STORIES[1], STORIES[2], STORIES[0]]))


def test_half_precision_comes_back_as_float32(frozen):
    found = feature_table(frozen(dtype="float16"), STORIES).stories(np.arange(3)).vectors
    assert found.dtype == torch.float32
    assert torch.equal(found, by_hand(STORIES).half().float())


def test_a_sentence_of_two_stories_is_made_and_kept_once(frozen):
    vectors = frozen()
    table = feature_table(vectors, [*STORIES, STORIES[0]], sentences)
    assert (vectors.made, len(vectors.store)) == (5, 5)
    assert table.provenance["vectors"] == {
        "store": str(vectors.store.folder),
        "source": "encoder",
        "of": "sentences",
        "texts": 5,
        "made": 5,
        "made_truncated": 0,
    }
    again = frozen()
    assert feature_table(again, ["She won. One sentence only."], sentences).provenance["vectors"]["made"] == 0
    assert again.made == 0


@pytest.mark.parametrize("units", [whole, sentences])
def test_two_prompts_give_two_sets_of_places(frozen, units):
    table = feature_table(frozen(ROLE_PROMPTS), STORIES, units)
    rows = np.array([2, 0, -1])
    anchors, candidates = table.places(rows, "anchor"), table.places(rows, "candidate")
    assert anchors.tolist() == [2, 0, -1]
    assert candidates.tolist() == [5, 3, -1]
    packed, (first, second) = table.pack([anchors, candidates])
    assert packed.rows.tolist() == [0, 2, 0, 2]
    assert (first.tolist(), second.tolist()) == ([1, 0, -1], [3, 2, -1])
    stories = torch.split(packed.vectors, list(packed.lengths))
    for i, prompt in ((1, "query: "), (3, "passage: ")):
        assert torch.equal(stories[i], by_hand(units(STORIES[2]), prompt))
    assert len(table.lengths) == 6


def test_one_prompt_gives_one_set_of_places(frozen):
    table = feature_table(frozen(Prompts(story="story: ")), STORIES, sentences)
    rows = np.array([1, 2])
    assert table.places(rows, "anchor").tolist() == table.places(rows, "candidate").tolist() == [1, 2]
    assert torch.equal(table.stories(rows).vectors[:1], by_hand([STORIES[1]], "story: "))
    assert len(table.lengths) == 3


def test_a_story_without_a_sentence_is_told_by_number_before_anything_is_made(frozen):
    vectors = frozen()
    with pytest.raises(DataError, match=r"no sentence: number 2 of 3, ' \\n '"):
        feature_table(vectors, [STORIES[0], " \n ", ""], sentences)
    assert len(vectors.store) == 0


@st.composite
def tables(draw):
    """A table of up to six stories in one or two roles, with the vectors of each place by hand."""
    stories = draw(st.integers(1, 6))
    roles = draw(st.integers(1, 2))
    lengths = draw(st.lists(st.integers(1, 4), min_size=stories * roles, max_size=stories * roles))
    count = draw(st.integers(1, 9))
    units = draw(st.lists(st.integers(0, count - 1), min_size=sum(lengths), max_size=sum(lengths)))
    vectors = torch.arange(count * 2.0).view(count, 2)
    half = count // 2
    shards = [shard for shard in (vectors[:half], vectors[half:]) if len(shard)]
    shard_of = np.array([int(i >= half) if half else 0 for i in range(count)])
    mapped = MappedVectors(shards, shard_of, np.array([i - half if i >= half else i for i in range(count)]))
    pieces, start = [], 0
    for length in lengths:
        pieces.append([vectors[unit].tolist() for unit in units[start : start + length]])
        start += length
    return FeatureTable(mapped, np.array(units), np.array(lengths), stories), pieces, stories


def assert_packed(packed, pieces, places, stories):
    assert packed.lengths == tuple(len(pieces[place]) for place in places)
    assert packed.rows.tolist() == [place % stories for place in places]
    assert packed.vectors.tolist() == [vector for place in places for vector in pieces[place]]


@settings(deadline=None)
@given(tables(), st.data())
def test_any_stories_equal_a_plain_loop(made, data):
    table, pieces, stories = made
    places = data.draw(st.lists(st.integers(0, len(pieces) - 1), max_size=9))
    assert_packed(table.stories(np.array(places, dtype=np.int64)), pieces, places, stories)


@settings(deadline=None)
@given(tables(), st.data())
def test_a_pack_holds_each_place_once_and_its_columns_point_at_them(made, data):
    table, pieces, stories = made
    numbers = st.integers(-1, len(pieces) - 1)
    columns = [data.draw(arrays(np.int64, shape, elements=numbers)) for shape in ((3,), (3, 2), (0,))]
    packed, found = table.pack(columns)
    unique = sorted({int(place) for column in columns for place in column.ravel()} - {-1})
    assert_packed(packed, pieces, unique, stories)
    for column, indices in zip(columns, found, strict=True):
        back = np.array([*unique, -1])[indices.numpy()]
        assert np.array_equal(back, column)
