"""Embeddings of a server with an OpenAI-compatible API: vLLM, TEI, Ollama, llama.cpp, OpenAI itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from narrlit.data.schema import FloatArray
from narrlit.errors import ModelError, OptionError
from narrlit.servers import Endpoint, SettingNames, run

OWN_FIELDS = ("model", "input", "encoding_format")
_OWN = "embeddings.server"
NAMES = SettingNames(
    "embeddings.source (encoder, vllm, or a server's URL)",
    f"{_OWN}.model",
    f"{_OWN}.api_key_variable",
    f"{_OWN}.concurrency",
    f"{_OWN}.max_retries",
    f"{_OWN}.timeout",
    shorten=f"have the server truncate them: for vLLM, {_OWN}.parameters {{truncate_prompt_tokens: 512}}",
    serve=" --runner pooling",
)


@dataclass(frozen=True)
class ServerOptions:
    """Requests to an embedding server.

    Attributes:
        batch_size: texts per request.
        concurrency: requests at a time.
        max_retries: times a request is repeated when the server is busy, fails or can't be reached.
        timeout: seconds that an answer may take, from the first byte sent to the last received.
        api_key_variable: name of the environment variable that holds the API key, never the key itself.
        model: the model's name on the server; None: the same as in the encoder's config.
        parameters: further fields of each request, for example `truncate_prompt_tokens: 1024` for vLLM.
    """

    batch_size: int = 64
    concurrency: int = 8
    max_retries: int = 5
    timeout: float = 600
    api_key_variable: str = "OPENAI_API_KEY"
    model: str | None = None
    parameters: dict[str, object] | None = None

    def __post_init__(self) -> None:
        NAMES.check(self.api_key_variable, self.concurrency, self.max_retries, self.timeout)
        if self.batch_size < 1:
            raise OptionError(f"{_OWN}.batch_size {self.batch_size}: must be at least 1")
        own = [name for name in OWN_FIELDS if name in (self.parameters or {})]
        if own:
            raise OptionError(f"{_OWN}.parameters: {own[0]} is set already: remove it")


class Server:
    """A frozen encoder on a server."""

    def __init__(self, url: str, model: str, options: ServerOptions) -> None:
        """Prepare requests to the model, or to `options.model`; none is sent yet."""
        self._options = options
        self.endpoint = Endpoint(
            url,
            options.model or model,
            NAMES,
            key_variable=options.api_key_variable,
            max_retries=options.max_retries,
            timeout=options.timeout,
        )

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Embed N texts (N, D), with their prompts before them, in their order.

        Raises:
            ModelError: if the server can't be reached, refuses, or its answer doesn't fit the texts.
        """
        size = self._options.batch_size
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        return stacked(run(self._vectors(batches)), len(texts), str(self.endpoint))

    async def _vectors(self, batches: Sequence[list[str]]) -> list[Any]:
        slots = asyncio.Semaphore(self._options.concurrency)
        async with self.endpoint.client() as client:
            tasks = [asyncio.ensure_future(self._request(client, slots, batch)) for batch in batches]
            try:
                answers = await asyncio.gather(*tasks)
            finally:  # after a failure, or Ctrl-C, no further request is sent or waited for
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return list(chain.from_iterable(answers))

    async def _request(self, client: Any, slots: asyncio.Semaphore, texts: list[str]) -> list[Any]:
        import openai

        own = {"model": self.endpoint.model, "input": texts, "encoding_format": "float"}
        try:
            # Not `client.embeddings`, which makes a checked Python object of each number: slower than many a model.
            async with slots:
                answer = await client.post("/embeddings", cast_to=object, body=own | (self._options.parameters or {}))
        except (openai.APIError, ValueError) as error:
            raise await self.endpoint.error(error) from None  # without its cause, which may repeat the key
        try:  # servers may answer out of order
            items = sorted((item["index"], position) for position, item in enumerate(answer["data"]))
            vectors = [answer["data"][position]["embedding"] for _, position in items]
        except (KeyError, TypeError):
            items, vectors = [], []
        if [index for index, _ in items] != list(range(len(texts))):
            needed = f"one embedding with each index of {len(texts)} texts"
            raise ModelError(f"{self.endpoint}: an answer does not have {needed}; does the URL end in /v1?")
        return vectors


def stacked(vectors: Sequence[Any], count: int, name: str) -> FloatArray:
    """Stack `count` vectors of D finite numbers to (N, D); `name` is that of their source, for errors."""
    try:
        with np.errstate(over="ignore"):
            embeddings: FloatArray = np.array(vectors, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        embeddings = np.empty(0, dtype=np.float32)
    if len(vectors) != count or embeddings.ndim != 2 or not embeddings.shape[1]:
        found = f"{len(vectors)} embeddings for {count} texts are no lists of equally many numbers"
        raise ModelError(f"{name}: {found}; do several models answer there?")
    if not np.isfinite(embeddings).all():
        raise ModelError(f"{name}: embeddings hold NaN or infinity; does it run in float16? Use bfloat16 or float32")
    return embeddings
