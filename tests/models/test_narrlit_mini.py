"""narrlit-mini, the adapter in the package: it loads without a network, and tells plots from words."""

import json

import numpy as np
import pytest
from json_files import read_json
from refusals import refused

import narrlit
from narrlit.data.twice_told import TwiceTold
from narrlit.embedding_cache.space import model_identity
from narrlit.models.config import EncoderConfig
from narrlit.models.packaged import packaged_adapter
from narrlit.models.pretrained import load_model

STORIES = [
    "A knight seeks the grail for years, loses all he owns, and finds it at home.",
    "A collector hunts a lost painting for years, spends all she owns, and finds it in her own attic.",
    "A knight steals the grail, sells it, and buys a castle.",
]


@pytest.fixture(scope="module")
def unseen():
    """Test plots in worlds that no training has seen, and their vectors by both models."""
    corpus = TwiceTold.read()
    names = {plot.plot for plot in corpus.split("test").plots}
    worlds = (*corpus.split("validation").worlds, *corpus.split("test").worlds)
    stories = [story for story in corpus.tellings if story.plot in names and story.world in worlds]
    texts = [story.text for story in stories]
    return stories, {model: narrlit.embed(texts, model) for model in ("minilm", "narrlit-mini")}


def test_the_same_words_count_less_than_for_the_frozen_encoder():
    plain, trained = (narrlit.similarity(STORIES, model)[0] for model in ("minilm", "narrlit-mini"))
    assert plain[2] - plain[1] > 0.3
    assert trained[2] - trained[1] < 0.15  # 0.119; kernels change cosines by less than 1e-5


@pytest.mark.long
def test_unseen_plots_are_recognized_in_unseen_settings(unseen):
    stories, vectors = unseen
    plots = np.array([story.plot for story in stories])
    worlds = np.array([story.world for story in stories])
    accuracy = {}
    for model, found in vectors.items():
        cosines = found @ found.T
        right = []
        for row in range(len(stories)):
            positives = cosines[row, (plots == plots[row]) & (worlds != worlds[row])]
            negatives = cosines[row, (plots != plots[row]) & (worlds == worlds[row])]
            right.append((positives[:, None] > negatives).mean())
        accuracy[model] = np.mean(right)

    assert accuracy["minilm"] < 0.4
    assert accuracy["narrlit-mini"] > accuracy["minilm"] + 0.2


def test_its_files_are_small_and_contain_no_path():
    folder = packaged_adapter()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000_000
    for name in ("encoder.json", "average.json"):
        assert "/" not in json.dumps(read_json(folder / name))
    assert "CC BY-SA 4.0" in (folder / "README.md").read_text()


def test_its_identity_depends_on_its_own_and_its_encoders_files():
    name, digest = model_identity("narrlit-mini")
    assert name == "narrlit-mini"
    assert digest.endswith(f" {model_identity('minilm')[1]}")


def test_it_must_be_exported_before_further_training(tmp_path):
    with refused("trained_weights_alone"):
        load_model(EncoderConfig("narrlit-mini"))
    narrlit.export("narrlit-mini", tmp_path / "exported")
    expected = narrlit.embed(STORIES, "narrlit-mini")
    assert np.allclose(narrlit.embed(STORIES, tmp_path / "exported"), expected, atol=1e-6)
