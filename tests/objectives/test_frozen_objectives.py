"""Objectives over frozen embeddings: losses by hand, gradients, checkpoints, options."""

import json
from types import SimpleNamespace

import pytest
import torch
from frozen_batches import batch_of, built, triplet_loss_of_cosines
from refusals import refused

from narrlit.models.config import BiLSTMConfig, EncoderConfig, LoRA
from narrlit.objectives import AspectBiLSTM, Aspects, MLPHead, Projection


@pytest.mark.parametrize("kind", [Projection, MLPHead])
def test_the_loss_is_the_triplet_loss_on_cosine_distance(kind):
    objective = built(kind(margin=0.4))
    batch = batch_of()
    v = objective(batch.stories)

    assert torch.allclose(v.norm(dim=1), torch.ones(9), atol=1e-6)

    expected = triplet_loss_of_cosines(v, margin=0.4)
    assert torch.allclose(objective.loss(v, batch)["loss"], expected, atol=1e-6)


@pytest.mark.parametrize("kind", [Projection, MLPHead, AspectBiLSTM])
def test_training_steps_decrease_the_loss_and_change_every_weight(kind):
    objective = built(kind())
    batch = batch_of((1,) * 9 if kind is not AspectBiLSTM else (2, 3, 1, 4, 2, 2, 3, 1, 5))
    before = {name: p.detach().clone() for name, p in objective.named_parameters()}
    optimizer = torch.optim.Adam(objective.parameters(), lr=3e-3)
    losses = []
    for step in range(15):
        torch.manual_seed(step)
        loss = objective.loss(objective(batch.stories), batch)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses[-1] < losses[0] - 0.05
    assert [n for n, p in objective.named_parameters() if torch.equal(p, before[n])] == []


def test_constructors_build_nothing_and_save_plain_settings():
    for objective in (Projection(), MLPHead(hidden=[3]), AspectBiLSTM()):
        assert not list(objective.parameters())
        settings = dict(objective.hparams)
        assert json.loads(json.dumps(settings))["objective"] == type(objective).__name__
        assert settings["embeddings"]["folder"] == "runs/embeddings"

    assert settings["head"] == {"kind": "bilstm", "hidden": 128, "layers": 2, "dropout": 0.1, "output": 256}


def checkpoint_of(objective, space):
    objective._cached = SimpleNamespace(space=space)
    checkpoint = {"state_dict": objective.state_dict(), "hyper_parameters": dict(objective.hparams)}
    objective.on_save_checkpoint(checkpoint)
    return checkpoint


SPACE = {"model": "m", "max_length": 96, "stored": "float32", "prompts": {"anchor": ""}}


def test_a_checkpoint_resumes_with_its_own_head_and_embeddings_only():
    kept = checkpoint_of(built(Projection()), SPACE)
    same = built(Projection(margin=0.5))
    same._cached = SimpleNamespace(space={**SPACE, "stored": "float16"})
    same.on_load_checkpoint(kept)
    layers = built(MLPHead())
    layers._cached = SimpleNamespace(space=SPACE)

    with refused("checkpoint_of_other_objective", recorded="Projection", objective="MLPHead"):
        layers.on_load_checkpoint(kept)

    for name, value in (("max_length", 256), ("prompts", {"anchor": "q"})):
        same._cached = SimpleNamespace(space={**SPACE, name: value})
        with refused("checkpoint_of_other_encoder", name=name, recorded=SPACE[name], found=value):
            same.on_load_checkpoint(kept)

    wide = built(AspectBiLSTM())
    narrow = built(AspectBiLSTM(bilstm=BiLSTMConfig(hidden=64)))
    narrow._cached = SimpleNamespace(space=SPACE)

    with refused("checkpoint_of_other_head", name="hidden", recorded=128, found=64):
        narrow.on_load_checkpoint(checkpoint_of(wide, SPACE))


def test_a_head_computes_in_full_precision_under_autocast():
    objective = built(Projection(noise=0.05))
    batch = batch_of()
    plain = objective(batch.stories)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(objective(batch.stories), plain)


def test_a_sharded_strategy_is_refused():
    objective = Projection()
    objective._device_mesh = object()
    with refused("sharded_head", objective="Projection"):
        objective.configure_model()


def test_options_out_of_range_are_refused():
    for make, option in (
        (lambda: Projection(margin=-1), "margin"),
        (lambda: Projection(noise=-0.1), "noise"),
        (lambda: Projection(margin=float("nan")), "margin"),
        (lambda: Aspects(weights=(1, float("nan"), 1)), "aspects.weights[1]"),
        (lambda: MLPHead(margin=-1), "margin"),
        (lambda: Aspects(ratios=(1, 0, 1)), "aspects.ratios[1]"),
        (lambda: Aspects(weight=-1), "aspects.weight"),
        (lambda: AspectBiLSTM(margin=-1), "margin"),
    ):
        with refused("config_value", option=option):
            make()

    with refused("dimension_for_each_aspect", output=2, least=3):
        AspectBiLSTM(bilstm=BiLSTMConfig(output=2))
    with refused("sizes_of_head", hidden=[0]):
        MLPHead(hidden=[0])


def test_settings_of_a_trained_encoder_are_refused():
    for make, option, objective in (
        (lambda: Projection(EncoderConfig(lora=LoRA())), "encoder.lora", "Projection"),
        (lambda: MLPHead(EncoderConfig(frozen_layers=0.5)), "encoder.frozen_layers", "MLPHead"),
        (lambda: Projection(EncoderConfig(dropout=0.1)), "encoder.dropout", "Projection"),
    ):
        with refused("encoder_never_trained", option=option, objective=objective):
            make()
