"""Client for a language model behind an OpenAI-compatible server, with concurrent requests and an answer cache."""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from narrlit.llm.batch_api import BatchTransport
from narrlit.llm.cache import AnswerCache, Reply
from narrlit.llm.completions import RequestFailed, refused_parameter, reply_of
from narrlit.llm.options import LLMOptions
from narrlit.llm.requests import Request
from narrlit.servers import Endpoint, run_coroutine

Item = TypeVar("Item")
R = TypeVar("R")


MAX_FAILURES = 20
"""Number of consecutive requests without an answer after which no more are sent."""


@dataclass
class LLMUsage:
    """Counts of one job; tokens are counted for answers of the server, not of the cache."""

    answered: int = 0
    from_cache: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    refused_parameters: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return plain data for a report."""
        return {**asdict(self), "failures": dict(self.failures)}

    def summary(self) -> str:
        """Describe the counts in one line."""
        line = (
            f"{self.answered:,} answers, {self.from_cache:,} from the answer cache, "
            f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens"
        )
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.failures.most_common())
        return f"{line}; failed: {reasons}" if reasons else line


class LLM:
    """Client that processes the items of a job with a language model; `usage` counts the requests."""

    def __init__(self, options: LLMOptions, cache: Path, progress: bool = True) -> None:
        """Check the options.

        Args:
            options: server, model and sampling.
            cache: file of answers, unless the options name another.
            progress: show a progress bar.
        """
        self.options, self.usage = options, LLMUsage()
        self._progress = progress
        self._endpoint = options.endpoint()
        self._path = Path(options.answer_cache or cache)
        self._refused: set[str] = set()
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._unusable: set[str] = set()
        self._cache: AnswerCache
        self._transport: ChatTransport | BatchTransport

    def run(self, items: Sequence[Item], work: Callable[[Item], Awaitable[R]], unit: str) -> list[R]:
        """Apply `work`, which awaits `ask`, to N items; the same call after an interruption resumes.

        Discarded replies are removed from the cache at the end, so that a later run requests them again; an interrupted
        job resumes with them.
        """
        with AnswerCache(self._path) as self._cache:
            results = run_coroutine(self._run(items, work, unit))
            self._cache.forget(self._unusable)
        return results

    async def _run(self, items: Sequence[Item], work: Callable[[Item], Awaitable[R]], unit: str) -> list[R]:
        """Apply `work` to the items by several workers; the first error ends all of them."""
        results: dict[int, R] = {}
        indices = iter(range(len(items)))
        num_workers = len(items) if self.options.batch else min(self.options.concurrency, len(items))
        hidden = not self._progress
        with tqdm(total=len(items), desc=self._endpoint.model, unit=unit, delay=0.5, disable=hidden) as bar:

            async def worker() -> None:
                for index in indices:  # shared by the workers
                    results[index] = await work(items[index])
                    bar.update()

            async with self._open_transport() as self._transport:
                workers = [asyncio.ensure_future(worker()) for _ in range(num_workers)]
                try:
                    await asyncio.gather(*workers)
                finally:  # after the first error or Ctrl-C, no request is sent any more
                    tasks = [*workers, *self._in_flight.values()]
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        return [results[index] for index in range(len(items))]

    def _open_transport(self) -> "ChatTransport | BatchTransport":
        """Connect to the server."""
        if self.options.batch:
            return BatchTransport(self._endpoint, self._cache)
        return ChatTransport(self._endpoint, self.options.concurrency)

    async def ask(self, request: Request) -> Reply:
        """Return the answer to a request, from the cache or the server; raise RequestFailed if there is none."""
        key = request.key(self._endpoint.model)
        if (reply := self._cache.get(key)) is not None:
            self.usage.from_cache += 1
            await asyncio.sleep(0)
            return reply
        if key not in self._in_flight:
            self._in_flight[key] = asyncio.ensure_future(self._send(key, request))
            self._in_flight[key].add_done_callback(lambda _: self._in_flight.pop(key, None))
        return await self._in_flight[key]

    def discard(self, request: Request) -> None:
        """Mark the reply to a request as unusable."""
        self._unusable.add(request.key(self._endpoint.model))

    async def _send(self, key: str, request: Request) -> Reply:
        """Send a request, without the parameters that the server refuses, and store the answer."""
        model = self._endpoint.model
        while True:
            body = request.body(model, self._refused)
            try:
                reply = await self._transport.send(key, request, body)
                break
            except RequestFailed as failure:
                if failure.refused not in body:
                    self.usage.failures[failure.reason] += 1
                    raise
                if failure.refused not in self._refused:  # not yet found by another request
                    self._refused.add(failure.refused)
                    self.usage.refused_parameters.append(failure.refused)
                    line = f"warning: {model} refuses {failure.refused}; requests are sent without it"
                    tqdm.write(line, file=sys.stderr)
        self._cache.put(key, request.record(model), reply)
        self.usage.answered += 1
        self.usage.prompt_tokens += reply.prompt_tokens
        self.usage.completion_tokens += reply.completion_tokens
        return reply


class ChatTransport:
    """Send each request as a chat completion; the SDK retries it and honors Retry-After."""

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self._endpoint, self._client = endpoint, endpoint.client()
        self._slots = asyncio.Semaphore(concurrency)
        self._reached = False
        self._failures = 0

    async def __aenter__(self) -> "ChatTransport":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()

    async def send(self, key: str, request: Request, body: dict[str, object]) -> Reply:
        """Send one request."""
        import openai

        async with self._slots:
            if self._failures >= MAX_FAILURES:
                raise RequestFailed("not sent")
            try:
                reply = reply_of(await self._client.chat.completions.create(**body))
            except openai.APITimeoutError:
                failure = RequestFailed("timeout")
            except openai.APIConnectionError as error:
                if not self._reached:
                    raise await self._endpoint.error(error) from None
                failure = RequestFailed("connection error")
            except openai.APIStatusError as error:
                if error.status_code in (401, 403, 404) or error.code == "insufficient_quota":
                    raise await self._endpoint.error(error) from None  # no request can succeed
                refused = refused_parameter(error.status_code, error.message, body)
                failure = RequestFailed(f"HTTP {error.status_code}", refused)
            except (openai.APIError, ValueError):  # too large, no JSON, or nested too deeply
                failure = RequestFailed("malformed answer")
            except RequestFailed as error:
                failure = error
            else:
                self._failures = 0
                return reply
            finally:
                self._reached = True
        self._failures += failure.refused is None
        raise failure
