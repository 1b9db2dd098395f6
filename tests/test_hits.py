"""hits.yaml on its own path, with a small Qwen3 in the place of the large one: rounds, adapters, quantized weights."""

import pytest
from run_helpers import fit_here, record_of, weights_of
from scoring import scores_of

from narrlit.data.readers import read_triples
from narrlit.models.registry import load_encoder

pytestmark = [pytest.mark.slow, pytest.mark.long]
SEVEN = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def hits_arguments(model, files, folder, quantization):
    """Two rounds of one epoch; no margin, since a random model finds all stories similar."""
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    more = [f"{encoder}.quantization", quantization] if quantization else []
    return [
        *("fit", "--config", "configs/hits.yaml", "--config", "configs/hardware/cpu.yaml"),
        *(f"{encoder}.model", model, f"{encoder}.max_length", "128", f"{encoder}.dtype", "float32", *more),
        *("--data.init_args.train", files / "train.jsonl", "--data.init_args.validation", files / "validation.jsonl"),
        *("--model.init_args.mask_margin", "0", "--model.init_args.optimization.learning_rate", "0.002"),
        *("--trainer.max_epochs", "2", "--trainer.callbacks.init_args.rounds", "2"),
        *("--trainer.enable_progress_bar", "false"),
        *(f"{logger}.save_dir", folder, f"{logger}.name", "tiny", f"{logger}.version", ""),
    ]


@pytest.mark.parametrize(("quantization", "close"), [(None, 1e-6), ("nf4", 1e-5), ("int8", 0.05)])
def test_hits_trains_and_exports_a_qwen3(tiny, world_files, tmp_path, quantization, close):
    fit_here(hits_arguments(tiny("qwen3", "lasttoken"), world_files, tmp_path, quantization), tmp_path)
    assert [entry["round"] for entry in record_of(tmp_path)["rounds"]] == [0, 1]

    weights = weights_of(tmp_path)
    assert len(weights) == 3 * 7 * 2  # layers, targets, two factors
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in weights} == SEVEN
    assert all(value.any() for name, value in weights.items() if "lora_B" in name)  # each has had a gradient

    triples = read_triples(world_files / "validation.jsonl")
    encoder = load_encoder(str(tmp_path / "tiny"), long="truncate")
    scores = scores_of(encoder, triples)
    encoder.merge()
    encoder.save(tmp_path / "model")

    assert abs(scores_of(load_encoder(str(tmp_path / "model"), long="truncate"), triples) - scores).max() < close
    assert not any("bitsandbytes" in path.read_text() for path in (tmp_path / "model").rglob("*.json"))
