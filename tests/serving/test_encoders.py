"""The encoder of a server computes requests of a few texts with oneDNN, and its embeddings are those of the library."""

import platform

import numpy as np
import pytest
import torch

import narrlit
from narrlit.models.capabilities import has_bf16
from narrlit.serving.encoders import SharedEncoder

has_onednn = hasattr(torch.ops.mkldnn, "_linear_pointwise") and platform.machine().lower() in {"x86_64", "amd64"}
TEXTS = ["A king fell ill.", "A girl loses a shoe at a feast, and a prince finds her by it."]


@pytest.mark.skipif(not has_onednn, reason="no oneDNN operators on this machine")
def test_linear_layers_are_computed_by_onednn_between_requests(served_encoder):
    for text in TEXTS:
        served_encoder.embed([text])

        layers = served_encoder.module.transformer.encoder.layer
        assert all("forward" in vars(layer.intermediate) for layer in layers)


def test_embeddings_are_those_of_the_library(served_encoder):
    expected = narrlit.load("minilm").embed(TEXTS)

    # Other kernels round differently: unit vectors differ by less than 1e-6 in float32.
    assert np.abs(served_encoder.embed(TEXTS) - expected).max() < 1e-6


@pytest.mark.skipif(not has_bf16(torch.device("cpu")), reason="no bfloat16 instructions on this processor")
def test_embeddings_of_requests_in_bfloat16_are_close():
    loading = narrlit.load("minilm", precision="bf16").loading
    expected = narrlit.load("minilm").embed(TEXTS)

    vectors = SharedEncoder("minilm", loading).embed(TEXTS)

    # bfloat16 has steps of 1/256 of a value; the cosines differ by some 2e-3.
    cosines = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1)
    assert (1 - cosines).max() < 5e-3
