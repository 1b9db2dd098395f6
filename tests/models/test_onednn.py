"""oneDNN's linear layers give the same vectors, only where they were tested, and leave no trace."""

import platform
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import world_texts
from torch import nn
from transformers import AutoConfig, AutoModel

from narrlit.models import embedding, onednn
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.onednn import fused_linears

LAYERS = 3
# Not onednn's own check: if that refused by mistake, nothing else would show it.
there = hasattr(torch.ops.mkldnn, "_linear_pointwise") and platform.machine().lower() in {"x86_64", "amd64"}
needs_onednn = pytest.mark.skipif(not there, reason="no oneDNN operators on this machine")


def tiny_encoder(model_type, **changes):
    """A random transformer of this architecture, without a tokenizer."""
    shape = {"hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "intermediate_size": 48}
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **shape, vocab_size=50, pad_token_id=1, **changes)
    return AutoModel.from_config(config).float().eval()


def hidden(transformer):
    ids = torch.arange(60).view(3, 20) % 45 + 3
    return transformer(input_ids=ids).last_hidden_state


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


@needs_onednn
@pytest.mark.parametrize("model_type", sorted(onednn.FUSABLE))
def test_every_supported_architecture_gives_the_same_result_with_onednn(model_type, no_grad):
    transformer = tiny_encoder(model_type)
    before = hidden(transformer)
    with fused_linears(transformer) as count:
        assert count == 6 * LAYERS
        assert (hidden(transformer) - before).abs().max() < 5e-6
        for layer in transformer.encoder.layer:
            assert "forward" in vars(layer.intermediate)

    assert torch.equal(hidden(transformer), before)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("packed", [True, False])
def test_embed_gives_the_same_embeddings_and_restores_the_model(tiny, monkeypatch, kind, packed):
    encoder = Encoder(EncoderConfig(tiny(kind), packed=packed)).eval()
    counts = []

    @contextmanager
    def counting(transformer):
        with fused_linears(transformer) as count:
            counts.append(count)
            yield

    monkeypatch.setattr(embedding, "fused_linears", counting)
    embed_stories(encoder, world_texts()[:1], progress=False)

    assert not counts  # for one text it would not pay

    monkeypatch.setattr(embedding, "TEXTS_TO_FUSE", 2)
    ours = embed_stories(encoder, world_texts(), progress=False).embeddings
    assert not there or counts == [6 * LAYERS]
    assert not any("forward" in vars(module) for module in encoder.modules())

    monkeypatch.setattr(onednn, "FUSABLE", frozenset())
    plain = embed_stories(encoder, world_texts(), progress=False).embeddings
    assert not there or counts == [6 * LAYERS, 0]
    assert np.abs(ours - plain).max() < 1e-6


@needs_onednn
@pytest.mark.skipif(not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="no bfloat16 on this processor")
def test_layers_in_bfloat16_are_fused_and_round_their_float32_input(no_grad):
    transformer = tiny_encoder("bert")
    exact = hidden(transformer)
    for module in transformer.encoder.modules():
        if isinstance(module, nn.Linear):
            module.bfloat16()

    with fused_linears(transformer) as count:
        assert count == 6 * LAYERS
        rounded = hidden(transformer)

    assert rounded.dtype == torch.float32
    assert 1e-5 < (rounded - exact).abs().max() < 0.05


@needs_onednn
@pytest.mark.skipif(torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor has bfloat16")
def test_layers_in_bfloat16_are_not_fused_on_a_processor_without_it(no_grad):
    transformer = tiny_encoder("bert").bfloat16()
    with fused_linears(transformer) as count:
        assert count == 0
        assert hidden(transformer).isfinite().all()


@needs_onednn
def test_modules_are_restored_after_an_exception(no_grad):
    transformer = tiny_encoder("bert")
    before = hidden(transformer)
    with pytest.raises(KeyError), fused_linears(transformer):
        raise KeyError
    assert not any("forward" in vars(module) for module in transformer.modules())
    assert torch.equal(hidden(transformer), before)


@pytest.mark.parametrize(
    "transformer",
    [
        lambda: tiny_encoder("bert", hidden_act="gelu_new"),
        lambda: tiny_encoder("mpnet"),
        lambda: tiny_encoder("bert").to("meta"),
    ],
    ids=["tanh", "untested", "elsewhere"],
)
def test_unsupported_models_are_not_changed(transformer, no_grad):
    model = transformer()
    with fused_linears(model) as count:
        assert count == 0
        assert not any("forward" in vars(module) for module in model.modules())


def test_nothing_changes_with_gradients_or_autocast():
    transformer = tiny_encoder("bert")
    with fused_linears(transformer) as count:
        assert count == 0
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), fused_linears(transformer) as count:
        assert count == 0


@needs_onednn
def test_subclasses_of_linear_layers_are_not_replaced(no_grad):
    class Wrapped(nn.Linear):
        def forward(self, x):
            return super().forward(x) + 1

    class Around(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base_layer = base

        def forward(self, x):
            return self.base_layer(x) - 1

    transformer = tiny_encoder("bert")
    layers = transformer.encoder.layer
    layers[0].attention.self.query = Wrapped(32, 32)
    layers[0].intermediate.dense = Wrapped(32, 48)
    layers[1].output.dense = Around(layers[1].output.dense)
    layers[2].intermediate.dense.register_forward_hook(lambda module, args, output: output * 2)
    before = hidden(transformer)
    with fused_linears(transformer) as count:
        assert count == 6 * LAYERS - 4
        assert torch.allclose(hidden(transformer), before, atol=5e-6)
        assert "forward" not in vars(layers[1].output.dense.base_layer)


def test_a_layer_of_custom_code_is_not_replaced(no_grad):
    transformer = tiny_encoder("bert")
    for layer in transformer.encoder.layer:
        layer.__class__ = type("ForeignLayer", (type(layer),), {"__module__": "transformers_modules.foreign"})
    with fused_linears(transformer) as count:
        assert count == 0


@pytest.mark.parametrize("operators", [{}, {"_linear_pointwise": lambda *args: args[0]}], ids=["missing", "other"])
def test_without_the_operators_torchs_layers_are_used(operators, no_grad, monkeypatch):
    monkeypatch.setattr(onednn.torch, "ops", SimpleNamespace(mkldnn=SimpleNamespace(**operators)))
    onednn._available.cache_clear()
    try:
        with fused_linears(tiny_encoder("bert")) as count:
            assert count == 0
    finally:
        onednn._available.cache_clear()
