"""Sources of frozen embeddings: an encoder or vLLM in this process, or a server."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from narrlit.data.schema import FloatArray
from narrlit.embedding_cache.server import NAMES, EmbeddingServer, ServerOptions, stacked
from narrlit.embedding_cache.shards import READING_COLUMNS
from narrlit.embedding_cache.space import CacheDtype
from narrlit.errors import ModelError, OptionError, reading
from narrlit.models.config import EncoderConfig, Role, remote_code_allowed
from narrlit.models.coverage import Coverage
from narrlit.models.embedding import Embeddings, embed_stories
from narrlit.models.encoder import Encoder
from narrlit.models.packaged import packaged_minilm
from narrlit.optional import require

EmbedTexts = Callable[[Sequence[str], Role], Embeddings]
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
) -> EmbedTexts:
    """Open a source; an encoder is loaded onto `device`.

    Raises:
        ModelError: if it can't be loaded or reached, or disagrees with the known embeddings.
        OptionError: if it does not support the encoder's config.
    """
    if source.kind == "encoder":
        opened = _open_encoder(config, prompts, device)
    else:
        opened = _open_server(config, source, prompts)
    if source.known is not None:
        texts, known = _read_known(source.known)
        check_agreement(opened(texts, "story").embeddings, known, source.known)
    return opened


def _open_encoder(config: EncoderConfig, prompts: Mapping[Role, str], device: torch.device) -> EmbedTexts:
    """Load the encoder onto a device; raise ModelError if it has other prompts."""
    encoder = Encoder(config).to(device).eval()
    for role, prompt in prompts.items():
        if encoder.prompt(role) != prompt:
            raise ModelError("unread_prompts", model=config.model)
    return partial(embed_stories, encoder, progress=False)


def _open_server(config: EncoderConfig, source: EmbeddingSource, prompts: Mapping[Role, str]) -> EmbedTexts:
    """Open vLLM or a server; raise OptionError for settings of the encoder that it does not follow."""
    if config.quantization is not None or config.normalize is not True:
        raise OptionError("source_without_quantization", source=source.source)
    server = VLLM(config) if source.kind == "vllm" else EmbeddingServer(source.source, config.model, source.server)

    def embed_on_server(texts: Sequence[str], role: Role) -> Embeddings:
        prompt = prompts[role]
        vectors = server.embed([prompt + text for text in texts])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / np.maximum(lengths, 1e-30)
        return Embeddings(unit, Coverage(), np.zeros((len(unit), READING_COLUMNS)))

    return embed_on_server


def _read_known(path: str) -> tuple[list[str], FloatArray]:
    """Read N texts and their embeddings (N, D) from a file of `narrlit embed`."""
    texts: list[str] = []
    embeddings: list[list[float]] = []
    with reading("unreadable_embeddings", path):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.strip():
                row = json.loads(line)
                texts.append(str(row["text"]))
                embeddings.append(row["embedding"])
        return texts, np.array(embeddings, dtype=np.float32)


class VLLM:
    """Frozen encoder that vLLM runs in this process; it needs a GPU and the extra vllm."""

    def __init__(self, config: EncoderConfig) -> None:
        """Load the model."""
        vllm = require("vllm", "vllm")
        self._name = config.model
        with reading("vllm_failed", self._name, error=ModelError):
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
        with reading("vllm_failed", self._name, error=ModelError):
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
        raise ModelError("other_dimension", origin=origin, needed=known.shape[-1], found=embeddings.shape[-1])
    norms = np.linalg.norm(embeddings, axis=1) * np.linalg.norm(known, axis=1)
    cosines = (embeddings * known).sum(1) / np.maximum(norms, 1e-12)
    if len(cosines) and not (lowest := cosines.min()) >= LEAST_COSINE:
        raise ModelError(
            "embeddings_disagree", origin=origin, text=int(cosines.argmin()) + 1, cosine=lowest, least=LEAST_COSINE
        )
