"""Embeddings from a server with an OpenAI-compatible API: vLLM, TEI, Ollama, llama.cpp, OpenAI itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from narrlit.data.schema import FloatArray
from narrlit.errors import ModelError, OptionError
from narrlit.servers import Endpoint, SettingNames, run_coroutine

RESERVED_FIELDS = ("model", "input", "encoding_format")
"""Fields of a request that are set here."""
_OPTION = "embeddings.server"
NAMES = SettingNames(
    "embeddings.source",
    f"{_OPTION}.model",
    f"{_OPTION}.api_key_variable",
    f"{_OPTION}.concurrency",
    f"{_OPTION}.max_retries",
    f"{_OPTION}.timeout",
    too_long="embedded_request_refused",
    serve=" --runner pooling",
    url_others=" (encoder, vllm, or a server's URL)",
)


@dataclass(frozen=True)
class ServerOptions:
    """Requests to an embedding server.

    Attributes:
        batch_size: texts per request.
        concurrency: number of concurrent requests.
        max_retries: number of times that a request is repeated if the server is busy, fails or can't be reached.
        timeout: maximum time for an answer in seconds, from the first byte sent to the last byte received.
        api_key_variable: name of the environment variable that holds the API key, never the key itself.
        model: name of the model on the server; None: the same as in the encoder's config.
        parameters: additional fields of each request, for example `truncate_prompt_tokens: 1024` for vLLM.
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
            raise OptionError("at_least", option=f"{_OPTION}.batch_size", found=self.batch_size, least=1)
        parameters = self.parameters or {}
        for name in RESERVED_FIELDS:
            if name in parameters:
                raise OptionError("reserved_field", option=f"{_OPTION}.parameters", field=name)


class EmbeddingServer:
    """Frozen encoder on a server."""

    def __init__(self, url: str, model: str, options: ServerOptions) -> None:
        """Prepare requests to the model, or to `options.model`; no request is sent."""
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
        """Embed N texts, (N, D), which begin with their prompts.

        Raises:
            ModelError: if the server can't be reached or refuses the request, or its answer doesn't match the texts.
        """
        size = self._options.batch_size
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        return stacked(run_coroutine(self._vectors(batches)), len(texts), str(self.endpoint))

    async def _vectors(self, batches: Sequence[list[str]]) -> list[Any]:
        """Request the embeddings of batches of texts, several batches at a time; return them in one list."""
        slots = asyncio.Semaphore(self._options.concurrency)
        async with self.endpoint.client() as client:
            tasks = [asyncio.ensure_future(self._request(client, slots, batch)) for batch in batches]
            try:
                answers = await asyncio.gather(*tasks)
            finally:  # after a failure or Ctrl-C, no request is sent or awaited any more
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return list(chain.from_iterable(answers))

    async def _request(self, client: Any, slots: asyncio.Semaphore, texts: list[str]) -> list[Any]:
        """Request the embeddings of one batch of texts, in its order."""
        import openai

        body: dict[str, object] = {"model": self.endpoint.model, "input": texts, "encoding_format": "float"}
        body |= self._options.parameters or {}
        try:
            # Not `client.embeddings`, which converts each number to a Python object: slower than many models.
            async with slots:
                answer = await client.post("/embeddings", cast_to=object, body=body)
        except (openai.APIError, ValueError) as error:
            raise await self.endpoint.error(error) from None  # the cause may contain the key
        try:  # servers may answer out of order
            items = sorted(answer["data"], key=itemgetter("index"))
            indices = [item["index"] for item in items]
            vectors = [item["embedding"] for item in items]
        except (KeyError, TypeError):
            indices, vectors = [], []
        if indices != list(range(len(texts))):
            raise ModelError("incomplete_answer", server=str(self.endpoint), texts=len(texts))
        return vectors


def stacked(vectors: Sequence[Any], count: int, name: str) -> FloatArray:
    """Stack N vectors of D finite numbers to (N, D).

    Args:
        vectors: the vectors as a server or an engine returned them.
        count: N, the number of texts.
        name: name of their source, for errors.

    Raises:
        ModelError: if their number differs from N, their lengths differ, or a number is not finite.
    """
    try:
        with np.errstate(over="ignore"):
            embeddings: FloatArray = np.array(vectors, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        embeddings = np.empty(0, dtype=np.float32)
    if len(vectors) != count or embeddings.ndim != 2 or not embeddings.shape[1]:
        raise ModelError("uneven_embeddings", source=name, embeddings=len(vectors), texts=count)
    if not np.isfinite(embeddings).all():
        raise ModelError("non_finite_embeddings", source=name)
    return embeddings
