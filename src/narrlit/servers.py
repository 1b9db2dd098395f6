"""Servers with an OpenAI-compatible API (vLLM, TEI, Ollama, llama.cpp, OpenAI itself): settings, client and errors."""

import asyncio
import os
import re
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from narrlit.compat.openai import http_library
from narrlit.errors import ModelError, OptionError, printable
from narrlit.optional import require

T = TypeVar("T")
CONNECT_SECONDS = 10
MAX_REPLY_BYTES = 256 * 2**20
MAX_DEPTH = 100
"""Limits of a reply: bytes after decompression, and nesting depth of lists and objects."""
CODING_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that no longer apply once a reply was read and decompressed."""
NO_KEY = "none"
"""API key for local servers, which need none."""


class SettingNames(NamedTuple):
    """Names of the settings of a server in errors.

    `too_long` is the code of the error for long texts, `serve` an argument of vLLM, `url_others` what `url` may be
    instead.
    """

    url: str
    model: str
    key_variable: str
    concurrency: str
    max_retries: str
    timeout: str
    too_long: str
    serve: str = ""
    url_others: str = ""

    def check(self, key_variable: str, concurrency: int, max_retries: int, timeout: float) -> None:
        """Check the ranges of settings; errors name the setting, but never a value that may be a key."""
        for name, value, least in ((self.concurrency, concurrency, 1), (self.max_retries, max_retries, 0)):
            if value < least:
                raise OptionError("at_least", option=name, found=value, least=least)
        if not 0 < timeout < float("inf"):
            raise OptionError("seconds", option=self.timeout, found=timeout)
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key_variable):
            raise OptionError("name_of_variable", option=self.key_variable)

    def check_url(self, url: str) -> str:
        """Return a URL without trailing slash; the OptionError for an invalid one never contains its credentials."""
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise OptionError("not_a_url", option=self.url, others=self.url_others)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise OptionError("url_with_more", option=self.url, key_option=self.key_variable)
        return url.rstrip("/")


class Endpoint:
    """Model on a server.

    Attributes:
        url: base URL of the API, which ends in /v1.
        model: name of the model on the server.
    """

    def __init__(
        self, url: str, model: str, names: SettingNames, *, key_variable: str, max_retries: int, timeout: float
    ) -> None:
        """Check the URL, the key, and that the package openai is installed; no request is sent.

        Raises:
            MissingExtraError: if openai is not installed.
            OptionError: if the URL or the key is invalid.
        """
        self._openai = require("openai", "llm")
        self.url, self.model, self._names = names.check_url(url), model, names
        self._key_variable, self._max_retries, self._timeout = key_variable, max_retries, timeout
        self._key()

    def __str__(self) -> str:
        return f"{self.url} ({self.model})"

    def client(self, max_reply_bytes: int = MAX_REPLY_BYTES) -> Any:
        """Return the SDK's asynchronous client, which retries requests and honors Retry-After.

        The time-out limits each attempt as a whole, however slowly the reply arrives; a reply that is too large or
        nested too deeply is refused.
        """
        return self._openai.AsyncOpenAI(
            base_url=self.url,
            api_key=self._key(),
            max_retries=self._max_retries,
            timeout=self._openai.Timeout(self._timeout, connect=min(self._timeout, CONNECT_SECONDS)),
            http_client=_bounded_client(self._openai, max_reply_bytes),
        )

    async def error(self, error: Exception) -> ModelError:  # noqa: PLR0911  (a table of codes)
        """Describe a failed request on one line without the key: the reply of the server, and what to do."""
        names = self._names
        status = getattr(error, "status_code", None)
        answer = self._without_key(getattr(error, "body", None) or error.__cause__ or error)
        if isinstance(error, self._openai.APITimeoutError):
            return self._error("no_answer_in_time", timeout=names.timeout, concurrency=names.concurrency)
        if isinstance(error, self._openai.APIConnectionError):
            return self._error("server_unreachable", answer=answer, model=self.model, serve=names.serve)
        if status is None:
            return self._error("not_an_answer", answer=answer)
        if status == 404:
            return await self._not_served(answer)
        if getattr(error, "code", None) == "insufficient_quota":
            return self._error("no_credit")
        if status in (401, 403):
            return self._error("key_refused", status=status, answer=answer, variable=self._key_variable)
        if status in (400, 413, 422):
            return self._error(names.too_long, status=status, answer=answer)
        if status == 429:
            values = {"concurrency": names.concurrency, "max_retries": names.max_retries}
            return self._error("too_many_requests", answer=answer, **values)
        return self._error("server_failed", status=status, answer=answer)

    def _error(self, code: str, **values: object) -> ModelError:
        """Make the error of a code; its sentence names the server."""
        return ModelError(code, server=str(self), **values)

    async def _not_served(self, answer: str) -> ModelError:
        """Return the error after HTTP 404, based on the server's list of models."""
        try:
            async with self.client() as client:
                models = await client.with_options(max_retries=0, timeout=CONNECT_SECONDS).models.list()
            served = [model.id for model in models.data]
        except Exception:  # noqa: BLE001 (this only improves a message)
            return self._error("nothing_at_url", answer=answer)
        if self.model in served:
            return self._error("other_task_served", answer=answer, model=self.model, serve=self._names.serve)
        names = self._without_key(", ".join(served[:5])) or "no model"
        return self._error("other_model_served", answer=answer, served=names, option=self._names.model)

    def _key(self) -> str:
        key = os.environ.get(self._key_variable, "").strip()
        if not re.fullmatch(r"[!-~]*", key):
            raise OptionError("invalid_key", variable=self._key_variable)
        return key or NO_KEY

    def _without_key(self, text: object) -> str:
        key = self._key()
        message = str(text)
        if key != NO_KEY:
            message = message.replace(key, "[key]")
        return printable(message)


def run_coroutine(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine to completion, even inside a running event loop, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _bounded_client(openai: Any, max_bytes: int) -> Any:
    """Return an HTTP client for the SDK that limits the total time of an attempt, and the size and depth of the reply.

    HTTP libraries only limit the time between two chunks of a reply: one byte per minute would never time out.
    """
    sdk_client: Any = openai.DefaultAsyncHttpxClient
    httpx: Any = http_library(openai)

    class BoundedResponse(httpx.Response):
        def json(self, **options: Any) -> Any:
            """Parse the reply; raise ValueError if it is not JSON, or nested too deeply."""
            try:
                content = super().json(**options)
            except RecursionError:
                raise ValueError("the reply is nested too deeply") from None
            _check_depth(content)
            return content

    class BoundedClient(sdk_client):
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request and read the whole reply."""
            try:
                async with asyncio.timeout(request.extensions["timeout"]["read"]):
                    response = await super().send(request, stream=True, **options)
                    try:
                        content = await self._read(response, request)
                    finally:
                        await response.aclose()
            except TimeoutError as error:
                raise httpx.ReadTimeout("the reply did not end in time", request=request) from error
            headers = []
            for name, value in response.headers.items():
                if name.lower() not in CODING_HEADERS:
                    headers.append((name, value))
            return BoundedResponse(response.status_code, headers=headers, content=content, request=request)

        async def _read(self, response: Any, request: Any) -> bytes:
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > max_bytes:
                    message = f"the reply has more than {max_bytes:,} bytes"
                    raise openai.APIError(message, request, body=None)
            return bytes(content)

    return BoundedClient()


def _check_depth(content: object) -> None:
    """Raise ValueError if lists and objects are nested more than MAX_DEPTH levels deep."""
    level = [content]
    for _ in range(MAX_DEPTH):
        level = list(chain.from_iterable(map(_containers_in, level)))
        if not level:
            return
    raise ValueError("the reply is nested too deeply")


def _containers_in(value: object) -> list[object]:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return []
    return [part for part in value if isinstance(part, dict | list)]
