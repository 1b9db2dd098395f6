"""Embeddings of a server with OpenAI's interface: vLLM, TEI, Ollama, llama.cpp, OpenAI itself."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from narrlit.data.schema import FloatArray
from narrlit.errors import ModelError, OptionError, printable
from narrlit.optional import require

CONNECT_SECONDS = 10
NO_KEY = "none"
OWN_FIELDS = ("model", "input", "encoding_format")


@dataclass(frozen=True)
class ServerOptions:
    """Requests to an embedding server.

    Attributes:
        batch_size: texts per request.
        concurrency: requests at a time.
        max_retries: times a request is repeated when the server is busy, fails or can't be reached.
        timeout: seconds to wait for an answer.
        api_key_variable: NAME of the environment variable that holds the API key, never the key itself.
        model: the model's name on the server; None: the same as in the encoder's config.
        parameters: further fields of each request, for example `truncate_prompt_tokens: 1024` for vLLM.
    """

    batch_size: int = 64
    concurrency: int = 8
    max_retries: int = 5
    timeout: float = 600
    api_key_variable: str = "OPENAI_API_KEY"
    model: str | None = None
    parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field; a value that may be a key is not repeated.
        """
        for name, least in (("batch_size", 1), ("concurrency", 1), ("max_retries", 0)):
            if getattr(self, name) < least:
                raise OptionError(f"embeddings.server.{name} is {getattr(self, name)}: at least {least} is needed")
        if not 0 < self.timeout < float("inf"):
            raise OptionError(f"embeddings.server.timeout is {self.timeout}: a number of seconds above 0 is needed")
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.api_key_variable):
            raise OptionError(
                "embeddings.server.api_key_variable: give the NAME of an environment variable, never the key itself"
            )
        own = [name for name in OWN_FIELDS if name in (self.parameters or {})]
        if own:
            raise OptionError(f"embeddings.server.parameters: {own[0]} is set already: remove it")

    def api_key(self) -> str:
        """Return the key from the environment; a placeholder without one, as local servers need none.

        Raises:
            OptionError: if no HTTP header can hold it.
        """
        key = os.environ.get(self.api_key_variable, "").strip()
        if not re.fullmatch(r"[!-~]*", key):
            raise OptionError(
                f"environment variable {self.api_key_variable}: a key has no spaces, and ASCII letters only"
            )
        return key or NO_KEY


def checked_url(url: str) -> str:
    """Return a server's URL without a slash at its end.

    Raises:
        OptionError: if it is none, or holds credentials, which are not repeated.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise OptionError("embeddings.source must be encoder, vllm, or a server's URL such as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise OptionError(
            "embeddings.source: leave user, password and query out of the URL; the key comes from the environment "
            "variable that embeddings.server.api_key_variable names"
        )
    return url.rstrip("/")


class Server:
    """A frozen encoder on a server.

    Attributes:
        name: URL and model, for messages.
    """

    def __init__(self, url: str, model: str, options: ServerOptions) -> None:
        """Prepare requests; none is sent yet.

        Args:
            url: base of the interface, such as http://localhost:8000/v1.
            model: the model's name; `options.model` goes before it.
            options: how to send requests.

        Raises:
            OptionError: if the URL is malformed.
            MissingExtraError: if the package openai is absent.
        """
        self._openai = require("openai", "llm")
        self._url, self._model, self._options = checked_url(url), options.model or model, options
        self.name = f"{self._url} ({self._model})"

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Embed N texts (N, D), with their prompts before them, in their order.

        Raises:
            ModelError: if the server can't be reached, refuses, or its answer doesn't fit the texts.
        """
        options, size = self._options, self._options.batch_size
        timeout = self._openai.Timeout(options.timeout, connect=min(options.timeout, CONNECT_SECONDS))
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        pool = ThreadPoolExecutor(options.concurrency)
        with self._openai.OpenAI(
            base_url=self._url, api_key=options.api_key(), max_retries=options.max_retries, timeout=timeout
        ) as client:
            futures = [pool.submit(self._request, client, batch) for batch in batches]
            try:
                return stacked([vector for future in futures for vector in future.result()], self.name)
            finally:  # after a failure, or Ctrl-C, no further request is sent or waited for
                pool.shutdown(wait=False, cancel_futures=True)

    def _request(self, client: Any, texts: list[str]) -> list[Any]:
        fields = {"model": self._model, "input": texts, "encoding_format": "float", **(self._options.parameters or {})}
        try:
            # Not `client.embeddings`, which makes a checked Python object of each number: slower than many a model.
            answer = client.post("/embeddings", cast_to=object, body=fields)
        except (self._openai.APIError, ValueError) as error:
            # Without its cause: a server's answer may repeat the key.
            raise ModelError(f"{self.name}: {self._explain(error, client)}") from None
        entries = answer.get("data") if isinstance(answer, dict) else None
        try:  # servers may answer out of order
            vectors = {entry["index"]: entry["embedding"] for entry in entries or []}
        except (KeyError, TypeError):
            vectors = {}
        if set(vectors) != set(range(len(texts))) or len(entries or []) != len(texts):
            raise ModelError(
                f"{self.name}: an answer to {len(texts)} texts has {len(entries or [])} embeddings, and not one with "
                "each index; is the URL that of an OpenAI interface (ending in /v1)?"
            )
        return [vectors[index] for index in range(len(texts))]

    def _explain(self, error: Any, client: Any) -> str:
        status = getattr(error, "status_code", None)
        message = self._shown(getattr(error, "body", None) or error.__cause__ or error)
        if isinstance(error, self._openai.APITimeoutError):
            return "no answer in time; raise embeddings.server.timeout, or lower batch_size or concurrency"
        if isinstance(error, self._openai.APIConnectionError):
            return f"{message}; is the server running there? With vLLM: vllm serve {self._model} --runner pooling"
        if status == 404:
            return f"HTTP 404, {message}; {self._served(client)}"
        hints = {
            401: f"set the environment variable {self._options.api_key_variable} to a valid key",
            429: "lower embeddings.server.concurrency, raise max_retries, or try again later",
        }
        too_long = "shorten texts on the server: for vLLM, embeddings.server.parameters {truncate_prompt_tokens: 512}"
        hints |= {403: hints[401], 400: too_long, 413: too_long, 422: too_long}
        return f"HTTP {status}, {message}; {hints.get(int(status or 0), 'see the log of the server')}"

    def _served(self, client: Any) -> str:
        try:
            names = [model["id"] for model in client.with_options(max_retries=0).get("/models", cast_to=object)["data"]]
        except (self._openai.APIError, ValueError, KeyError, TypeError):
            return "is the URL right? It should end in /v1"
        if self._model in names:
            return f"the model is served, but not for embeddings; with vLLM: vllm serve {self._model} --runner pooling"
        return f"the models there are {self._shown(', '.join(map(str, names)))}: name one in embeddings.server.model"

    def _shown(self, text: object) -> str:
        key = self._options.api_key()
        return printable(str(text) if key == NO_KEY else str(text).replace(key, "[key]"))


def stacked(vectors: Sequence[Any], name: str) -> FloatArray:
    """Stack vectors of D finite numbers to (N, D).

    Raises:
        ModelError: if their dimensions differ, or a number is not finite; `name` says whose they are.
    """
    try:
        with np.errstate(over="ignore"):
            embeddings: FloatArray = np.array(vectors, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        embeddings = np.empty(0, dtype=np.float32)
    if embeddings.ndim != 2 or not embeddings.shape[1]:
        raise ModelError(f"{name}: embeddings are no lists of equally many numbers; do several models answer there?")
    if not np.isfinite(embeddings).all():
        raise ModelError(f"{name}: embeddings hold NaN or infinity; does it run in float16? Use bfloat16 or float32")
    return embeddings
