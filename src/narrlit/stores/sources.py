"""Where frozen vectors come from: the encoder here, a server, or vLLM in this process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.endpoints.address import checked_url
from narrlit.errors import ModelError, OptionError
from narrlit.models.config import EncoderConfig, Role
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder
from narrlit.models.loading import packaged_minilm
from narrlit.stores.endpoint import KEY_OPTION, Endpoint, EndpointOptions
from narrlit.stores.in_process import InProcess
from narrlit.stores.vectors import StoreDtype

Source = Callable[[Sequence[str], Role], NDArray[np.float32]]
"""Vectors (N, D) of N texts in a role."""


@dataclass(frozen=True)
class VectorOptions:
    """Where frozen vectors come from, and where they are kept.

    Attributes:
        folder: of the stores, one a model and its settings; every process must see it.
        source: `encoder`, which is loaded here; `vllm`, in this process (pip install 'narrlit[vllm]'); or the URL of an
            OpenAI-compatible server, which ends in /v1.
        dtype: in which vectors are kept.
        known: file of vectors that the source must agree with, as `narrlit embed --out FILE.jsonl` writes it.
        endpoint: how a server is asked.
    """

    folder: str = "runs/vectors"
    source: str = "encoder"
    dtype: StoreDtype = "float32"
    known: str | None = None
    endpoint: EndpointOptions = field(default_factory=EndpointOptions)

    def __post_init__(self) -> None:
        """Check the source.

        Raises:
            OptionError: if it is none.
        """
        if self.source in ("encoder", "vllm"):
            return
        if not self.is_url:
            # Not repeated: a mistyped URL may hold a password.
            raise OptionError("vectors.source must be encoder, vllm, or the URL of a server (http://HOST:PORT/v1)")
        checked_url(self.source, KEY_OPTION)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "VectorOptions":
        """The inverse of `asdict`."""
        endpoint = values.get("endpoint") or {}
        kept = endpoint if isinstance(endpoint, EndpointOptions) else EndpointOptions(**endpoint)
        return cls(**{**values, "endpoint": kept})

    def request(self) -> dict[str, Any]:
        """What of the asking decides the vectors that a server gives, where it is set."""
        return {"parameters": self.endpoint.parameters} if self.is_url and self.endpoint.parameters else {}

    @property
    def maker(self) -> str:
        """What makes vectors, as stores have it."""
        return "server" if self.is_url else self.source

    @property
    def is_url(self) -> bool:
        """Whether a server is asked."""
        return self.source.startswith(("http://", "https://"))


def open_source(
    config: EncoderConfig,
    options: VectorOptions,
    prompts: Mapping[Role, str],
    device: torch.device,
    on_cut: Callable[[int], None] = lambda count: None,
) -> Source:
    """The source that the options name; models are loaded.

    Args:
        config: the encoder.
        options: which source.
        prompts: by role.
        device: where an encoder here computes.
        on_cut: told how many texts of each call the encoder here has cut.

    Raises:
        ModelError: if the model can't be loaded.
        MissingExtraError: if its package is absent.
    """
    if options.source == "encoder":
        encoder = Encoder(config).to(device).eval()
        for role, prompt in prompts.items():
            if encoder.prompt(role) != prompt:
                raise ModelError(
                    f"{config.model}: its prompts could not be looked up before it was loaded; try again, or set "
                    "encoder.prompts"
                )

        def source(texts: Sequence[str], role: Role) -> NDArray[np.float32]:
            vectors, cut = embed(encoder, texts, role, progress=False)
            on_cut(cut)
            return vectors

        return source
    if options.is_url:
        return _served(Endpoint(options.source, config.model, options.endpoint), prompts, config.normalize)
    model = str(packaged_minilm()) if config.model == "minilm" else config.model
    here = InProcess(model, config.revision, config.dtype, config.max_length, config.trust_remote_code)
    served = _served(here, prompts, config.normalize)
    served.close = here.close  # type: ignore[attr-defined]
    return served


def _served(
    answer: Callable[[Sequence[str]], NDArray[np.float32]], prompts: Mapping[Role, str], normalize: bool | None
) -> Source:
    """What a server does not know of: prompts, and whether vectors shall have length 1."""

    def source(texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        vectors = answer([prompts[role] + text for text in texts])
        if not normalize:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
        return unit

    return source
