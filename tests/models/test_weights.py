"""Trained weights by themselves: checkpoints of adapters alone, teachers' folders, and copies put back."""

import json

import pytest
import torch
from adapted_encoders import adapted, move, vectors
from refusals import refused
from tiny_models import world_texts

from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder
from narrlit.models.weights import build_encoder, read_weights, restore_weights, save_encoder, trained_weights

pytestmark = pytest.mark.usefixtures("run_seed")


def checkpoint(path, encoder, keep=lambda name: True):
    state = {f"encoder.{name}": value for name, value in encoder.state_dict().items() if keep(name)}
    torch.save({"hyper_parameters": {"encoder": encoder.config.as_dict()}, "state_dict": state}, path)
    return str(path)


def test_a_checkpoint_of_adapters_is_loaded_merged(tiny, tmp_path):
    encoder = move(adapted(tiny, "bert", "mean"))
    path = checkpoint(tmp_path / "x.ckpt", encoder, lambda name: ".lora_" in name)
    whole = checkpoint(tmp_path / "whole.ckpt", encoder)
    texts = world_texts()[:4]
    before = vectors(encoder, texts)
    for source in (path, whole):
        again = load_encoder(source, long="truncate")
        assert not again.has_adapters
        found = embed_stories(again, texts, progress=False).embeddings
        assert torch.allclose(torch.from_numpy(found), before, atol=1e-5)


def test_a_checkpoint_with_missing_or_unknown_weights_is_refused(tiny, tmp_path):
    encoder = adapted(tiny)
    lacking = checkpoint(
        tmp_path / "a.ckpt", encoder, lambda n: ".lora_" in n and "layers.1.mlp.up_proj.lora_B" not in n
    )
    plain = Encoder(EncoderConfig(tiny("qwen3", "lasttoken")))
    without = checkpoint(tmp_path / "b.ckpt", plain, lambda name: "norm" in name)
    strange = tmp_path / "c.ckpt"
    state = {f"encoder.{n}": v for n, v in trained_weights(encoder).items()} | {"encoder.color": torch.ones(1)}
    torch.save({"hyper_parameters": {"encoder": encoder.config.as_dict()}, "state_dict": state}, strange)

    for path in (lacking, without, str(strange)):
        with refused("checkpoint_of_other_model"):
            load_encoder(path)


@pytest.mark.parametrize("lora", [LoRA(rank=4), None])
def test_a_folder_of_a_teacher_gives_the_same_embeddings(tiny, tmp_path, lora):
    encoder = adapted(tiny, "bert", "mean", lora=lora)
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.requires_grad:
                parameter.add_(0.03 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)))

    save_encoder(tmp_path, encoder.config, trained_weights(encoder))

    assert (".lora_" in next(iter(read_weights(tmp_path / "weights.safetensors")))) == (lora is not None)

    texts = world_texts()[:4]
    found = embed_stories(load_encoder(str(tmp_path), long="truncate"), texts, progress=False).embeddings
    before = vectors(encoder, texts)

    assert torch.allclose(torch.from_numpy(found), before, atol=1e-5)
    assert not torch.allclose(vectors(Encoder(EncoderConfig(tiny("bert"))), texts), before, atol=1e-3)
    assert load_encoder(str(tmp_path), max_length=20).max_length == 20


def test_a_damaged_file_in_a_folder_of_a_teacher_is_named(tiny, tmp_path):
    encoder = adapted(tiny, "bert", "mean")
    weights = trained_weights(encoder)
    save_encoder(tmp_path, encoder.config, dict(list(weights.items())[1:]))

    with refused("broken_encoder", folder=tmp_path):
        load_encoder(str(tmp_path))

    (tmp_path / "weights.safetensors").unlink()
    with refused("broken_encoder"):
        load_encoder(str(tmp_path))

    for text in ("{", "[1]", json.dumps({"color": 1}), json.dumps({"lora": "strong"})):
        (tmp_path / "encoder.json").write_text(text)
        with refused("broken_encoder_config", path="encoder.json"):
            load_encoder(str(tmp_path))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"gradient_caching": True}, "sharded_gradient_caching"),
        ({"quantization": "nf4"}, "sharded_quantization"),
    ],
)
def test_options_that_sharding_does_not_support_are_refused(tiny, fields, code):
    with refused(code):
        build_encoder(EncoderConfig(tiny("qwen3"), **fields), mesh=object())


def test_restored_weights_are_set_in_place(tiny):
    encoder = move(adapted(tiny))
    other = adapted(tiny)
    places = [p.data_ptr() for p in other.parameters()]
    kept = trained_weights(encoder)
    restore_weights(other, kept)

    assert [p.data_ptr() for p in other.parameters()] == places
    assert all(torch.equal(p, dict(encoder.named_parameters())[n]) for n, p in other.named_parameters() if n in kept)
    assert torch.allclose(vectors(encoder, ["A story."]), vectors(other, ["A story."]), atol=1e-6)

    move(encoder, 0.5)
    assert not any(torch.equal(kept[n], p) for n, p in encoder.named_parameters() if ".lora_B." in n)  # copies

    name = next(iter(kept))
    for wrong in ({k: v for k, v in kept.items() if k != name}, {**kept, name: torch.ones(2, 2)}):
        with refused("weights_of_other_model"):
            restore_weights(other, wrong)
