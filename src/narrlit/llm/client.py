"""Requests to a language model behind an OpenAI-compatible server: options, one client, many requests at a time."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel
from tqdm import tqdm

from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.llm.cache import AnswerCache, Reply
from narrlit.llm.completions import RequestFailed, refused_parameter, reply_of
from narrlit.prompts import Prompt
from narrlit.servers import Endpoint, SettingNames, run

if TYPE_CHECKING:
    from narrlit.llm.batch_api import BatchTransport

Item = TypeVar("Item")
Result = TypeVar("Result")

NAMES = SettingNames(
    *("`base_url`", "`llm_model`", "`api_key_env`", "`concurrency`", "`retries`", "`timeout`"),
    shorten="lower `max_tokens`, or serve the model with a longer context",
)

MAX_FAILURES = 20
"""Requests in a row without an answer, after which no more are sent."""


@dataclass(frozen=True)
class LLMOptions:
    """A language model and how to send requests to it.

    Attributes:
        base_url: URL of the server, such as http://localhost:8000/v1; default: environment variable OPENAI_BASE_URL.
        llm_model: name of the model on the server; default: environment variable NARRLIT_LLM_MODEL.
        api_key_env: name of the environment variable that holds the API key.
        temperature: sampling temperature, 0 to 2; default: 0.8 for negatives, 0.3 for views, 0 for judge.
        max_tokens: tokens of a reply at most; default: 1200 for negatives, 2000 for views, 64 for judge.
        seed: seed of the first attempt; each retry adds 1.
        concurrency: requests at a time.
        retries: times a request is sent again when the server is busy, fails or cannot be reached.
        timeout: seconds that an answer may take, from the first byte sent to the last received.
        batch: send requests as files through OpenAI's Batch API (cheaper, takes up to a day).
        answer_cache: SQLite file of all requests and answers, from which an interrupted job resumes; default: beside
            the output.
    """

    base_url: str | None = None
    llm_model: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int = 42
    concurrency: int = 8
    retries: int = 5
    timeout: float = 120
    batch: bool = False
    answer_cache: Annotated[str | None, Output(continued=True)] = None

    def __post_init__(self) -> None:
        NAMES.check(self.api_key_env, self.concurrency, self.retries, self.timeout)
        if self.max_tokens is not None and self.max_tokens < 1:
            raise OptionError(f"`max_tokens={self.max_tokens}`: must be at least 1")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise OptionError(f"`temperature={self.temperature}`: must be between 0 and 2")

    def endpoint(self) -> Endpoint:
        """Return the server and model, from the options or the environment."""
        url = (self.base_url or os.environ.get("OPENAI_BASE_URL", "")).strip()
        model = (self.llm_model or os.environ.get("NARRLIT_LLM_MODEL", "")).strip()
        if not url:
            raise OptionError("no language model: give `base_url=URL` (http://host:8000/v1) or set OPENAI_BASE_URL")
        if not model:
            raise OptionError("no language model: give `llm_model=NAME`, as on the server, or set NARRLIT_LLM_MODEL")
        key = self.api_key_env
        return Endpoint(url, model, NAMES, key_variable=key, max_retries=self.retries, timeout=self.timeout)

    def record(self) -> dict[str, Any]:
        """Return the options as plain data for a report, with the URL and model in use, without the API key."""
        endpoint = self.endpoint()
        return {**asdict(self), "base_url": endpoint.url, "llm_model": endpoint.model}


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; None leaves a parameter out of the request."""

    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None

    def with_options(self, options: LLMOptions) -> "Sampling":
        """Return these parameters, replaced by those that the options set."""
        temperature = self.temperature if options.temperature is None else options.temperature
        return Sampling(options.max_tokens or self.max_tokens, temperature, self.top_p)


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `content` is its user message, `schema` the pydantic model of the answer."""

    prompt: Prompt
    content: str
    schema: type[BaseModel]
    sampling: Sampling
    seed: int

    def key(self, model: str) -> str:
        """Compute the digest of all that decides the answer."""
        parts = [model, self.prompt.digest, self.content, self.schema.model_json_schema(), asdict(self.sampling)]
        return sha256(json.dumps([*parts, self.seed], sort_keys=True).encode()).hexdigest()

    def record(self, model: str) -> dict[str, Any]:
        """Return plain data for the answer cache; the prompt by name and digest."""
        prompt = {"prompt": self.prompt.name, "digest": self.prompt.digest}
        return {"model": model, **prompt, "content": self.content, "seed": self.seed, **asdict(self.sampling)}

    def body(self, model: str, refused: set[str]) -> dict[str, Any]:
        """Build the body of a chat completion, without the parameters in `refused`."""
        schema = {"name": "reply", "strict": True, "schema": self.schema.model_json_schema()}
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        optional = asdict(self.sampling) | {"seed": self.seed, "max_tokens": None}
        optional["response_format"] = {"type": "json_schema", "json_schema": schema}
        optional = {name: value for name, value in optional.items() if value is not None and name not in refused}
        messages = self.prompt.messages(self.content)
        return {"model": model, "messages": messages, limit: self.sampling.max_tokens, **optional}


@dataclass
class Usage:
    """Counts of one job; tokens are those of requests answered by the server, not by the cache."""

    answered: int = 0
    from_cache: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    refused_parameters: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
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
    """A language model that works through the items of a job; `usage` counts its requests."""

    def __init__(self, options: LLMOptions, cache: Path, progress: bool = True) -> None:
        """Check the options; `cache` is the file of answers unless they name another; `progress` shows a bar."""
        self.options, self.usage = options, Usage()
        self._progress = progress
        self._endpoint = options.endpoint()
        self._path = Path(options.answer_cache or cache)
        self._refused: set[str] = set()
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._unusable: set[str] = set()
        self._cache: AnswerCache
        self._transport: ChatTransport | BatchTransport

    def run(self, items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], unit: str) -> list[Result]:
        """Apply `work`, which awaits `ask`, to N items; the same call after an interruption resumes.

        Discarded replies are removed from the cache at the end, so that a later run requests them again; an interrupted
        job resumes with them.
        """
        with AnswerCache(self._path) as self._cache:
            results = run(self._run(items, work, unit))
            self._cache.forget(self._unusable)
        return results

    async def _run(self, items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], unit: str) -> list[Result]:
        results: dict[int, Result] = {}
        indices = iter(range(len(items)))
        workers = len(items) if self.options.batch else min(self.options.concurrency, len(items))
        hidden = not self._progress
        with tqdm(total=len(items), desc=self._endpoint.model, unit=unit, delay=0.5, disable=hidden) as bar:

            async def worker() -> None:
                for index in indices:  # shared by the workers
                    results[index] = await work(items[index])
                    bar.update()

            if self.options.batch:
                from narrlit.llm.batch_api import BatchTransport

                transport: ChatTransport | BatchTransport = BatchTransport(self._endpoint, self._cache)
            else:
                transport = ChatTransport(self._endpoint, self.options.concurrency)
            async with transport as self._transport:
                tasks = [asyncio.ensure_future(worker()) for _ in range(workers)]
                try:
                    await asyncio.gather(*tasks)
                finally:  # after the first error or Ctrl-C nothing more is sent
                    for task in [*tasks, *self._in_flight.values()]:
                        task.cancel()
                    await asyncio.gather(*tasks, *self._in_flight.values(), return_exceptions=True)
        return [results[index] for index in range(len(items))]

    async def ask(self, request: Request) -> Reply:
        """Return the answer to a request, from the cache or the server; RequestFailed if there is none."""
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
                if failure.refused not in self._refused:  # by an earlier answer
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
    """Send each request as a chat completion; the SDK retries and honors Retry-After."""

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self._endpoint, self._client = endpoint, endpoint.client()
        self._slots = asyncio.Semaphore(concurrency)
        self._reached = False
        self._failures = 0

    async def __aenter__(self) -> "ChatTransport":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()

    async def send(self, key: str, request: Request, body: dict[str, Any]) -> Reply:
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
