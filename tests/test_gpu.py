"""What a GPU computes equals what a CPU does: embeddings, mining, whole fits, sharded and quantized weights.

Skipped where there is no GPU with CUDA. `tests/models/test_packing.py` compares the attention of every architecture.
"""

import numpy as np
import pytest
import torch
from adapted_encoders import gradients
from head_encoders import sentence_encoder
from run_helpers import fit_arguments, fit_here, frozen_arguments, record_of, rounds_arguments, weights_of
from tiny_models import DistinctModels, world_texts

import narrlit
from narrlit.models.config import EncoderConfig, LoRA
from narrlit.models.embedding import embed_stories
from narrlit.models.encoder import Encoder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA"),
]

ON_GPU = ["--config", "configs/hardware/gpu.yaml"]
EXACT = ["--trainer.precision", "32-true"]
NO_DROPOUT = ["--model.init_args.encoder.dropout", "0"]
TF32 = 5e-4
"""Largest difference of an embedding by a BiLSTM: on a GPU torch multiplies its matrices with ten bits of mantissa."""
SYSTEMS = ["nlp_fsdm", "hits", "ttda704", "comhis", "mendel292_mlp", "mendel292_inductive"]


def system_arguments(system, model, folder, *more):
    """A short fit of a system on StoryWorld; the run is `folder`/tiny."""
    if system == "hits":
        return rounds_arguments(model, folder, *more)
    if system == "ttda704":
        options = ("--data.init_args.loading.pseudonyms.backend", "none", "--model.init_args.encoder.max_length", "96")
        return fit_arguments(model, folder, *options, *more, config="configs/quickstart_ttda704.yaml")
    if system == "nlp_fsdm":
        return fit_arguments(model, folder, *more)
    return frozen_arguments(system, model, folder, *more)


def fitted(arguments, folder):
    """Record of a run, once it has been made."""
    folder.mkdir()
    fit_here(arguments, folder)
    return record_of(folder)


@pytest.mark.parametrize("model", [("bert", "mean"), ("mpnet", "mean"), ("qwen3", "lasttoken"), ("roberta", "cls")])
def test_embeddings_equal_those_of_the_cpu(tiny, model):
    texts = world_texts()
    expected = narrlit.load(tiny(*model), device="cpu").embed(texts)
    found = narrlit.load(tiny(*model), device="cuda").embed(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # float32, sums in another order

    half = narrlit.load(tiny(*model), device="cuda", precision="bf16").embed(texts)
    assert half.dtype == np.float32
    assert np.abs(half @ half.T - expected @ expected.T).max() < 6e-3
    assert not np.array_equal(half, found)


def test_a_head_over_sentences_computes_on_the_gpu(tiny):
    texts = world_texts()[:6]
    encoder = sentence_encoder(tiny())
    expected = embed_stories(encoder, texts, progress=False).embeddings
    found = embed_stories(encoder.to("cuda"), texts, progress=False).embeddings
    np.testing.assert_allclose(found, expected, atol=TF32)


def test_mined_negatives_are_those_of_the_cpu(tiny, world_files, tmp_path, monkeypatch):
    model = DistinctModels(tiny, tmp_path)()
    found = narrlit.mine(world_files / "train.jsonl", narrlit.load(model, device="cuda"), per_example=3)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    expected = narrlit.mine(world_files / "train.jsonl", narrlit.load(model, device="cpu"), per_example=3)
    assert [row.negatives for row in found.examples] == [row.negatives for row in expected.examples]
    assert any("mined" in row.kinds for row in found.examples)


@pytest.mark.parametrize("system", ["nlp_fsdm", "hits"])
def test_a_fit_has_the_weights_of_the_cpu(tiny, tmp_path, system):
    """Of the systems that draw no noise on their device, and whose steps do not follow the last bits of a gradient."""
    runs = {}
    for name, more in (("cpu", EXACT), ("gpu", [*ON_GPU, *EXACT])):
        options = [*more, *NO_DROPOUT]
        if system == "hits":
            options += ["--model.init_args.encoder.lora.dropout", "0"]
        runs[name] = fitted(system_arguments(system, tiny(), tmp_path / name, *options), tmp_path / name)

    assert runs["gpu"]["machine"]["device"] == "cuda"
    assert runs["gpu"]["machine"]["name"] == torch.cuda.get_device_name()

    ours, theirs = (weights_of(tmp_path / name) for name in ("gpu", "cpu"))
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert torch.allclose(ours[name], weight, atol=1e-3), name

    found, expected = ([entry["accuracy"] for entry in runs[name]["validations"]] for name in ("gpu", "cpu"))
    assert found == pytest.approx(expected, abs=1.01 / 9)  # one triple of nine


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_trains_in_mixed_precision(tiny, tmp_path, system):
    record = fitted(system_arguments(system, tiny(), tmp_path / "run", *ON_GPU), tmp_path / "run")
    assert record["trainer"]["precision"] == "bf16-mixed"
    assert all(weight.isfinite().all() for weight in weights_of(tmp_path / "run").values())
    options = {"missing_views": "positional"} if system == "ttda704" else {}
    found, expected = (
        narrlit.load(tmp_path / "run/tiny", device=device, **options).embed(world_texts()[:4])
        for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(found, expected, atol=TF32)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_distributed_fit_of_one_gpu_is_a_model(tiny, tmp_path, strategy):
    overlay = ["--config", f"configs/hardware/{strategy}.yaml", "--trainer.devices", "1", *EXACT, *NO_DROPOUT]
    fitted(fit_arguments(tiny(), tmp_path / "one", *overlay), tmp_path / "one")
    fitted(fit_arguments(tiny(), tmp_path / "plain", *ON_GPU, *EXACT, *NO_DROPOUT), tmp_path / "plain")
    texts = world_texts()[:4]
    found = narrlit.load(tmp_path / "one/tiny", device="cuda").embed(texts)
    expected = narrlit.load(tmp_path / "plain/tiny", device="cuda").embed(texts)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["nf4", "int8"])
def test_adapters_over_quantized_weights_get_the_gradients_of_the_cpu(tiny, kind):
    pytest.importorskip("bitsandbytes")
    config = EncoderConfig(tiny("qwen3", "lasttoken"), pooling=None, quantization=kind, lora=LoRA(dropout=0.0))
    found = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        encoder = Encoder(config)
        with torch.no_grad():
            for name, parameter in encoder.named_parameters():
                if ".lora_B." in name:
                    parameter.copy_(torch.randn(parameter.shape) * 0.1)
        found[device] = gradients(encoder.to(device), world_texts()[:4])
    assert found["cuda"].keys() == found["cpu"].keys()
    for name, gradient in found["cpu"].items():
        ours = found["cuda"][name].cpu().float()
        assert torch.cosine_similarity(ours.flatten(), gradient.float().flatten(), dim=0) > 0.98, name


def test_a_quantized_model_trains_and_loads(tiny, tmp_path):
    pytest.importorskip("bitsandbytes")
    encoder = "--model.init_args.encoder"
    model = (f"{encoder}.model", tiny("qwen3", "lasttoken"), f"{encoder}.max_length", "96")
    quantized = ["--config", "configs/backbones/qwen3_8b_qlora.yaml", *model]
    record = fitted(fit_arguments(tiny(), tmp_path / "run", *ON_GPU, *quantized), tmp_path / "run")
    assert record["best"]["n"] == 9
    embeddings = narrlit.load(tmp_path / "run/tiny", device="cuda").embed(world_texts()[:4])
    assert np.isfinite(embeddings).all()
