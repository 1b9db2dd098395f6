"""Embeddings of texts, sentences and views against those made by hand, and triples' scores."""

import numpy as np
import pytest
from head_encoders import (
    PROMPTS,
    ROLES,
    TEXTS,
    WEIGHTS,
    sentence_encoder,
    sentences_by_hand,
    view_encoder,
    viewed,
    views_by_hand,
)

from narrlit.data.schema import Story, StoryTable, Triple, Triples
from narrlit.errors import DataError
from narrlit.models import embedding
from narrlit.models.config import PRESETS, EncoderConfig, Fusion, Prompts
from narrlit.models.embedding import embed, part_embeddings, score_triples
from narrlit.models.encoder import Encoder
from narrlit.models.registry import with_fusion


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("qwen3", "lasttoken")])
def test_sentences_are_embedded_with_the_roles_prompt_before_each(tiny, kind, pooling, role):
    encoder = sentence_encoder(tiny(kind, pooling), prompts=PROMPTS)
    found = embed(encoder, TEXTS, role, progress=False)
    assert found.embeddings.dtype == np.float32
    assert abs(found.embeddings - sentences_by_hand(encoder, TEXTS, role)).max() < 1e-5
    assert found.truncated == 0


def test_texts_come_in_their_order_in_passes_with_repeats(tiny, monkeypatch):
    encoder = sentence_encoder(tiny())
    expected = sentences_by_hand(encoder, TEXTS)
    monkeypatch.setattr(embedding, "STORIES_PER_PASS", 2)
    order = [3, 0, 0, 2, 1, 3]
    assert abs(embed(encoder, [TEXTS[i] for i in order], progress=False).embeddings - expected[order]).max() < 1e-5


def test_a_sentence_is_embedded_once_and_counted_once_if_it_is_cut(tiny, monkeypatch):
    encoder = sentence_encoder(tiny(), max_length=12)
    seen, tokenize = [], encoder.tokenize
    monkeypatch.setattr(encoder, "tokenize", lambda texts, role: seen.extend(texts) or tokenize(texts, role))
    long = "A very long sentence about a ship that sank in the cold sea in winter."
    assert embed(encoder, [f"Short. {long}", f"{long} Short.", "Short."], progress=False).truncated == 1
    assert sorted(seen) == sorted([long, "Short."])


@pytest.mark.parametrize("blank", ["", " \n\t "])
def test_a_text_without_a_sentence_is_named(tiny, blank):
    with pytest.raises(DataError, match="story 3 of 4"):
        embed(sentence_encoder(tiny()), ["A b.", "C d.", "A b.", blank, "E."], progress=False)


@pytest.mark.parametrize("hidden", [None, 16])
def test_views_are_those_by_hand(tiny, hidden):
    encoder, stories = view_encoder(tiny(), hidden, prompts=Prompts(story="text: ")), viewed(4)
    found = embed(encoder, stories, progress=False)
    assert abs(found.embeddings - views_by_hand(encoder, stories, "text: ")).max() < 1e-6
    order = [2, 0, 2, 1, 3]
    again = embed(encoder, [stories[i] for i in order], progress=False).embeddings
    assert abs(again - found.embeddings[order]).max() < 1e-6


def test_a_part_without_weight_is_never_embedded(tiny):
    encoder = view_encoder(tiny(), fusion=PRESETS["action_only"])
    long = [Story(story.id, story.text + " word" * 500, story.views) for story in viewed(3)]
    found = embed(encoder, long, progress=False)
    assert found.truncated == 0
    assert abs(found.embeddings - views_by_hand(encoder, viewed(3))).max() < 1e-6
    assert embed(view_encoder(tiny()), long, progress=False).truncated == 3


@pytest.mark.parametrize("hidden", [None, 16])
def test_parts_come_in_their_order_and_what_occurs_twice_once(tiny, hidden):
    encoder, stories = view_encoder(tiny(), hidden), viewed(3)
    parts = part_embeddings(encoder, stories, progress=False).embeddings
    for position in range(4):
        with_fusion(encoder, Fusion(*(float(i == position) for i in range(4))))
        assert abs(parts[:, position] - views_by_hand(encoder, stories)).max() < 1e-6
    assert np.array_equal(parts[0, 1], parts[1, 1])
    few = part_embeddings(encoder, stories, progress=False, needed=[1, 3]).embeddings
    assert abs(few[:, [1, 3]] - parts[:, [1, 3]]).max() < 1e-6
    assert not few[:, [0, 2]].any()
    plain = Encoder(EncoderConfig(tiny())).eval()
    own = part_embeddings(view_encoder(tiny()), stories, progress=False).embeddings
    assert abs(part_embeddings(plain, stories, progress=False).embeddings - own).max() < 1e-6


def test_other_weights_keep_the_heads(tiny):
    encoder = view_encoder(tiny(), 16)
    heads = encoder.views.heads
    assert with_fusion(encoder, None) is encoder
    assert with_fusion(encoder, PRESETS["equal"]).views.heads is heads
    assert encoder.views.weights == PRESETS["equal"].weights
    plain = Encoder(EncoderConfig(tiny())).eval()
    assert with_fusion(plain, None).reads == "text"
    assert with_fusion(plain, WEIGHTS).reads == "views"


def test_views_of_a_model_that_reads_sentences(tiny):
    inner, encoder = sentence_encoder(tiny()), sentence_encoder(tiny())
    with_fusion(encoder, WEIGHTS)
    own = [embed(inner, [s.text, *s.views.texts], progress=False).embeddings for s in viewed(3)]
    total = np.stack([np.array(WEIGHTS.weights) @ vectors for vectors in own])
    found = embed(encoder, viewed(3), progress=False).embeddings
    assert abs(found - total / np.linalg.norm(total, axis=1, keepdims=True)).max() < 1e-6


def test_stories_without_views_are_refused(tiny):
    stories = [*viewed(2), Story("x", "No views here.")]
    with pytest.raises(DataError, match=r"story 3 of 3 has no views.*--views FILE"):
        embed(view_encoder(tiny()), stories, progress=False)
    with pytest.raises(DataError, match="story 1 of 1 has no views"):
        embed(view_encoder(tiny()), ["A text."], progress=False)


@pytest.mark.parametrize("prompts", [Prompts(), PROMPTS])
def test_scores_are_cosines_of_each_role(tiny, prompts):
    encoder = Encoder(EncoderConfig(tiny(), prompts=prompts, normalize=False)).eval()
    table = StoryTable.of(TEXTS)
    triples = Triples(table, [Triple(0, 1, 2, True), Triple(3, 0, 0), Triple(1, 2, 0, False)])
    scores, truncated = score_triples(encoder, triples, progress=False)
    anchors, candidates = (embed(encoder, TEXTS, role, progress=False).embeddings for role in ROLES[:2])
    anchors, candidates = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (anchors, candidates))
    expected = [[anchors[t.anchor] @ candidates[t.a], anchors[t.anchor] @ candidates[t.b]] for t in triples]
    assert np.allclose(scores, expected, atol=1e-6)
    assert scores.dtype == np.float64
    assert truncated == 0
