"""Stories read sentence by sentence: the vectors, what is embedded, and what is refused."""

import numpy as np
import pytest
from adapted_encoders import adapted, move
from sentence_encoders import PROMPTS, ROLES, TEXTS, by_hand, head, sentence_encoder

from narrlit.data.records import Triple
from narrlit.errors import DataError, ModelError
from narrlit.metrics.meanmax import MeanMax, meanmax_scores
from narrlit.models import embedding
from narrlit.models.bilstm import BiLSTM, BiLSTMConfig
from narrlit.models.embedding import cosine_scores, embed
from narrlit.models.sentence_encoder import SentenceEncoder


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("qwen3", "lasttoken")])
def test_vectors_are_those_made_by_hand_with_the_roles_prompt_before_each_sentence(tiny, kind, pooling, role):
    encoder = sentence_encoder(tiny(kind, pooling), prompts=PROMPTS)
    vectors, cut = embed(encoder, TEXTS, role, progress=False)
    assert vectors.dtype == np.float32
    assert abs(vectors - by_hand(encoder, TEXTS, role)).max() < 1e-5
    assert abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert cut == 0


def test_stories_and_roles_differ(tiny):
    encoder = sentence_encoder(tiny(), prompts=PROMPTS)
    found = np.stack([embed(encoder, TEXTS, role, progress=False)[0] for role in ROLES]).reshape(-1, 12)
    apart = abs(found[:, None] - found).max(2) + np.eye(len(found))
    assert apart.min() > 1e-3


def test_texts_come_in_their_order_in_passes_with_repeats(tiny, monkeypatch):
    encoder = sentence_encoder(tiny())
    expected = by_hand(encoder, TEXTS)
    monkeypatch.setattr(embedding, "STORIES_A_PASS", 2)
    places = [3, 0, 0, 2, 1, 3]
    vectors, _ = embed(encoder, [TEXTS[i] for i in places], progress=False)
    assert abs(vectors - expected[places]).max() < 1e-5


def test_a_sentence_is_embedded_once_and_counted_once_if_it_is_cut(tiny, monkeypatch):
    encoder = sentence_encoder(tiny(), max_length=12)
    seen = []
    tokenize = encoder.inner.tokenize
    monkeypatch.setattr(encoder.inner, "tokenize", lambda texts, role: seen.extend(texts) or tokenize(texts, role))
    long = "A very long sentence about a ship that sank in the cold sea in winter."
    _, cut = embed(encoder, [f"Short. {long}", f"{long} Short.", "Short."], progress=False)
    assert sorted(seen) == sorted([long, "Short."])
    assert cut == 1


def test_the_sentences_order_counts(tiny):
    encoder = sentence_encoder(tiny())
    texts = ["He left. It rained. She slept.", "She slept. It rained. He left."]
    (told, turned), _ = embed(encoder, texts, progress=False)
    assert abs(told - turned).max() > 1e-3


@pytest.mark.parametrize("blank", ["", " \n\t "])
def test_a_text_without_a_sentence_is_named_by_its_number(tiny, blank):
    encoder = sentence_encoder(tiny())
    with pytest.raises(DataError, match="text 4 of 5"):
        embed(encoder, ["A b.", "C d.", "A b.", blank, "E."], progress=False)


def test_no_texts_have_no_vectors(tiny):
    vectors, cut = embed(sentence_encoder(tiny()), [], progress=False)
    assert vectors.shape == (0, 12)
    assert cut == 0


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_if_wanted_for_sentences_and_for_stories(tiny, monkeypatch, progress):
    bars = []

    class Bar(embedding.tqdm):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            bars.append((options["desc"], options["total"], options["disable"]))

    monkeypatch.setattr(embedding, "tqdm", Bar)
    embed(sentence_encoder(tiny()), ["He left. It rained.", "He left."], progress=progress)
    assert bars == [("embedding", 2, not progress), ("reading sentences", 2, not progress)]


def test_cosine_scores_use_both_roles(tiny):
    encoder = sentence_encoder(tiny(), prompts=PROMPTS)
    scores, _ = cosine_scores(encoder, [Triple(*TEXTS[:3], True)], progress=False)
    (anchor,), (a, b) = by_hand(encoder, TEXTS[:1], "anchor"), by_hand(encoder, TEXTS[1:3], "candidate")
    assert np.allclose(scores, [(anchor @ a, anchor @ b)], atol=1e-5)


def test_it_says_what_its_encoder_of_sentences_is(tiny):
    encoder = sentence_encoder(tiny(), max_length=20, prompts=PROMPTS)
    assert encoder.config is encoder.inner.config
    assert (encoder.dimension, encoder.max_length, encoder.normalized) == (12, 20, True)
    assert (encoder.has_adapters, encoder.quantized) == (False, False)
    assert [encoder.prompt(role) for role in ROLES] == ["query: ", "passage: ", "text: "]
    with pytest.raises(ModelError, match="Track B makes one vector"):
        encoder.require_one_prompt("Track B")
    sentence_encoder(tiny()).require_one_prompt("Track B")
    assert len(list(encoder.parameters())) == sum(len(list(part.parameters())) for part in encoder.children())
    assert {id(parameter) for parameter in encoder.head.parameters()} < {id(p) for p in encoder.parameters()}


def test_adapters_are_merged_in_place_and_give_the_same_vectors(tiny):
    encoder = SentenceEncoder(move(adapted(tiny)), head()).eval()
    before, _ = embed(encoder, TEXTS, progress=False)
    assert encoder.has_adapters
    encoder.merge()
    assert not encoder.has_adapters
    assert abs(embed(encoder, TEXTS, progress=False)[0] - before).max() < 1e-5


def test_a_bilstm_over_another_model_is_refused(tiny):
    with pytest.raises(ModelError, match="vectors of 32 numbers, but the BiLSTM reads vectors of 31"):
        SentenceEncoder(sentence_encoder(tiny()).inner, BiLSTM(31, BiLSTMConfig()))


def test_meanmax_names_the_model_that_has_vectors_of_sentences(tiny):
    encoder = sentence_encoder(tiny())
    triples = [Triple(*TEXTS[:3], True)]
    with pytest.raises(ModelError, match=tiny()):
        meanmax_scores(encoder, triples, MeanMax(), progress=False)
    assert len(meanmax_scores(encoder.inner, triples, MeanMax(), progress=False).scores) == 1
