"""hits.yaml on its own path, with a small Qwen3 in the place of the large one: rounds, adapters, quantised weights."""

import json

import numpy as np
import pytest
import torch
from run_helpers import run_apart

pytestmark = pytest.mark.slow
SEVEN = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def hits_arguments(model, files, folder, quantization):
    """Two rounds of one epoch; no margin, since a random model puts all stories near."""
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    more = [f"{encoder}.quantization", quantization] if quantization else []
    return [
        *("fit", "--config", "configs/hits.yaml", "--config", "configs/hardware/cpu.yaml"),
        *(f"{encoder}.model", model, f"{encoder}.max_length", "128", f"{encoder}.dtype", "float32", *more),
        *("--data.init_args.train", files / "train.jsonl", "--data.init_args.validation", files / "validation.jsonl"),
        *("--model.init_args.mask_margin", "0", "--model.init_args.optimization.learning_rate", "0.002"),
        *("--trainer.max_epochs", "2", "--trainer.callbacks.init_args.rounds", "2"),
        *(f"{logger}.save_dir", folder, f"{logger}.version", ""),
    ]


@pytest.mark.parametrize(("quantization", "close"), [(None, 1e-6), ("nf4", 1e-5), ("int8", 0.05)])
def test_hits_trains_and_exports_a_qwen3(tiny, narrlit, world_files, tmp_path, quantization, close):
    arguments = hits_arguments(tiny("qwen3", "lasttoken"), world_files, tmp_path, quantization)
    done = run_apart(arguments, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    run = tmp_path / "hits"
    assert [entry["round"] for entry in json.loads((run / "run.json").read_text())["rounds"]] == [0, 1]
    kept = torch.load(run / "checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert len(kept) == 3 * 7 * 2  # layers, targets, two factors
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in kept} == SEVEN
    assert all(value.any() for name, value in kept.items() if "lora_B" in name)  # each has had a gradient
    assert narrlit("export", run, "--out", "model").code == 0
    for source, out in ((run, "a.npy"), ("model", "b.npy")):
        found = narrlit("embed", world_files / "stories.jsonl", "--model", source, "--out", out)
        assert found.code == 0, found.err
    assert abs(np.load("a.npy") - np.load("b.npy")).max() < close
    assert not any("bitsandbytes" in path.read_text() for path in (tmp_path / "model").rglob("*.json"))
