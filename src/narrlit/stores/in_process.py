"""vLLM in this process as a source of vectors; it needs a GPU and the extra vllm."""

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from narrlit.errors import ModelError
from narrlit.models.embedding import Vectors
from narrlit.optional import require
from narrlit.stores.answers import check_vectors


class InProcess:
    """A frozen encoder that vLLM runs: called with texts, it gives their vectors. It is loaded by the first call."""

    def __init__(
        self, model: str, revision: str | None, dtype: str, max_length: int | None, trust_remote_code: bool
    ) -> None:
        """Nothing is loaded yet.

        Args:
            model: a folder or a hub's id.
            revision: the hub's branch, tag or commit; None: the newest.
            dtype: float32, bfloat16 or float16.
            max_length: tokens of a text that are read, special ones included; None: as the model's own files say.
            trust_remote_code: run Python files that come with the model.

        Raises:
            MissingExtraError: if the package vllm is absent.
        """
        require("vllm", "vllm")
        self.model = model
        self._arguments: dict[str, Any] = {
            "model": model,
            "revision": revision,
            "tokenizer_revision": revision,
            "dtype": dtype,
            "max_model_len": max_length,
            "trust_remote_code": trust_remote_code,
            "runner": "pooling",
        }
        self._llm: Any = None

    def __call__(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        """Vectors (N, D) of N texts, in their order; longer ones are cut at the end.

        Args:
            texts: N stories, with their prompts.
            on_done: called once with N: vLLM batches by itself, and fastest when it has all texts.

        Raises:
            ModelError: if vLLM can't load or run the model, or its vectors are not sound.
        """
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        try:
            vectors = self._embed(texts)
        except (OSError, ValueError, RuntimeError, NotImplementedError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ModelError(f"vLLM can't embed with {self.model} ({reason}); vLLM's log above says more") from error
        checked = check_vectors(vectors, len(texts), f"vLLM with {self.model}")
        if on_done is not None:
            on_done(len(texts))
        return checked

    def close(self) -> None:
        """Drop the model, so that others may have the GPU; the next call loads it again."""
        self._llm = None
        gc.collect()

    def _embed(self, texts: Sequence[str]) -> list[Any]:
        if self._llm is None:
            self._llm = require("vllm", "vllm").LLM(**self._arguments)
        # Cut here, as the encoder cuts: vLLM refuses long texts, and its option to cut them changes between releases.
        limit = self._llm.llm_engine.model_config.max_model_len
        ids = self._llm.get_tokenizer()(list(texts), truncation=True, max_length=limit)["input_ids"]
        outputs = self._llm.embed([{"prompt_token_ids": one} for one in ids], use_tqdm=False)
        return [output.outputs.embedding for output in outputs]
