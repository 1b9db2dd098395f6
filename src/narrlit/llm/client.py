"""Chat completions, one request each: https://platform.openai.com/docs/api-reference/chat/create."""

import asyncio
from typing import Any

from narrlit.endpoints.address import CONNECT_SECONDS, PLACEHOLDER_KEY
from narrlit.llm.completions import Dialect, guessed_tokens, reply_of
from narrlit.llm.faults import NOT_REACHED, fault_of, not_there
from narrlit.llm.limits import Limits
from narrlit.llm.messages import Reply, Request, RequestFailed
from narrlit.llm.options import LLMOptions, Server
from narrlit.llm.retrying import Fault, Pause, persist
from narrlit.llm.usage import Usage
from narrlit.optional import require

NOT_ASKED = "not asked"
HOPELESS = 20
"""Requests in a row that failed with all their tries, after which a server is asked no more."""


def open_client(server: Server) -> Any:
    """An `openai.AsyncOpenAI` that tries each request once; its connections belong to one event loop.

    Raises:
        MissingExtraError: if the package openai is absent.
    """
    openai = require("openai", "llm")
    return openai.AsyncOpenAI(
        base_url=server.url,
        api_key=server.key or PLACEHOLDER_KEY,
        max_retries=0,
        timeout=openai.Timeout(server.timeout, connect=min(server.timeout, CONNECT_SECONDS)),
    )


class Chat:
    """Asks a server: `async with Chat(...) as ask: await ask(request)`."""

    def __init__(
        self,
        server: Server,
        options: LLMOptions,
        usage: Usage,
        limits: Limits | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        """Nothing is sent yet; to be made where the event loop runs.

        Args:
            server: whom to ask.
            options: how.
            usage: counts the tries that fail.
            limits: else those of the options.
            pause: waits between tries.
        """
        self._server, self._retries, self._usage, self._pause = server, options.retries, usage, pause
        self._limits = limits or Limits(options.requests_per_minute, options.tokens_per_minute)
        self._dialect = Dialect(server.model)
        self._places = asyncio.Semaphore(options.concurrency)
        self._reached = False
        self._in_a_row = 0
        self._client: Any = None

    async def __aenter__(self) -> "Chat":
        self._client = await open_client(self._server).__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()

    async def __call__(self, request: Request) -> Reply:
        """The reply to a request.

        Raises:
            RequestFailed: if there is none after all tries, or the server fails so often that it is asked no more.
            ModelError: if no request can succeed: no server, wrong key, no such model.
        """
        async with self._places:
            if self._in_a_row >= HOPELESS:
                raise RequestFailed(NOT_ASKED, f"the {HOPELESS} requests before failed")
            try:
                reply = await persist(
                    lambda: self._dialect.converse(request, self._send), self._retries, self._usage, self._pause
                )
            except Fault as fault:
                if fault.reason == NOT_REACHED and not self._reached:
                    raise not_there(self._server, fault) from None
                # What the request itself is refused for says nothing of the next.
                self._in_a_row += fault.again or fault.asks_too_long
                raise fault.final() from None
        self._in_a_row = 0
        return reply

    async def _send(self, request: Request, body: dict[str, Any]) -> Reply:
        openai = require("openai", "llm")
        tokens = guessed_tokens(request)
        await self._limits.take(tokens)
        try:
            # The time-out of the connection is one between bytes; a proxy may send some for ever.
            sent = self._client.post("/chat/completions", cast_to=object, body=body)
            reply = reply_of(await asyncio.wait_for(sent, self._server.timeout), self._server.key)
        except (openai.APIError, asyncio.TimeoutError, ValueError) as error:
            self._reached = self._reached or isinstance(error, openai.APIStatusError)
            fault = await fault_of(error, self._client, self._server)
            if fault.again and fault.wait is not None:  # else nobody will be here at its end
                self._limits.hold(fault.wait)
            raise fault from None  # a server's answer may repeat the key
        self._reached = True
        used = reply.prompt_tokens + reply.completion_tokens
        if used:  # some servers don't say
            self._limits.correct(tokens, used)
        return reply
