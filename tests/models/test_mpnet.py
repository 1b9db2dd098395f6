"""The real all-mpnet-base-v2, in the folder that NARRLIT_MPNET names: embeddings, frozen layers, gradients, export."""

import os

import pytest
import torch
from adapted_encoders import packed
from sentence_transformers import SentenceTransformer
from tiny_models import world_texts

from narrlit.exporting.folders import write_model_folder
from narrlit.exporting.origin import Origin
from narrlit.models.config import EncoderConfig
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder

FOLDER = os.environ.get("NARRLIT_MPNET", "")
TEXTS = [*world_texts()[:3], "One."]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FOLDER, reason="NARRLIT_MPNET names no folder")]


@pytest.fixture(scope="module")
def encoder():
    return Encoder(EncoderConfig(FOLDER, frozen_layers=0.5, dropout=0.0))


def test_embeddings_equal_those_of_sentence_transformers_also_after_an_export(encoder, tmp_path):
    ours = embed_stories(encoder.eval(), TEXTS, progress=False).embeddings
    with torch.no_grad():
        batch = encoder(packed(encoder, TEXTS)).numpy()

    assert abs(batch - ours).max() < 1e-5  # in one batch, whatever its padding
    assert encoder.dimension == 768
    assert encoder.max_length == 384
    assert encoder.packs is True

    write_model_folder(encoder, tmp_path / "out", Origin(trained=False))
    for folder in (FOLDER, tmp_path / "out"):
        theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
        assert abs(ours - theirs).max() < 1e-6


def test_with_frozen_layers_a_training_step_changes_only_the_upper_layers(encoder):
    encoder.train().zero_grad()
    before = {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}
    anchor, positive, negative, _ = encoder(packed(encoder, TEXTS))
    (anchor @ negative - anchor @ positive).backward()
    trained = {name for name, parameter in encoder.named_parameters() if parameter.requires_grad}
    moved = {name for name, p in encoder.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    layers = {int(name.split(".layer.")[1].split(".")[0]) for name in moved if ".layer." in name}

    assert layers == set(range(6, 12))  # half of twelve are frozen
    assert not any("embeddings" in name or "relative_attention_bias" in name for name in trained)

    torch.optim.SGD([p for p in encoder.parameters() if p.requires_grad], lr=1e-3).step()
    changed = {name for name, parameter in encoder.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed
    assert changed <= trained
