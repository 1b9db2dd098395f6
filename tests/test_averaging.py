"""Averages of runs: the mean of their weights, interpolated with the frozen encoder."""

import copy

import numpy as np
import pytest
import torch
from refusals import refused

import narrlit
from narrlit.models.averaging import average_weights
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.encoder import Encoder
from narrlit.models.weights import load_saved, save_encoder

STORIES = ["A knight seeks the grail.", "A collector hunts a painting for years.", "The fox ran."]


@pytest.fixture
def trainings(tiny):
    """Two encoders of one model whose trained weights differ, with adapters of other ranks or without any."""

    def make(*adapters):
        encoders = []
        for seed, lora in enumerate(adapters):
            encoder = Encoder(EncoderConfig(tiny("bert"), lora=lora))
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for parameter in encoder.parameters():
                    if parameter.requires_grad:
                        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
            encoders.append(encoder)
        return encoders

    return make


def merged_weights(encoder):
    encoder = copy.deepcopy(encoder)
    encoder.merge()
    return {name: value.clone() for name, value in encoder.named_parameters()}


@pytest.mark.parametrize("share", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("adapters", [(None, None), (LoRA(4, 8, 0.0), LoRA(2, 12, 0.0))])
def test_an_average_interpolates_the_frozen_weights_and_the_mean_of_the_merged_ones(
    trainings, tiny, tmp_path, adapters, share
):
    encoders = trainings(*adapters)
    save_encoder(tmp_path, *average_weights(encoders, share))
    averaged = merged_weights(load_saved(tmp_path))
    frozen = merged_weights(Encoder(EncoderConfig(tiny("bert"))))
    first, second = (merged_weights(encoder) for encoder in encoders)
    for name, value in averaged.items():
        expected = frozen[name] + share * ((first[name] + second[name]) / 2 - frozen[name])
        assert torch.allclose(value, expected, atol=1e-6), name  # sums in another order

    assert any(not torch.equal(first[name], second[name]) for name in averaged)


@pytest.mark.parametrize("adapters", [(None, None), (LoRA(4, 8, 0.0), LoRA(2, 12, 0.0))])
def test_shares_of_each_training_add_up(trainings, tiny, tmp_path, adapters):
    encoders = trainings(*adapters)
    save_encoder(tmp_path, *average_weights(encoders, [1.0, 0.5]))
    summed = merged_weights(load_saved(tmp_path))
    frozen = merged_weights(Encoder(EncoderConfig(tiny("bert"))))
    first, second = (merged_weights(encoder) for encoder in encoders)
    for name, value in summed.items():
        expected = first[name] + 0.5 * (second[name] - frozen[name])
        assert torch.allclose(value, expected, atol=1e-6), name  # sums in another order


def test_ranks_of_adapters_add_up(trainings):
    config, weights = average_weights(trainings(LoRA(4, 8, 0.0), LoRA(2, 12, 0.0)))
    assert config.lora.rank == 6
    assert all(6 in value.shape for value in weights.values())


def test_runs_that_do_not_fit_together_are_refused(trainings):
    with refused("share", option="trained_share", found=1.5):
        average_weights(trainings(None), 1.5)
    with refused("number_of_shares", shares=2, trainings=1):
        average_weights(trainings(None), [1.0, 0.5])
    with refused("other_weights_averaged"):
        average_weights([*trainings(None), *trainings(LoRA(4, 8, 0.0))])


def test_a_folder_of_runs_loads_as_a_model(trainings, tmp_path):
    one, two = trainings(LoRA(4, 8, 0.0), LoRA(4, 8, 0.0))
    for name, encoder in (("one", one), ("two", two)):
        (tmp_path / name).mkdir()
        config, weights = average_weights([encoder])
        save_encoder(tmp_path / name, config, weights)

    found = narrlit.average([tmp_path / "one", tmp_path / "two"], tmp_path / "both")

    assert str(found) == "mean of 2, trained share 1, adapters of rank 8"
    added = narrlit.average([tmp_path / "one", tmp_path / "two"], tmp_path / "sum", trained_share=[1.0, 0.5])
    assert str(added) == "sum of 2, trained shares 1, 0.5, adapters of rank 8"
    card = narrlit.export(tmp_path / "sum", tmp_path / "exported_sum").path / "README.md"
    assert "sum of 2, trained shares 1, 0.5" in card.read_text(encoding="utf-8")

    vectors = narrlit.embed(STORIES, tmp_path / "both")
    assert vectors.shape == (3, 32)
    assert not np.allclose(vectors, narrlit.embed(STORIES, tmp_path / "one"), atol=1e-3)

    narrlit.export(tmp_path / "both", tmp_path / "exported")
    assert np.allclose(narrlit.embed(STORIES, tmp_path / "exported"), vectors, atol=1e-6)
    with refused("empty_list", option="models"):
        narrlit.average([], tmp_path / "none")
