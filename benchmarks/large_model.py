"""Training an encoder as large as Qwen3-Embedding-8B by the overlays for it: speed and memory.

Random weights in its shape take as long and as much memory as trained ones, and need no download.
"""

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from measure import Row, Setting
from training import rank_fit
from transformers import AutoModel, AutoTokenizer, Qwen3Config

from narrlit.configuration import packaged_configs, read_yaml
from narrlit.models.config import EncoderConfig
from narrlit.models.packaged import packaged_minilm

OVERLAYS = {"qwen3_8b_qlora": "nf4", "qwen3_8b_lora": "bfloat16"}
"""Number format of the frozen weights, by overlay."""
BATCH = 8
SHAPE = {
    "vocab_size": 151_665,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
TINY = {**SHAPE, "vocab_size": 30_522, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}


def fits(setting: Setting) -> Iterator[Row]:
    """Train adapters by ranking; the memory is that of the weights and of a step."""
    batch = 2 if setting.quick else BATCH
    texts = setting.texts(3 * batch * setting.steps)[0]
    with tempfile.TemporaryDirectory() as folder:
        parameters = write_model(Path(folder), setting)
        tokens = sum(map(len, AutoTokenizer.from_pretrained(folder)(texts.texts)["input_ids"])) / setting.steps
        for overlay, weights in OVERLAYS.items():
            settings = read_yaml(packaged_configs() / "backbones" / f"{overlay}.yaml")["model"]["init_args"]["encoder"]
            encoder = EncoderConfig.from_dict({**settings, "model": folder, "pooling": "lasttoken"})
            gc.collect()
            if setting.device == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            clock = rank_fit(texts.texts, batch, setting.device, "bf16", encoder)
            job = f"{parameters / 1e9:.1f} billion parameters in {weights}, LoRA, batch {batch}"
            yield Row(f"{job}: training", texts.name, "bf16", ours=[clock.step], unit="tokens/s", count=tokens)
            if setting.device == "cuda":
                peak = torch.cuda.max_memory_allocated() / 1e9
                yield Row(f"{job}: memory", texts.name, "bf16", ours=[peak], unit="GB")


def write_model(folder: Path, setting: Setting) -> int:
    """Write a model with random weights, and MiniLM's tokenizer; return its number of parameters."""
    with torch.device(setting.device):
        model = AutoModel.from_config(Qwen3Config(**(TINY if setting.quick else SHAPE)), dtype=torch.bfloat16)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(packaged_minilm()).save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())
