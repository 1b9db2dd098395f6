"""Where frozen embeddings come from: the encoder here, a server, or vLLM in this process."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from narrlit.cache.server import NAMES, Server, ServerOptions, stacked
from narrlit.cache.storage import CacheDtype
from narrlit.data.schema import FloatArray
from narrlit.errors import DataError, ModelError, OptionError, reading
from narrlit.models.config import EncoderConfig, Role, remote_code_allowed
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.models.loading import packaged_minilm
from narrlit.optional import require

Source = Callable[[Sequence[str], Role], FloatArray]
"""Embeds N texts in a role, (N, D)."""
LEAST_COSINE = 0.999
"""Half precision and other kernels stay above it."""


@dataclass(frozen=True)
class EmbeddingSource:
    """Where frozen embeddings come from, and where they are cached.

    Attributes:
        folder: of the caches, one a model and its settings; every process must see it.
        source: `encoder`, which is loaded here; `vllm`, in this process (pip install 'narrlit[vllm]'); or the URL of an
            OpenAI-compatible server, which ends in /v1.
        dtype: of cached embeddings.
        known: file of embeddings that the source must agree with, as `narrlit embed --out FILE.jsonl` writes it.
        server: requests to a server.
    """

    folder: str = "runs/embeddings"
    source: str = "encoder"
    dtype: CacheDtype = "float32"
    known: str | None = None
    server: ServerOptions = field(default_factory=ServerOptions)

    def __post_init__(self) -> None:
        """Check the source.

        Raises:
            OptionError: if it is neither of the three.
        """
        if self.kind == "server":
            NAMES.check_url(self.source)

    @property
    def kind(self) -> Literal["encoder", "vllm", "server"]:
        """The kind of source."""
        return self.source if self.source in ("encoder", "vllm") else "server"  # type: ignore[return-value]


def open_source(
    config: EncoderConfig,
    source: EmbeddingSource,
    prompts: Mapping[Role, str],
    device: torch.device,
    on_truncated: Callable[[int], None] = lambda count: None,
) -> Source:
    """Open a source; models are loaded.

    Args:
        config: the encoder.
        source: which source.
        prompts: by role.
        device: where an encoder here computes.
        on_truncated: called with the number of texts that the encoder here has cut.

    Raises:
        ModelError: if the model can't be loaded, or disagrees with the known embeddings.
        MissingExtraError: if its package is absent.
    """
    if source.kind == "encoder":
        opened = _encoder_source(config, prompts, device, on_truncated)
    else:
        if config.quantization is not None or config.normalize is not True:
            raise OptionError(
                f"embeddings.source {source.source}: encoder.quantization must be null and encoder.normalize true; the "
                "server decides the one, and servers differ in the other"
            )
        if source.kind == "server":
            function = Server(source.source, config.model, source.server).embed
        else:
            function = VLLM(config).embed

        def opened(texts: Sequence[str], role: Role) -> FloatArray:
            vectors = function([prompts[role] + text for text in texts])
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            unit: FloatArray = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
            return unit

    if source.known is not None:
        texts, known = read_known(Path(source.known))
        check_agreement(opened(texts, "story"), known, source.known)
    return opened


def _encoder_source(
    config: EncoderConfig, prompts: Mapping[Role, str], device: torch.device, on_truncated: Callable[[int], None]
) -> Source:
    encoder = Encoder(config).to(device).eval()
    if any(encoder.prompt(role) != prompt for role, prompt in prompts.items()):
        raise ModelError(
            f"{config.model}: its prompts could not be read before it was loaded; try again, or set encoder.prompts"
        )

    def source(texts: Sequence[str], role: Role) -> FloatArray:
        embeddings, truncated = embed(encoder, texts, role, progress=False)
        on_truncated(truncated)
        return embeddings

    return source


class VLLM:
    """A frozen encoder that vLLM runs in this process; it needs a GPU and the extra vllm."""

    def __init__(self, config: EncoderConfig) -> None:
        """Prepare; the model is loaded by the first call.

        Raises:
            MissingExtraError: if the package vllm is absent.
        """
        self._vllm = require("vllm", "vllm")
        self._config = config
        self._llm: Any = None

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Embed N texts (N, D), in their order; longer ones are cut at the end.

        Raises:
            ModelError: if vLLM can't load or run the model, or its embeddings are not finite.
        """
        config = self._config
        with reading("vLLM with model", config.model, "see vLLM's log above", ModelError):
            if self._llm is None:
                self._llm = self._vllm.LLM(
                    model=str(packaged_minilm()) if config.model == "minilm" else config.model,
                    revision=config.revision,
                    tokenizer_revision=config.revision,
                    dtype=config.dtype,
                    max_model_len=config.max_length,
                    trust_remote_code=remote_code_allowed(),
                    runner="pooling",
                )
            # Cut here, as the encoder cuts: vLLM refuses long texts, and its option for it changes between releases.
            limit = self._llm.llm_engine.model_config.max_model_len
            ids = self._llm.get_tokenizer()(list(texts), truncation=True, max_length=limit)["input_ids"]
            outputs = self._llm.embed([{"prompt_token_ids": one} for one in ids], use_tqdm=False)
            vectors = [output.outputs.embedding for output in outputs]
        if len(vectors) != len(texts):
            raise ModelError(f"vLLM with {config.model} gave {len(vectors)} embeddings for {len(texts)} texts")
        return stacked(vectors, f"vLLM with {config.model}")


def check_agreement(embeddings: FloatArray, known: FloatArray, origin: str) -> None:
    """Compare a source's embeddings (N, D) with known ones (N, D) of the same texts.

    Raises:
        ModelError: if a cosine is below LEAST_COSINE, or dimensions differ; `origin` says where the known ones are.
    """
    if embeddings.shape != known.shape:
        raise ModelError(
            f"{origin}: dimension {known.shape[-1]} is expected, the source gives {embeddings.shape[-1]}: is it "
            "another model, or are embeddings cut?"
        )
    norms = np.linalg.norm(embeddings, axis=1) * np.linalg.norm(known, axis=1)
    cosines = (embeddings * known).sum(1) / np.maximum(norms, 1e-12)
    worst = int(np.argmin(cosines)) if len(cosines) else 0
    if len(cosines) and not cosines[worst] >= LEAST_COSINE:
        raise ModelError(
            f"{origin}: text {worst + 1} has cosine {cosines[worst]:.4f} to its known embedding, {LEAST_COSINE:g} is "
            "needed: is it another model or revision, pooling, prompt or maximum length, or a wrong order of answers?"
        )


def read_known(path: Path) -> tuple[list[str], FloatArray]:
    """Read what `narrlit embed --out FILE.jsonl` wrote.

    Returns:
        N texts and their embeddings (N, D).

    Raises:
        DataError: if the file is missing or broken.
    """
    with reading("known embeddings", path, "write it again: narrlit embed --out FILE.jsonl", DataError):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [str(row["text"]) for row in rows], np.array([row["embedding"] for row in rows], dtype=np.float32)
