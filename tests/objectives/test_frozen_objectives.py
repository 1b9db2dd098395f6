"""Objectives over frozen embeddings: losses by hand, gradients, checkpoints, options."""

import json
from types import SimpleNamespace

import pytest
import torch
from frozen_batches import batch_of, built, triplet_loss_of_cosines

from narrlit.errors import ModelError, OptionError
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

    with pytest.raises(ModelError, match="the checkpoint is from Projection, this run has MLPHead"):
        layers.on_load_checkpoint(kept)

    for other, named in (({"max_length": 256}, "max_length is 96"), ({"prompts": {"anchor": "q"}}, "prompts is")):
        same._cached = SimpleNamespace(space={**SPACE, **other})
        with pytest.raises(ModelError, match=f"has another encoder: its {named}"):
            same.on_load_checkpoint(kept)

    wide = built(AspectBiLSTM())
    narrow = built(AspectBiLSTM(bilstm=BiLSTMConfig(hidden=64)))
    narrow._cached = SimpleNamespace(space=SPACE)

    with pytest.raises(ModelError, match="hidden is 128, that of this run 64"):
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
    with pytest.raises(OptionError, match="trains a small head"):
        objective.configure_model()


def test_options_out_of_range_are_refused():
    for make, word in (
        (lambda: Projection(margin=-1), "margin"),
        (lambda: Projection(noise=-0.1), "noise"),
        (lambda: Projection(EncoderConfig(lora=LoRA())), "lora"),
        (lambda: MLPHead(EncoderConfig(frozen_layers=0.5)), "frozen_layers"),
        (lambda: Projection(EncoderConfig(dropout=0.1)), "dropout"),
        (lambda: Projection(margin=float("nan")), "margin"),
        (lambda: AspectBiLSTM(bilstm=BiLSTMConfig(output=2)), "bilstm.output"),
        (lambda: Aspects(weights=(1, float("nan"), 1)), "weights"),
        (lambda: MLPHead(hidden=[0]), "hidden"),
        (lambda: MLPHead(margin=-1), "margin"),
        (lambda: Aspects(ratios=(1, 0, 1)), "ratios"),
        (lambda: Aspects(weight=-1), "weight"),
        (lambda: AspectBiLSTM(margin=-1), "margin"),
    ):
        with pytest.raises(OptionError, match=word):
            make()
