"""Sources of frozen embeddings: an encoder or vLLM in this process, or a server."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from narrlit.cache.server import NAMES, Server, ServerOptions, stacked
from narrlit.cache.space import CacheDtype
from narrlit.cache.storage import READING_COLUMNS
from narrlit.data.schema import FloatArray
from narrlit.errors import ModelError, OptionError, reading
from narrlit.models.config import EncoderConfig, Role, remote_code_allowed
from narrlit.models.coverage import Coverage
from narrlit.models.embedding import Embeddings, embed
from narrlit.models.encoder import Encoder
from narrlit.models.packaged import packaged_minilm
from narrlit.optional import require

Source = Callable[[Sequence[str], Role], Embeddings]
"""Function that embeds N texts in a role."""
LEAST_COSINE = 0.999
"""Minimum cosine between two sources' embeddings of a text; half precision and different kernels stay above it."""


@dataclass(frozen=True)
class EmbeddingSource:
    """Source and cache of frozen embeddings.

    Attributes:
        folder: folder of the caches, one for each model with its settings; all processes must share it.
        source: `encoder`, which this process loads; `vllm`, in this process (pip install 'narrlit[vllm]'); or the URL
            of an OpenAI-compatible server, which ends in /v1.
        dtype: number format of cached embeddings.
        known: file of embeddings that the source must agree with, as `narrlit embed --out FILE.jsonl` writes it.
        server: requests to a server.
    """

    folder: str = "runs/embeddings"
    source: str = "encoder"
    dtype: CacheDtype = "float32"
    known: str | None = None
    server: ServerOptions = field(default_factory=ServerOptions)

    def __post_init__(self) -> None:
        if self.kind == "server":
            NAMES.check_url(self.source)

    @property
    def kind(self) -> Literal["encoder", "vllm", "server"]:
        """The kind of source."""
        if self.source == "encoder":
            return "encoder"
        return "vllm" if self.source == "vllm" else "server"


def open_source(
    config: EncoderConfig, source: EmbeddingSource, prompts: Mapping[Role, str], device: torch.device
) -> Source:
    """Open a source; an encoder is loaded onto `device`."""
    opened: Source
    if source.kind == "encoder":
        encoder = Encoder(config).to(device).eval()
        if any(encoder.prompt(role) != prompt for role, prompt in prompts.items()):
            raise ModelError(
                f"{config.model}: its prompts could not be read before it was loaded; try again, or set encoder.prompts"
            )
        opened = partial(embed, encoder, progress=False)
    else:
        if config.quantization is not None or config.normalize is not True:
            raise OptionError(
                f"embeddings.source {source.source}: encoder.quantization must be null and encoder.normalize true, "
                "because the server decides about quantization, and servers differ in normalization"
            )
        server = VLLM(config) if source.kind == "vllm" else Server(source.source, config.model, source.server)

        def opened(texts: Sequence[str], role: Role) -> Embeddings:
            vectors = server.embed([prompts[role] + text for text in texts])
            unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
            return Embeddings(unit, Coverage(), np.zeros((len(unit), READING_COLUMNS)))

    if source.known is not None:
        with reading("known embeddings", source.known, "write it again: narrlit embed with `long=truncate`"):
            lines = Path(source.known).read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
            texts = [str(row["text"]) for row in rows]
            known = np.array([row["embedding"] for row in rows], dtype=np.float32)
        check_agreement(opened(texts, "story").embeddings, known, source.known)
    return opened


class VLLM:
    """Frozen encoder that vLLM runs in this process; it needs a GPU and the extra vllm."""

    def __init__(self, config: EncoderConfig) -> None:
        """Load the model."""
        vllm = require("vllm", "vllm")
        self._name = config.model
        with reading("vLLM with model", self._name, "see vLLM's log above", ModelError):
            self._llm = vllm.LLM(
                model=str(packaged_minilm()) if config.model == "minilm" else config.model,
                revision=config.revision,
                tokenizer_revision=config.revision,
                dtype=config.dtype,
                max_model_len=config.max_length,
                trust_remote_code=remote_code_allowed(),
                runner="pooling",
            )

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Embed N texts, (N, D); texts above the maximum length are truncated.

        Raises:
            ModelError: if vLLM fails, or its embeddings are not finite.
        """
        with reading("vLLM with model", self._name, "see vLLM's log above", ModelError):
            # Truncated here: vLLM refuses long texts, and its option for truncation changes between releases.
            limit = self._llm.llm_engine.model_config.max_model_len
            ids = self._llm.get_tokenizer()(list(texts), truncation=True, max_length=limit)["input_ids"]
            outputs = self._llm.embed([{"prompt_token_ids": tokens} for tokens in ids], use_tqdm=False)
            vectors = [output.outputs.embedding for output in outputs]
        return stacked(vectors, len(texts), f"vLLM with {self._name}")


def check_agreement(embeddings: FloatArray, known: FloatArray, origin: str) -> None:
    """Compare a source's embeddings (N, D) with known embeddings (N, D) of the same texts.

    Raises:
        ModelError: if their dimensions differ, or the cosine of a text is below 0.999; `origin` names the known ones.
    """
    if embeddings.shape != known.shape:
        raise ModelError(
            f"{origin}: dimension {known.shape[-1]} is expected, the source gives {embeddings.shape[-1]}: is it "
            "another model, or are embeddings truncated?"
        )
    norms = np.linalg.norm(embeddings, axis=1) * np.linalg.norm(known, axis=1)
    cosines = (embeddings * known).sum(1) / np.maximum(norms, 1e-12)
    if len(cosines) and not (lowest := cosines.min()) >= LEAST_COSINE:
        raise ModelError(
            f"{origin}: text {int(cosines.argmin()) + 1} has cosine {lowest:.4f} to its known embedding, "
            f"{LEAST_COSINE:g} is needed: is it another model or revision, pooling, prompt or maximum length, or a "
            "wrong order of answers?"
        )
