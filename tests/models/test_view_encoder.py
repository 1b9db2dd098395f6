"""Encoders of stories with views: vectors against those by hand, checkpoints aside; and what they refuse."""

import numpy as np
import pytest
from sentence_encoders import sentence_encoder
from viewed_stories import WEIGHTS, by_hand, joined, parts, view_encoder

from narrlit.data.records import Triple
from narrlit.errors import DataError, ModelError
from narrlit.metrics.meanmax import MeanMax, meanmax_scores
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.embedding import cosine_scores, embed, part_vectors
from narrlit.models.encoder import Encoder
from narrlit.models.fusion import PRESETS, Fusion
from narrlit.models.view_encoder import ViewEncoder, fused, story_parts
from narrlit.models.views import ViewFuser


@pytest.mark.parametrize("hidden", [None, 16])
def test_vectors_are_those_by_hand(tiny, hidden):
    encoder = view_encoder(tiny(), hidden, prompts=Prompts(story="text: "))
    vectors, cut = embed(encoder, joined(4), progress=False)
    assert abs(vectors - by_hand(encoder, parts(4), "text: ")).max() < 1e-6
    assert cut == 0
    order = [2, 0, 2, 1, 3]
    assert abs(embed(encoder, [joined(4)[i] for i in order], progress=False)[0] - vectors[order]).max() < 1e-6


def test_a_part_without_weight_is_never_embedded(tiny):
    encoder = view_encoder(tiny(), fusion=PRESETS["action_only"])
    long = [text.replace("\n[theme]", " word" * 500 + "\n[theme]") for text in joined(3)]
    vectors, cut = embed(encoder, long, progress=False)
    assert cut == 0
    assert abs(vectors - by_hand(encoder, parts(3))).max() < 1e-6
    assert embed(view_encoder(tiny()), long, progress=False)[1] == 3


@pytest.mark.parametrize("hidden", [None, 16])
def test_parts_come_in_their_order_and_what_occurs_twice_once(tiny, hidden):
    encoder = view_encoder(tiny(), hidden)
    found, _ = part_vectors(encoder, joined(3), progress=False)
    for place in range(4):
        weights = [0.0] * 4
        weights[place] = 1.0
        encoder.fuser.fusion = Fusion(*weights)
        assert abs(found[:, place] - by_hand(encoder, parts(3))).max() < 1e-6
    assert np.array_equal(found[0, 1], found[1, 1])
    few, _ = part_vectors(encoder, joined(3), progress=False, needed=[1, 3])
    assert abs(few[:, [1, 3]] - found[:, [1, 3]]).max() < 1e-6
    assert not few[:, [0, 2]].any()


def test_a_plain_encoder_has_parts_too(tiny):
    plain = Encoder(EncoderConfig(tiny())).eval()
    found, _ = part_vectors(plain, joined(3), progress=False)
    assert abs(found - part_vectors(view_encoder(tiny()), joined(3), progress=False)[0]).max() < 1e-6


def test_other_weights_keep_the_heads(tiny):
    encoder = view_encoder(tiny(), 16)
    heads = encoder.fuser.heads
    assert fused(encoder, None) is encoder
    assert fused(encoder, PRESETS["equal"]).fuser.heads is heads
    assert encoder.fuser.fusion == PRESETS["equal"]
    plain = Encoder(EncoderConfig(tiny())).eval()
    assert fused(plain, None) is plain
    assert isinstance(fused(plain, WEIGHTS), ViewEncoder)


def test_it_answers_for_the_encoder_inside(tiny):
    encoder = view_encoder(tiny(), max_length=40, prompts=Prompts(anchor="a: ", candidate="b: "))
    assert (encoder.max_length, encoder.dimension, encoder.normalized) == (40, 32, True)
    assert (encoder.prompt("anchor"), encoder.prompt("candidate")) == ("a: ", "b: ")
    with pytest.raises(ModelError, match="Track B"):
        encoder.require_one_prompt("Track B")
    anchor, a, b = joined(3)
    scores, _ = cosine_scores(encoder, [Triple(anchor, a, b)], progress=False)
    x, y, z = by_hand(encoder, parts(3)[:1], "a: ")[0], *by_hand(encoder, parts(3)[1:], "b: ")
    assert scores == [(pytest.approx(float(x @ y), abs=1e-6), pytest.approx(float(x @ z), abs=1e-6))]


def test_views_of_a_model_that_reads_sentences(tiny, tmp_path):
    inner = sentence_encoder(tiny())
    encoder = ViewEncoder(inner, ViewFuser(inner.dimension, WEIGHTS)).eval()
    found, _ = embed(encoder, joined(3), progress=False)
    own = [embed(inner, list(story), progress=False)[0] for story in parts(3)]
    total = np.stack([np.array(WEIGHTS.weights) @ vectors for vectors in own])
    assert abs(found - total / np.linalg.norm(total, axis=1, keepdims=True)).max() < 1e-6
    assert encoder.pieces == ("sentence", "sentences")
    with pytest.raises(ModelError, match="can't be exported"):
        encoder.save(tmp_path)


def test_stories_without_views_are_refused(tiny):
    texts = [joined(2)[0], "No views here.", joined(2)[1]]
    with pytest.raises(DataError, match=r"text 2 of 3 has no views.*--views FILE"):
        embed(view_encoder(tiny()), texts, progress=False)
    with pytest.raises(DataError, match="text 1 of 1: the lines"):
        story_parts(["a\n[theme]\nb"])
    with pytest.raises(DataError, match="do this"):
        story_parts(["a"], "do this")


def test_heads_of_another_model_and_sentence_scorers_are_refused(tiny):
    encoder = Encoder(EncoderConfig(tiny()))
    with pytest.raises(ModelError, match="trained over another model"):
        ViewEncoder(encoder, ViewFuser(31, WEIGHTS))
    with pytest.raises(ModelError, match="of whole stories"):
        meanmax_scores(view_encoder(tiny()), [Triple("a", "b", "c")], MeanMax(), progress=False)
