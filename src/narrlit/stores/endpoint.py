"""Vectors of a server that speaks OpenAI's embeddings interface: vLLM, TEI, Ollama, llama.cpp, OpenAI itself."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from narrlit.endpoints.address import (
    CONNECT_SECONDS,
    PLACEHOLDER_KEY,
    check_variable,
    checked_url,
    key_in_environment,
)
from narrlit.errors import ModelError, OptionError
from narrlit.models.embedding import Vectors
from narrlit.optional import require
from narrlit.stores.answers import check_vectors, in_order
from narrlit.stores.endpoint_errors import explain

OWN_FIELDS = ("model", "input", "encoding_format")
"""Fields of a request that `parameters` may not name: they decide what the answer is."""

KEY_OPTION = "vectors.endpoint.api_key_variable"


@dataclass(frozen=True)
class EndpointOptions:
    """How a server is asked for vectors.

    Attributes:
        batch: texts of a request.
        concurrency: requests at a time.
        retries: how often a request is sent again when the server is busy, fails or can't be reached, after 0.5 to 8
            seconds or as long as the server says (Retry-After).
        timeout: seconds to wait for an answer.
        api_key_variable: NAME of the environment variable that holds the key, never the key itself; where it is unset,
            a placeholder is sent, as servers of one's own ask for none.
        served_model: the model's name on the server; None: the same as in the encoder's config.
        parameters: further fields of each request, as `truncate_prompt_tokens: 1024` for vLLM.
    """

    batch: int = 64
    concurrency: int = 8
    retries: int = 5
    timeout: float = 600
    api_key_variable: str = "OPENAI_API_KEY"
    served_model: str | None = None
    parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        for name, least in (("batch", 1), ("concurrency", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise OptionError(f"vectors.endpoint.{name} is {getattr(self, name)}: a number from {least} is needed")
        if not 0 < self.timeout < float("inf"):
            raise OptionError(f"vectors.endpoint.timeout is {self.timeout}: a number of seconds above 0 is needed")
        check_variable(self.api_key_variable, KEY_OPTION)
        if self.served_model is not None and not self.served_model.strip():
            raise OptionError("vectors.endpoint.served_model is empty: give the model's name on the server, or null")
        self._check_parameters()

    def _check_parameters(self) -> None:
        own = [name for name in OWN_FIELDS if name in (self.parameters or {})]
        if own:
            raise OptionError(f"vectors.endpoint.parameters names {own[0]}, which is set already: leave it out")
        try:
            json.dumps(self.parameters, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"vectors.endpoint.parameters can't be sent as JSON ({error}): give plain data"
            ) from error

    def key(self) -> str | None:
        """The key as the environment holds it now; None where the variable is unset or empty.

        Raises:
            OptionError: if it has characters that no request's header can hold; they are not repeated.
        """
        return key_in_environment(self.api_key_variable)


class Endpoint:
    """A frozen encoder on a server: called with texts, it gives their vectors.

    Attributes:
        dimension: D, from the first answer on; None before.
    """

    def __init__(self, url: str, model: str, options: EndpointOptions) -> None:
        """Nothing is sent yet.

        Args:
            url: where the interface begins, as http://localhost:8000/v1.
            model: the model's name; `options.served_model` goes before it.
            options: how to ask.

        Raises:
            OptionError: if the URL is none, or holds a password or a query.
            MissingExtraError: if the package openai is absent.
        """
        self.url = checked_url(url, KEY_OPTION)
        self.model = options.served_model or model
        self.options = options
        self.dimension: int | None = None
        require("openai", "llm")

    def __call__(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        """Vectors (N, D) of N texts, in their order. Not to be called where an event loop runs.

        Args:
            texts: N stories, with their prompts.
            on_done: called after each answer with the number of texts that it was for.

        Raises:
            ModelError: if the server can't be reached, refuses, or answers with what can't be these texts' vectors.
            OptionError: if the key has characters that no key has.
        """
        if not texts:
            return np.empty((0, self.dimension or 0), dtype=np.float32)
        return asyncio.run(self._embed(texts, on_done))

    async def _embed(self, texts: Sequence[str], on_done: Callable[[int], None] | None) -> Vectors:
        found: dict[int, Vectors] = {}
        starts = iter(range(0, len(texts), self.options.batch))

        async def work(client: Any) -> None:
            for start in starts:  # shared: each worker takes the next batch that nobody has
                batch = list(texts[start : start + self.options.batch])
                found[start] = await self._ask(client, batch, start)
                if on_done is not None:
                    on_done(len(batch))

        async with self._client() as client:
            workers = [asyncio.create_task(work(client)) for _ in range(min(self.options.concurrency, len(texts)))]
            try:
                await asyncio.gather(*workers)
            finally:  # after the first failure, or Ctrl-C, nothing more is asked
                for worker in workers:
                    worker.cancel()
        return np.concatenate([found[start] for start in sorted(found)])

    def _client(self) -> Any:
        # Made anew for each call: its connections belong to one event loop. It is what waits and tries again.
        openai = require("openai", "llm")
        return openai.AsyncOpenAI(
            base_url=self.url,
            api_key=self.options.key() or PLACEHOLDER_KEY,
            max_retries=self.options.retries,
            timeout=openai.Timeout(self.options.timeout, connect=min(self.options.timeout, CONNECT_SECONDS)),
        )

    async def _ask(self, client: Any, texts: list[str], first: int) -> Vectors:
        openai = require("openai", "llm")
        body = {"model": self.model, "input": texts, "encoding_format": "float", **(self.options.parameters or {})}
        try:
            # Not `client.embeddings`, which makes a checked Python object of each number: slower than many a model.
            answer = await client.post("/embeddings", cast_to=object, body=body)
        except openai.APIError as error:
            # Without its cause: a server's answer may repeat the key.
            raise await explain(error, client, self) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ModelError(f"{self.who} answered with broken JSON: is a proxy in between? Look at its log") from error
        vectors = check_vectors(in_order(answer, len(texts), self.who), len(texts), self.who, first)
        if self.dimension is None:
            self.dimension = vectors.shape[1]
        if vectors.shape[1] != self.dimension:
            raise ModelError(
                f"{self.who} answered vectors of {vectors.shape[1]} numbers, earlier ones had {self.dimension}: "
                "several models answer under one name; let one alone serve it"
            )
        return vectors

    @property
    def who(self) -> str:
        """The server and its model, as messages name them."""
        return f"{self.url} ({self.model})"
