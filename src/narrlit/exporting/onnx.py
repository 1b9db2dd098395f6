"""Export of encoders to ONNX, for sentence-transformers and for searches without torch."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from narrlit.console import say
from narrlit.encoding.exported import (
    EMBEDDING,
    GRAPH,
    RECORD,
    TOKENIZER,
    ExportedEncoder,
    ExportedRecord,
    can_export,
    is_exported,
)
from narrlit.encoding.story_encoder import EncoderFacts, StoryEncoder, unit_vectors
from narrlit.errors import ModelError, reading
from narrlit.files import atomic_folder
from narrlit.models.encoder import Encoder
from narrlit.models.pretrained import quiet
from narrlit.optional import require

INPUTS = ("input_ids", "attention_mask")
HIDDEN_STATE = "last_hidden_state"
"""Output of a transformer's graph, by the name that sentence-transformers reads."""
OPSET = 17
"""Version of the ONNX operators: the first with layer normalization."""
MOST_WEIGHTS = 400_000_000
"""Maximum number of weights: an ONNX file holds 2 GB, and larger models take long for a query anyway."""
LARGEST_COSINE_CHANGE = 1e-5
"""Maximum change of a cosine by the export."""
SAMPLE = (
    "A king fell ill, and his three sons rode out to find the water of life.",
    "The youngest shared his bread with a dwarf, who told him the way. " * 40,  # longer than most encoders read at once
    "A bank lowers its rates.",
)
"""Texts by which an export is checked."""


class _Graph(nn.Module):
    """Modules that take and return tensors: the token ids (N, T) and mask (N, T) of texts, and some of the features."""

    def __init__(self, modules: nn.Module, outputs: Sequence[str]) -> None:
        super().__init__()
        self.modules_of_model = modules
        self.outputs = outputs

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        features = self.modules_of_model({"input_ids": input_ids, "attention_mask": attention_mask, "modality": "text"})
        return tuple(features[name] for name in self.outputs)


def write_onnx(folder: Path, path: Path, *, pooled: bool = True) -> None:
    """Convert a sentence-transformers folder to an ONNX graph in float32.

    Args:
        folder: sentence-transformers folder of a transformer, pooling and further modules.
        path: file to write.
        pooled: convert all modules; the output is the embedding of each text, `sentence_embedding` (N, D). False: the
            transformer alone; the output is the embedding of each token, `last_hidden_state` (N, T, D).

    Raises:
        MissingExtraError: if onnx is not installed.
    """
    require("onnx", "onnx")
    with quiet():
        model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            model_kwargs={"attn_implementation": "eager", "dtype": torch.float32},
        )
    graph = _Graph(model, [EMBEDDING]) if pooled else _Graph(model[0], ["token_embeddings"])
    output = EMBEDDING if pooled else HIDDEN_STATE
    axes = {name: {0: "batch", 1: "sequence"} for name in (*INPUTS, HIDDEN_STATE)} | {EMBEDDING: {0: "batch"}}
    # Padding in the second text, so that tracing does not drop the mask.
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[1, 6:] = 0
    input_ids = torch.arange(5, 21).reshape(2, 8)
    with warnings.catch_warnings(action="ignore"), torch.inference_mode():
        # The exporter by tracing: torch's newer one needs a further package and several times as long.
        torch.onnx.export(
            graph.eval(),
            (input_ids, mask),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=list(INPUTS),
            output_names=[output],
            dynamic_axes={name: axes[name] for name in (*INPUTS, output)},
        )


def export_for_search(encoder: StoryEncoder) -> Path | None:
    """Export an encoder once to the user's cache, so that searches embed their queries without torch.

    Args:
        encoder: encoder of an index.

    Returns:
        The folder; None if onnx and ONNX Runtime (the extra `onnx`) are not installed, or for a model or settings that
        can't be exported: models that read views or sentences, models in half precision or quantized, models of more
        than 400 million weights, fusion, post-processing.

    Raises:
        ModelError: if the export fails, or changes a cosine by more than 1e-5.
        OptionError: if the cache can't be written to.
    """
    folder = encoder.export_folder
    if folder is None or not can_export():
        return None
    if is_exported(folder):
        return folder
    if not _is_exportable(encoder.module):
        return None
    with atomic_folder(folder) as temporary, reading("export_failed", encoder.name, error=ModelError):
        _write(encoder.module, temporary)
        _check(encoder, temporary)
    say(f"{encoder.name}: exported to {folder}, so that searches start without torch")
    return folder


def _write(module: Encoder, folder: Path) -> None:
    """Write graph, tokenizer and record of an encoder."""
    with TemporaryDirectory() as model:
        module.save(Path(model))
        write_onnx(Path(model), folder / GRAPH)
    tokenizer = module.model[0].tokenizer
    tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    record = ExportedRecord(facts=asdict(EncoderFacts.of(module)), padding=int(tokenizer.pad_token_id or 0))
    (folder / RECORD).write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _is_exportable(module: Encoder) -> bool:
    """Return True for a model of single texts in float32, not too large, whose tokenizer needs no Python."""
    is_plain = module.reads == "text" and module.post is None and not module.quantized and not module.mixes_padding
    is_small = sum(weight.numel() for weight in module.parameters()) <= MOST_WEIGHTS
    has_tokenizer = hasattr(module.model[0].tokenizer, "backend_tokenizer")
    return is_plain and is_small and has_tokenizer and module.rounding_error == torch.finfo(torch.float32).eps


def _check(encoder: StoryEncoder, folder: Path) -> None:
    """Compare the cosines of some texts before and after the export.

    Raises:
        ModelError: if one changes by more than 1e-5.
    """
    exported, _ = ExportedEncoder.open(folder, encoder.loading.long).embed(SAMPLE)
    before, after = unit_vectors(encoder.without_cache().embed(SAMPLE)), unit_vectors(exported)
    difference = float(np.abs(before @ before.T - after @ after.T).max())
    if not difference <= LARGEST_COSINE_CHANGE:  # or NaN
        raise ModelError("export_changes_cosines", model=encoder.name, change=difference)
