"""A story encoder: vectors as the model gives them, each computed once, known by all that decides them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from head_encoders import view_encoder, viewed, views_by_hand
from refusals import refused
from tiny_models import world_texts

from narrlit.data.schema import Story
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import ModelError, OptionError
from narrlit.models import embedding
from narrlit.models.registry import load_encoder

STORIES = ["A knight seeks a grail.", "A diver seeks a pearl.", "A knight seeks a grail.", "A bank lowers its rates."]


@pytest.fixture
def computed(monkeypatch):
    """Texts that a model embeds, in order."""
    texts, embed = [], embedding.embed_stories

    def noting(encoder, stories, *options):
        texts.extend(story if isinstance(story, str) else story.text for story in stories)
        return embed(encoder, stories, *options)

    monkeypatch.setattr(embedding, "embed_stories", noting)
    return texts


def test_embeddings_are_those_of_the_model(tiny):
    expected = embedding.embed_stories(load_encoder(tiny()), STORIES, progress=False).embeddings
    for encoder in (load(tiny()), StoryEncoder(load_encoder(tiny()))):
        np.testing.assert_allclose(encoder.embed(STORIES), expected, atol=1e-6)
        assert encoder.coverage.texts == 3


def test_an_unknown_device_is_refused(tiny):
    with refused("unknown_device", device="gpu"):
        load(tiny(), device="gpu").embed(STORIES)


def test_a_second_encoder_reads_embeddings_and_coverage_from_the_cache(tiny, tmp_path, computed, capsys):
    long = "A king rode to a fox. " * 40
    first = load(tiny(), cache=tmp_path, long="truncate")
    vectors = first.embed([*STORIES, long], progress=True)

    assert sorted(computed) == sorted({*STORIES, long})

    computed.clear()
    again = load(tiny(), cache=tmp_path, long="truncate")
    np.testing.assert_array_equal(again.embed([*STORIES, long], progress=True), vectors)
    assert computed == []
    assert "module" not in vars(again)  # nor is the model loaded
    assert again.coverage == first.coverage
    assert again.coverage.long == 1
    assert again.coverage.share < 1
    assert "4 vectors from" in capsys.readouterr().err

    again.embed(["A new story.", STORIES[0]])
    assert computed == ["A new story."]


def test_a_story_with_other_views_is_embedded_again(tiny, tmp_path, computed):
    encoder = StoryEncoder(view_encoder(tiny()))
    stories = viewed(4)
    np.testing.assert_allclose(encoder.embed(stories), views_by_hand(encoder.module, stories), atol=1e-6)

    cached = load(tiny(), missing_views="positional", fusion="equal", cache=tmp_path)
    one = Story("a", "A king fell ill. He died.", stories[0].views)
    other = Story("a", "A king fell ill. He died.")
    vectors = cached.embed([one, other])

    assert abs(vectors[0] - vectors[1]).max() > 1e-3
    assert len(computed) == 6


def test_the_fingerprint_changes_with_every_setting_that_affects_embeddings(tiny, tmp_path):
    views = tmp_path / "views.jsonl"
    row = {"text": "A king.", "theme": "Power.", "plot_events": ["He rules."], "outcome": "He dies."}
    views.write_text(json.dumps(row))
    fit = [Story(str(i), f"A {name} seeks a key.") for i, name in enumerate(("knight", "diver", "fox", "king"))]
    model = tmp_path / "model"
    shutil.copytree(tiny(), model)

    def variants():
        yield load(model)
        yield load(model, max_length=20)
        yield load(model, long="truncate")
        yield load(model, precision="fp32")
        yield load(model, fusion="equal", missing_views="positional")
        yield load(model, fusion="submitted", missing_views="positional")
        yield load(model, fusion="equal", views=views)
        yield load(model, pseudonyms=True)
        yield load(model, postprocess="center", fit_on=fit)
        yield load(model, postprocess="center", fit_on=fit).fitted_for(fit[:1])
        yield load(model, postprocess="center", fit_on=fit).fitted_for(fit[:2])

    prints = [encoder.fingerprint for encoder in variants()]

    assert len(set(prints)) == len(prints)
    assert [encoder.fingerprint for encoder in variants()] == prints
    assert load(model, cache=tmp_path / "c", device="cpu").fingerprint == prints[0]

    views.write_text(json.dumps({**row, "theme": "Decay."}))
    assert load(model, fusion="equal", views=views).fingerprint not in prints

    (model / "note.txt").write_text("another file of the model")
    assert load(model).fingerprint != prints[0]


def test_the_fingerprint_of_a_loaded_encoder_depends_on_its_weights(tiny):
    one = load_encoder(tiny())
    other = load_encoder(tiny())
    assert StoryEncoder(one).fingerprint == StoryEncoder(other).fingerprint
    next(other.parameters()).data.add_(1)
    assert StoryEncoder(one).fingerprint != StoryEncoder(other).fingerprint


def test_post_processing_is_fitted_on_stories_that_are_not_embedded(tiny, capsys):
    fit = [Story(str(i), f"A {name} seeks a key.") for i, name in enumerate(("knight", "diver", "fox", "king"))]
    plain, embedded = load(tiny()), fit[:1]
    fitted = load(tiny(), postprocess="center", fit_on=fit).fitted_for(embedded)
    others = plain.embed(fit[1:])
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    expected = plain.embed(["A bank opens."])
    expected = expected / np.linalg.norm(expected) - others.mean(axis=0)

    np.testing.assert_allclose(fitted.embed(["A bank opens."]), expected / np.linalg.norm(expected), atol=1e-6)
    assert "fitted on 3 distinct stories; left out 1" in capsys.readouterr().err
    assert fitted.about["postprocess"]["left_out"] == 1
    assert not fitted.is_transductive
    assert fitted.fitted_for(embedded) is fitted
    with refused("fit_on_embedded", n=3, stories=4):
        load(tiny(), postprocess="center", fit_on=fit).fitted_for(fit[:3])
    assert load(tiny(), postprocess="center", transductive=True).fitted_for(fit).is_transductive


def test_stories_and_passages_are_embedded_together_as_separately(tiny):
    encoder = load(tiny())
    texts = [world_texts()[0], "A fox seeks a crown.", " ".join(world_texts()[:3])]
    vectors, passages = encoder.embed_with_passages(texts)
    expected = encoder.passages(texts)
    assert [story.texts for story in passages] == [story.texts for story in expected]
    assert len(passages[0].texts) > len(passages[1].texts) == 1

    np.testing.assert_allclose(vectors, encoder.embed(texts), atol=1e-6)  # sums in another order
    for found, story in zip(passages, expected, strict=True):
        np.testing.assert_allclose(found.vectors, story.vectors, atol=1e-6)


def test_a_story_of_one_passage_is_embedded_once(tiny, computed):
    vectors, (passages,) = load(tiny()).embed_with_passages(["A fox seeks a crown."])
    assert computed == ["A fox seeks a crown."]
    np.testing.assert_allclose(passages.vectors, vectors, atol=1e-6)


def test_passages_are_whole_sentences_and_embedded_separately(tiny):
    encoder = load(tiny())
    first = "A king fell ill, and the doctors of seven towns could not say what he had or how long he would live."
    second = "His youngest son rode out to find the water of life, which a dwarf had told him of at the well."
    passages = encoder.passages([f"{first} {second}", "One sentence. Another."])

    assert [story.texts for story in passages] == [[first, second], ["One sentence. Another."]]

    expected = encoder.embed([first, second, "One sentence. Another."])
    np.testing.assert_allclose(np.concatenate([story.vectors for story in passages]), expected, atol=1e-6)
    with refused("model_without_passages"):
        StoryEncoder(view_encoder(tiny())).passages(["A king."])


def test_a_cache_that_cannot_be_written_gives_a_message_and_the_same_embeddings(tiny, tmp_path, capsys):
    (tmp_path / "file").write_text("no folder")
    vectors = load(tiny(), cache=tmp_path / "file").embed(STORIES)
    np.testing.assert_allclose(vectors, load(tiny()).embed(STORIES), atol=1e-6)
    assert "embeddings are not cached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "refusal"),
    [
        ({"max_length": 2}, OptionError, {"code": "max_length_too_small", "max_length": 2, "least": 3}),
        ({"fusion": "none"}, OptionError, {"code": "unknown_fusion", "fusion": "none"}),
        ({"postprocess": "center"}, OptionError, {"code": "fit_on_needed"}),
        ({"postprocess": "spin"}, OptionError, {"code": "unknown_step", "steps": "spin", "step": "spin"}),
        ({"fit_on": "a.jsonl"}, OptionError, {"code": "fit_on_needs_postprocess"}),
        ({"model": "runs/none"}, ModelError, {"code": "missing_model", "model": "runs/none", "folder": "runs"}),
    ],
)
def test_errors_name_the_parameter(tiny, tmp_path, monkeypatch, options, error, refusal):
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    with refused(**refusal):
        load(**{"model": tiny(), **options})


def test_views_without_fusion_and_a_single_string_are_refused(tiny):
    with refused("views_of_model_without_views"):
        load(tiny(), missing_views="positional").embed(STORIES)
    with refused("string_instead_of_list"):
        load(tiny()).embed("A king.")
