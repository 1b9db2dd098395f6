"""4- and 8-bit weights under adapters: right gradients, whatever ran before, and plain folders out of them."""

import sys
from types import SimpleNamespace

import pytest
import torch
from adapted_encoders import gradients, packed, vectors
from json_files import read_json
from refusals import refused
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from tiny_models import trained_tokenizer, world_texts
from torch import nn
from transformers import Qwen3Config, Qwen3Model
from transformers.integrations.bitsandbytes import dequantize_bnb_weight

from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models.adapters import quantization_of
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder
from narrlit.models.weights import save_encoder, trained_weights

pytestmark = pytest.mark.usefixtures("run_seed")

TARGETS = 7
LAYERS = 2
KINDS = ["nf4", "int8"]


def dequantized(linear):
    return dequantize_bnb_weight(linear.weight, getattr(linear, "state", None)).detach().float()


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory):
    """A random Qwen3 whose layers are as wide as bitsandbytes' blocks."""
    folder = tmp_path_factory.mktemp("wide")
    tokenizer = trained_tokenizer("qwen3")
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2}
    numbers = {"head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 512, "initializer_range": 0.1}
    words = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    Qwen3Model(Qwen3Config(**shape, **numbers, **words)).float().save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    modules = [Transformer(str(folder / "base"), max_seq_length=96), Pooling(64, pooling_mode="lasttoken"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
    return str(folder / "model")


def built(model, quantization, lora=True, **fields):
    """An encoder whose adapters are off zero."""
    adapters = LoRA(rank=4, alpha=8, dropout=0.0) if lora else None
    encoder = Encoder(EncoderConfig(model, lora=adapters, quantization=quantization, **fields))
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if ".lora_B." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return encoder


def reference(model, encoder):
    """The same encoder in float32, its weights what the quantised ones stand for."""
    plain = built(model, None)
    with torch.no_grad():
        for name, module in encoder.transformer.named_modules():
            if quantization_of(module):
                plain.transformer.get_submodule(name).weight.copy_(dequantized(module))
    return plain


def cosines(a, b):
    return torch.cosine_similarity(a.float(), b.float()).min()


def test_all_linear_layers_and_nothing_else_are_quantized(qwen3):
    for kind in KINDS:
        encoder = built(qwen3, kind)
        found = [name for name, m in encoder.transformer.named_modules() if quantization_of(m) == kind]
        assert len(found) == TARGETS * LAYERS
        assert all(name.endswith(".base_layer") for name in found)
        assert {p.dtype for n, p in encoder.named_parameters() if "norm" in n or "embed" in n} == {torch.float32}
        assert encoder.quantized


@pytest.mark.parametrize("context", [None, torch.inference_mode])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_match_those_of_a_float_model_also_after_validation(qwen3, kind, context):
    """bitsandbytes repacks 4-bit weights in an eval() forward on some processors: gradients would be lost or wrong."""
    texts = world_texts()[:4]
    encoder = built(qwen3, kind)
    assert not any(getattr(m, "support_avx512bf16_for_cpu", False) for m in encoder.modules())

    theirs = gradients(reference(qwen3, encoder), texts)
    if context is not None:
        with context():
            encoder.eval()(packed(encoder, texts))
            encoder(packed(encoder, texts[:1]))

    ours = gradients(encoder, texts)

    assert ours.keys() == {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert len(ours) == 2 * TARGETS * LAYERS
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        assert gradient.abs().sum() > 0, name
        assert torch.cosine_similarity(gradient.flatten(), theirs[name].flatten(), dim=0) > 0.999, name
        assert gradient.norm() / theirs[name].norm() == pytest.approx(1, abs=0.01), name


@pytest.mark.parametrize("lora", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_export_is_a_plain_folder_with_the_same_embeddings(qwen3, tmp_path, kind, lora):
    texts = world_texts()[:4]
    encoder = built(qwen3, kind, lora)
    expected = vectors(reference(qwen3, encoder) if lora else encoder, texts)
    before = vectors(encoder, texts)

    assert cosines(before, vectors(built(qwen3, None, lora), texts)) < 0.9999  # quantising shows

    write_model_folder(encoder, tmp_path / "out", Origin(trained=True))
    assert not encoder.quantized
    assert not encoder.has_adapters
    assert all(type(m) is nn.Linear for m in encoder.transformer.modules() if isinstance(m, nn.Linear))

    after = vectors(encoder, texts)
    settings = read_json(tmp_path / "out" / "config.json")
    assert not [name for name in settings if "quant" in name]

    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts, convert_to_tensor=True)
    assert torch.allclose(theirs, after, atol=1e-5)

    if kind == "nf4":
        assert torch.allclose(after, before, atol=1e-5)
    if kind == "nf4" or lora:
        assert torch.allclose(after, expected, atol=1e-5)

    assert cosines(after, before) > 0.99

    files = " ".join(path.read_text() for path in (tmp_path / "out").rglob("*.json"))
    assert "bitsandbytes" not in files
    assert not list((tmp_path / "out").rglob("adapter_*"))


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_and_teachers_contain_only_adapters_and_load_quantized(qwen3, tmp_path, kind):
    texts = world_texts()[:4]
    encoder = built(qwen3, kind)
    before = vectors(encoder, texts)

    assert all(".lora_" in name for name in trained_weights(encoder))

    save_encoder(tmp_path, encoder.config, trained_weights(encoder))
    for name, keep in (("alone", ".lora_"), ("whole", "")):
        state = {f"encoder.{n}": value for n, value in encoder.state_dict().items() if keep in n}
        content = {"hyper_parameters": {"encoder": encoder.config.as_dict()}, "state_dict": state}
        torch.save(content, tmp_path / f"{name}.ckpt")
    for source in (tmp_path, tmp_path / "alone.ckpt", tmp_path / "whole.ckpt"):
        again = load_encoder(str(source), long="truncate")
        assert again.quantized
        assert again.has_adapters
        found = embed_stories(again, texts, progress=False).embeddings
        assert cosines(torch.from_numpy(found), before) > 0.9999


@pytest.mark.parametrize("kind", KINDS)
def test_a_quantized_model_embeds_without_adapters_and_accepts_overrides(tiny, kind):
    fields = {"pooling": "cls", "dropout": 0.3, "max_length": 40, "normalize": False}
    encoder = Encoder(EncoderConfig(tiny("bert"), quantization=kind, **fields))
    assert encoder.model[1].pooling_mode == "cls"
    assert {m.p for m in encoder.modules() if isinstance(m, nn.Dropout)} == {0.3}
    assert encoder.max_length == 40
    assert encoder.normalized is False

    plain = Encoder(EncoderConfig(tiny("bert"), **fields))
    texts = world_texts()[:3]
    assert cosines(vectors(encoder, texts), vectors(plain, texts)) > 0.95
    assert quantization_of(encoder.transformer.encoder.layer[0].output.dense) == kind
    assert quantization_of(encoder.transformer.pooler.dense) is None


def test_the_scales_of_8_bit_weights_are_moved_with_them(qwen3):
    """Moving a model puts other memory behind its parameters; a clone on the CPU stands for a GPU here."""
    encoder = built(qwen3, "int8")
    texts = world_texts()[:3]
    layer = encoder.transformer.layers[0].mlp.up_proj.base_layer
    encoder._apply(lambda tensor: tensor.data.clone())

    assert layer.weight.CB.data_ptr() == layer.weight.data_ptr()

    before = vectors(encoder, texts)
    encoder._apply(lambda tensor: tensor.data.clone())
    assert layer.state.CB.data_ptr() == layer.weight.data_ptr()
    # Memory elsewhere may be summed in another order; stale memory would give anything.
    assert torch.allclose(vectors(encoder, texts), before, atol=1e-6)
    assert torch.allclose(vectors(encoder.to("cpu"), texts), before, atol=1e-6)


@pytest.mark.parametrize("package", ["bitsandbytes"])
def test_a_missing_package_is_named_with_its_extra(qwen3, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, package)
    finders = [SimpleNamespace(find_spec=lambda name, *_: _refuse(name, package)), *sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)

    with refused("missing_extra", commands="pip install 'narrlit[quant]'", module=package):
        Encoder(EncoderConfig(qwen3, quantization="nf4"))


def _refuse(name, package):
    if name == package:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
