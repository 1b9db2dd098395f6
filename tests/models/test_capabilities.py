"""bfloat16 where the processor lacks it: refused where it was named, never chosen, and no crash where it must run."""

import numpy as np
import pytest
import torch
from refusals import refused
from tiny_models import world_texts
from torch import nn

from narrlit.models import capabilities
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.registry import load_encoder

CPU = torch.device("cpu")
MANY = 70
"""Texts; from 64 on the linear layers are computed by oneDNN."""


@pytest.fixture
def has_bf16(monkeypatch):
    """has_bf16(True): the processor is one with bfloat16, or one without."""
    return lambda answer: monkeypatch.setattr(capabilities, "has_bf16", lambda device: answer)


def linear_dtypes(encoder):
    return {module.weight.dtype for module in encoder.modules() if isinstance(module, nn.Linear)}


def test_without_bfloat16_bf16_is_refused_and_auto_is_float32(has_bf16, tiny):
    has_bf16(False)
    with refused("no_bfloat16"):
        load_encoder(tiny(), precision="bf16")
    assert linear_dtypes(load_encoder(tiny(), precision="auto")) == {torch.float32}

    half = Encoder(EncoderConfig(tiny(), dtype="bfloat16"))
    assert linear_dtypes(half.cast("auto")) == {torch.float32}

    has_bf16(True)
    for precision in ("bf16", "auto"):
        assert linear_dtypes(load_encoder(tiny(), precision=precision)) == {torch.bfloat16}


def test_commands_refuse_bf16_or_print_the_format_they_use_instead(has_bf16, narrlit, make, tiny):
    has_bf16(False)
    make("s.jsonl", [{"text": f"Story {number} of a king."} for number in range(MANY)])
    options = ("embed", "s.jsonl", "--model", tiny(), "--device", "cpu")
    refused = narrlit(*options, "--out", "v.npy", "--precision", "bf16")
    *_, line = refused.err.splitlines()

    assert refused.code == 2
    assert refused.err.count("bf16") == 1
    assert "--precision bf16: this processor has no bfloat16 instructions" in line
    assert "use auto or fp32" in line

    taken = narrlit(*options, "--out", "v.npy", "--precision", "auto")
    assert taken.code == 0
    assert "precision auto: float32; this processor has no bfloat16 instructions" in taken.err

    plain = narrlit(*options, "--out", "w.npy")
    assert plain.code == 0
    assert "bfloat16" not in plain.err
    assert np.allclose(np.load("v.npy"), np.load("w.npy"), atol=1e-6)  # both are float32


def test_bf16_works_where_it_is_reported_and_is_refused_elsewhere(narrlit, make, tiny):
    """The real code path, on whatever machine this is."""
    make("s.jsonl", [{"text": f"Story {number} of a king."} for number in range(MANY)])
    found = {
        precision: narrlit(
            *("embed", "s.jsonl", "--model", tiny(), "--device", "cpu"),
            *("--out", f"{precision}.npy", "--precision", precision),
        )
        for precision in ("fp32", "auto", "bf16")
    }
    possible = capabilities.has_bf16(CPU)

    assert [outcome.code for outcome in found.values()] == [0, 0, 0 if possible else 2]

    exact = np.load("fp32.npy")
    for precision in ("auto", "bf16") if possible else ("auto",):
        # Rounding turns a vector; a random model's more than a trained one's.
        assert (np.load(f"{precision}.npy") * exact).sum(1).min() > 0.99


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_stored_in_bfloat16_embeds_many_texts_on_any_processor(tiny, dtype):
    texts = [f"{number} {text}" for number in range(10) for text in world_texts()[:7]]
    exact = embed_stories(Encoder(EncoderConfig(tiny())).eval(), texts, progress=False).embeddings
    vectors = embed_stories(Encoder(EncoderConfig(tiny(), dtype=dtype)).eval(), texts, progress=False).embeddings
    assert (vectors * exact).sum(1).min() > (0.9999 if dtype == "float32" else 0.99)


def test_limits_of_onednn_are_respected(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    # Older releases of torch lack it.
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True}, raising=False)
    supported = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # False under ONEDNN_MAX_CPU_ISA=AVX2 too

    assert capabilities.has_bf16(CPU) == supported

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False, "amx_bf16": False})
    assert not capabilities.has_bf16(CPU)
