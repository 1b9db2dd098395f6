"""Embeddings of texts, sentences and views against those made by hand, and triples' scores."""

import os

import numpy as np
import pytest
import torch
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
from refusals import refused

from narrlit.data.schema import Story, StoryTable, Triple, Triples, Views
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError
from narrlit.models import embedding
from narrlit.models.config import PRESETS, EncoderConfig, Fusion, Prompts
from narrlit.models.coverage import Coverage
from narrlit.models.embedding import embed_stories, part_embeddings
from narrlit.models.encoder import Encoder
from narrlit.models.registry import with_fusion


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("qwen3", "lasttoken")])
def test_each_sentence_is_embedded_with_the_prompt_of_the_role(tiny, kind, pooling, role):
    encoder = sentence_encoder(tiny(kind, pooling), prompts=PROMPTS)
    found = embed_stories(encoder, TEXTS, role, progress=False)
    assert found.embeddings.dtype == np.float32
    assert abs(found.embeddings - sentences_by_hand(encoder, TEXTS, role)).max() < 1e-5
    assert found.coverage.long == 0


def test_embeddings_are_in_the_order_of_the_texts_including_repeated_ones(tiny, monkeypatch):
    encoder = sentence_encoder(tiny())
    expected = sentences_by_hand(encoder, TEXTS)
    monkeypatch.setattr(embedding, "STORIES_PER_PASS", 2)
    order = [3, 0, 0, 2, 1, 3]
    assert (
        abs(embed_stories(encoder, [TEXTS[i] for i in order], progress=False).embeddings - expected[order]).max() < 1e-5
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("before", ["false", None])
def test_texts_for_a_gpu_are_tokenized_on_all_cores(tiny, monkeypatch, device, before):
    encoder = Encoder(EncoderConfig(tiny())).eval()
    if before is None:
        monkeypatch.delenv("TOKENIZERS_PARALLELISM")
    else:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", before)
    settings = []

    def token_ids(*arguments):
        """Note the setting, and stop before anything needs the device."""
        settings.append(os.environ.get("TOKENIZERS_PARALLELISM"))
        raise DataError("no_text")

    monkeypatch.setattr(encoder, "token_ids", token_ids)
    monkeypatch.setattr(Encoder, "device", torch.device(device))
    with refused("no_text"):
        embed_stories(encoder, TEXTS, progress=False)

    assert settings == ["true" if device == "cuda" else before]
    assert os.environ.get("TOKENIZERS_PARALLELISM") == before


def test_a_repeated_sentence_is_embedded_and_counted_once(tiny, monkeypatch):
    encoder = sentence_encoder(tiny(), max_length=12)
    seen, token_ids = [], encoder.token_ids
    monkeypatch.setattr(encoder, "token_ids", lambda texts, role: seen.extend(texts) or token_ids(texts, role))
    long = "A very long sentence about a ship that sank in the cold sea in winter."

    assert embed_stories(encoder, [f"Short. {long}", f"{long} Short.", "Short."], progress=False).coverage.long == 1
    assert sorted(seen) == sorted([long, "Short."])


@pytest.mark.parametrize("blank", ["", " \n\t "])
def test_a_text_without_sentences_is_refused_with_its_number(tiny, blank):
    with refused("blank_story", row=3, stories=4):
        embed_stories(sentence_encoder(tiny()), ["A b.", "C d.", "A b.", blank, "E."], progress=False)


@pytest.mark.parametrize("hidden", [None, 16])
def test_fused_embeddings_match_a_computation_by_hand(tiny, hidden):
    encoder = view_encoder(tiny(), hidden, prompts=Prompts(story="text: "))
    stories = viewed(4)
    found = embed_stories(encoder, stories, progress=False)

    assert abs(found.embeddings - views_by_hand(encoder, stories, "text: ")).max() < 1e-6

    order = [2, 0, 2, 1, 3]
    again = embed_stories(encoder, [stories[i] for i in order], progress=False).embeddings
    assert abs(again - found.embeddings[order]).max() < 1e-6


def test_a_view_with_weight_0_is_not_embedded(tiny):
    encoder = view_encoder(tiny(), fusion=PRESETS["action_only"])
    long = [Story(story.id, story.text + " word" * 500, story.views) for story in viewed(3)]
    found = embed_stories(encoder, long, progress=False)

    assert found.coverage.long == 0
    assert abs(found.embeddings - views_by_hand(encoder, viewed(3))).max() < 1e-6
    assert embed_stories(view_encoder(tiny()), long, progress=False).coverage.long == 3


@pytest.mark.parametrize("hidden", [None, 16])
def test_part_embeddings_are_in_order_and_repeated_texts_are_embedded_once(tiny, hidden):
    encoder = view_encoder(tiny(), hidden)
    stories = viewed(3)
    parts = part_embeddings(encoder, stories, progress=False).embeddings
    for position in range(4):
        with_fusion(encoder, Fusion(*(float(i == position) for i in range(4))))
        assert abs(parts[:, position] - views_by_hand(encoder, stories)).max() < 1e-6

    assert abs(parts[0, 1] - parts[1, 1]).max() < 1e-6  # rows of one product of matrices, which may round otherwise

    few = part_embeddings(encoder, stories, progress=False, needed=[1, 3]).embeddings
    assert abs(few[:, [1, 3]] - parts[:, [1, 3]]).max() < 1e-6
    assert not few[:, [0, 2]].any()

    plain = Encoder(EncoderConfig(tiny())).eval()
    own = part_embeddings(view_encoder(tiny()), stories, progress=False).embeddings
    assert abs(part_embeddings(plain, stories, progress=False).embeddings - own).max() < 1e-6


def test_other_fusion_weights_keep_the_heads(tiny):
    encoder = view_encoder(tiny(), 16)
    heads = encoder.views.heads
    assert with_fusion(encoder, None) is encoder
    assert with_fusion(encoder, PRESETS["equal"]).views.heads is heads
    assert encoder.views.weights == PRESETS["equal"].weights

    plain = Encoder(EncoderConfig(tiny())).eval()
    assert with_fusion(plain, None).reads == "text"
    assert with_fusion(plain, WEIGHTS).reads == "views"


def test_views_can_be_read_by_a_model_of_sentences(tiny):
    inner = sentence_encoder(tiny())
    encoder = sentence_encoder(tiny())
    with_fusion(encoder, WEIGHTS)
    own = [embed_stories(inner, [s.text, *s.views.texts], progress=False).embeddings for s in viewed(3)]
    total = np.stack([np.array(WEIGHTS.weights) @ vectors for vectors in own])
    found = embed_stories(encoder, viewed(3), progress=False).embeddings

    assert abs(found - total / np.linalg.norm(total, axis=1, keepdims=True)).max() < 1e-6


def test_stories_without_views_are_refused(tiny):
    stories = [*viewed(2), Story("x", "No views here.")]
    with refused("story_without_views", row=3, stories=3):
        embed_stories(view_encoder(tiny()), stories, progress=False)
    with refused("story_without_views", row=1, stories=1):
        embed_stories(view_encoder(tiny()), ["A text."], progress=False)


@pytest.mark.parametrize("prompts", [Prompts(), PROMPTS])
def test_scores_are_cosines_with_the_prompts_of_the_roles(tiny, prompts):
    encoder = Encoder(EncoderConfig(tiny(), prompts=prompts, normalize=False)).eval()
    table = StoryTable.of(TEXTS)
    triples = Triples(table, [Triple(0, 1, 2, True), Triple(3, 0, 0), Triple(1, 2, 0, False)])
    story_encoder = StoryEncoder(encoder)
    scores = story_encoder.score(triples)
    coverage = story_encoder.coverage

    def unit_vectors(role):
        vectors = embed_stories(encoder, TEXTS, role, progress=False).embeddings
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    cosines = unit_vectors("anchor") @ unit_vectors("candidate").T
    for triple, (of_a, of_b) in zip(triples, scores, strict=True):
        assert of_a == pytest.approx(cosines[triple.anchor, triple.a], abs=1e-6)
        assert of_b == pytest.approx(cosines[triple.anchor, triple.b], abs=1e-6)
    assert scores.dtype == np.float64
    assert coverage.long == 0


def reading(model, long, build=lambda model, **fields: Encoder(EncoderConfig(model, **fields)), **fields):
    """An encoder that reads long texts in a way."""
    encoder = build(model, **fields)
    encoder.long = long
    return encoder.eval()


def words_read(texts, long):
    """The coverage of different texts that are read whole."""
    words = sum(len(text.split()) for text in set(texts))
    return Coverage(words, float(words), len(set(texts)), long)


def test_texts_within_max_length_have_identical_embeddings_in_all_modes(tiny):
    ways = [embed_stories(reading(tiny(), long), TEXTS, progress=False) for long in ("truncate", "windows", "refuse")]
    for found in ways:
        assert np.array_equal(found.embeddings, ways[0].embeddings)
        assert found.coverage == words_read(TEXTS, long=0)
        assert found.readings[:, 0].tolist() == [len(text.split()) for text in TEXTS]


NAMES = ["king", "queen", "knight", "miller", "piper"]
LONG = " ".join(f"The {name} met a fox on the way to the mill." for name in NAMES)


@pytest.mark.parametrize("role", ROLES)
def test_a_long_text_is_the_mean_of_its_windows_weighted_by_new_tokens(role):
    encoder = reading("minilm", "windows", max_length=30, prompts=PROMPTS)
    sentences = [f"{one}." for one in LONG.removesuffix(".").split(". ")]
    # Two sentences of eleven tokens fit behind the prompt: an eighth of the room is less than one, so none overlaps.
    texts = [" ".join(sentences[i : i + 2]) for i in (0, 2, 4)]
    vectors = encoder.model.encode([encoder.prompt(role) + text for text in texts], prompt="")
    mean = np.array([22, 22, 11]) @ vectors
    found = embed_stories(encoder, ["Short.", LONG], role, progress=False)

    assert abs(found.embeddings[1] - mean / np.linalg.norm(mean)).max() < 1e-6
    assert found.coverage == words_read(["Short.", LONG], long=1)


def test_the_end_of_a_long_text_is_read_only_in_windows(tiny):
    endings = [f"{LONG} {LONG} They all {end}." for end in ("came home", "died at sea")]
    cut = embed_stories(reading(tiny(), "truncate"), endings, progress=False)
    # Rows of one product of matrices, which may round otherwise.
    assert abs(cut.embeddings[0] - cut.embeddings[1]).max() < 1e-6
    assert cut.coverage.record == {"truncated": 2, "words_read": round(cut.coverage.share, 4)}
    assert 0.2 < cut.coverage.least < 0.7

    whole = embed_stories(reading(tiny(), "windows"), endings, progress=False)
    assert abs(whole.embeddings[0] - whole.embeddings[1]).max() > 1e-4
    assert whole.coverage.record == {"truncated": 0, "words_read": 1.0}


def test_windows_keep_the_length_of_unnormalized_embeddings(tiny):
    encoder = reading(tiny(), "windows", normalize=False)
    short, long = np.linalg.norm(embed_stories(encoder, [LONG[:90], LONG * 3], progress=False).embeddings, axis=1)
    assert abs(long / short - 1) < 0.3
    assert abs(short - 1) > 1


def test_long_sentences_and_views_are_read_in_windows(tiny):
    words = [f"{'very ' * 120}{end}" for end in ("sad", "glad")]
    found = embed_stories(
        reading(tiny(), "windows", sentence_encoder), [f"A b. It was {w}." for w in words], progress=False
    )
    assert found.coverage.long == 2
    assert found.coverage.texts == 3
    assert abs(found.embeddings[0] - found.embeddings[1]).max() > 1e-5

    stories = [Story(w, "A b.", Views("T.", "A.", w)) for w in words]
    found = embed_stories(reading(tiny(), "windows", view_encoder), stories, progress=False)
    assert abs(found.embeddings[0] - found.embeddings[1]).max() > 1e-5
    assert found.coverage.share == 1


def test_a_refused_long_story_is_quoted(tiny):
    with refused("text_over_max_length", kind="story", max_length=96):
        embed_stories(reading(tiny(), "refuse"), ["Short.", LONG * 2], progress=False)
    with refused("no_room_for_text"):
        embed_stories(reading(tiny(), "windows", max_length=8, prompts=Prompts(story=LONG)), [LONG], progress=False)


def test_coverage_is_summed_and_described():
    cut = Coverage(100, 41.0, 2, 1, 0.2)
    whole = Coverage(100, 100.0, 3, 0)
    assert cut + whole == Coverage(200, 141.0, 5, 1, 0.2)
    assert (cut + whole).summary(256) == (
        "70.5 % of words read: 1 of 5 stories was cut at 256 tokens, the longest after 20 %"
    )
    assert Coverage(9, 9, 1, 1).summary(8, "sentence", "sentences") == (
        "1 of 1 sentence is longer than 8 tokens: read in windows"
    )
    assert Coverage().share == 1
