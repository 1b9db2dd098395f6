"""Requests to a language model behind an OpenAI-compatible server: options, one client, many requests at a time."""

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel
from tqdm import tqdm

from narrlit.errors import ModelError, NarrlitError, OptionError
from narrlit.llm.cache import AnswerCache, Reply
from narrlit.optional import require
from narrlit.prompts import Prompt

Item = TypeVar("Item")
Result = TypeVar("Result")

OPTIONAL_PARAMETERS = ("temperature", "top_p", "seed", "response_format")
"""Parameters of a request that some models or servers refuse; the request is then sent without them."""

MAX_FAILURES = 20
"""Requests in a row without an answer, after which no more are sent."""


@dataclass(frozen=True)
class LLMOptions:
    """A language model and how to send requests to it.

    Attributes:
        base_url: URL of the server, such as http://localhost:8000/v1; default: environment variable OPENAI_BASE_URL.
        llm_model: name of the model on the server; default: environment variable NARRLIT_LLM_MODEL.
        api_key_env: name of the environment variable that holds the API key.
        temperature: sampling temperature, 0 to 2; default: as in the paper of the prompt.
        max_tokens: tokens of a reply at most; default: as in the paper of the prompt.
        seed: seed of the first attempt; each retry adds 1.
        concurrency: requests at a time.
        retries: times a request is sent again when the server is busy, fails or cannot be reached.
        timeout: seconds to wait for an answer.
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
    answer_cache: str | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            OptionError: naming the option; a value that may be a key is not repeated.
        """
        for name, least in (("concurrency", 1), ("retries", 0), ("max_tokens", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise OptionError(f"--{name.replace('_', '-')} {value}: must be at least {least}")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise OptionError(f"--temperature {self.temperature}: must be between 0 and 2")
        if not 0 < self.timeout < float("inf"):
            raise OptionError(f"--timeout {self.timeout}: must be a number of seconds above 0")
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.api_key_env):
            raise OptionError("--api-key-env: give the NAME of an environment variable, never the key itself")

    def url(self) -> str:
        """Return the server's URL, from the option or the environment.

        Raises:
            OptionError: if there is none, or it is malformed or holds credentials.
        """
        url = (self.base_url or os.environ.get("OPENAI_BASE_URL", "")).strip()
        if not url:
            raise OptionError(
                "no language model server: give --base-url URL (http://localhost:8000/v1) or set OPENAI_BASE_URL"
            )
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise OptionError("--base-url: not a URL; it looks like http://localhost:8000/v1")
        if parts.username or parts.password or parts.query:
            raise OptionError("--base-url: leave out user, password and query; the key comes from --api-key-env")
        return url.rstrip("/")

    def model_name(self) -> str:
        """Return the model's name, from the option or the environment.

        Raises:
            OptionError: if there is none.
        """
        model = (self.llm_model or os.environ.get("NARRLIT_LLM_MODEL", "")).strip()
        if not model:
            raise OptionError(
                "no language model: give --llm-model NAME (as the server lists it) or set NARRLIT_LLM_MODEL"
            )
        return model

    def api_key(self) -> str:
        """Return the key from the environment; a placeholder without one, as local servers need none.

        Raises:
            OptionError: if no HTTP header can hold it.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not re.fullmatch(r"[!-~]*", key):
            raise OptionError(
                f"environment variable {self.api_key_env}: a key has neither spaces nor non-ASCII letters"
            )
        return key or "none"

    def record(self) -> dict[str, Any]:
        """Return the options as plain data for a report, with URL and model as they are used; the key is no part."""
        return {**asdict(self), "base_url": self.url(), "llm_model": self.model_name()}


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; None leaves a parameter out of the request."""

    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None

    def with_options(self, options: LLMOptions) -> "Sampling":
        """Return these parameters where the options give no others."""
        temperature = self.temperature if options.temperature is None else options.temperature
        return Sampling(options.max_tokens or self.max_tokens, temperature, self.top_p)


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        prompt: sent as the system message.
        content: user message; stories stand in it as JSON, so that none can leave its place.
        schema: pydantic model of the answer.
        sampling: sampling parameters.
        seed: of this attempt.
    """

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
        messages = [
            {"role": "system", "content": self.prompt.text},
            {"role": "user", "content": self.content},
        ]
        optional = {
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "seed": self.seed,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        optional = {name: value for name, value in optional.items() if value is not None and name not in refused}
        return {"model": model, "messages": messages, limit: self.sampling.max_tokens, **optional}


class RequestFailed(NarrlitError):  # noqa: N818 (a result rather than an error: the item continues without it)
    """A request got no answer after all retries.

    Attributes:
        reason: short, for counting: `timeout`, `HTTP 500`, ...
        refused: the parameter that the server refuses, if that is the cause.
    """

    def __init__(self, reason: str, refused: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.refused = reason, refused


@dataclass
class Usage:
    """Counts of one job; tokens are those of requests answered by the server, not by the cache."""

    answered: int = 0
    from_cache: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    refused_parameters: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Describe the counts in one line."""
        line = (
            f"{self.answered:,} answers, {self.from_cache:,} from the answer cache, "
            f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens"
        )
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.failures.most_common())
        return f"{line}; failed: {reasons}" if reasons else line


class Transport(Protocol):
    """A way to send requests: chat completions or batches."""

    async def send(self, key: str, request: Request, body: dict[str, Any]) -> Reply:
        """Send a request; raises RequestFailed without an answer, ModelError if no request can succeed."""


class LLM:
    """A language model that works through the items of a job.

    Attributes:
        usage: counts so far.
        seed: of first attempts.
    """

    def __init__(self, options: LLMOptions, cache: Path) -> None:
        """Check the options; nothing is sent yet.

        Args:
            options: server, model and limits.
            cache: file of answers; `options.answer_cache` takes precedence.

        Raises:
            OptionError: if URL, model or key is missing or malformed.
            MissingExtraError: if the package openai is missing.
        """
        require("openai", "llm")
        self.options, self.model, self.seed = options, options.model_name(), options.seed
        self.usage = Usage()
        self._url, self._key = options.url(), options.api_key()
        self._path = Path(options.answer_cache or cache)
        self._refused: set[str] = set()
        self._in_flight: dict[str, asyncio.Task[Reply]] = {}
        self._cache: AnswerCache
        self._transport: Transport

    def run(self, items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], unit: str) -> list[Result]:
        """Apply `work`, which awaits `ask`, to every item; the same call after an interruption resumes.

        Args:
            items: N items; `concurrency` of them are under way at a time, in a batch all.
            work: coroutine function of one item.
            unit: name of an item on the progress bar.

        Returns:
            N results in the order of the items.

        Raises:
            ModelError: if no request can succeed (no server, invalid key, unknown model).
            OptionError: if the answer cache cannot be written.
        """
        with AnswerCache(self._path) as self._cache:
            return asyncio.run(self._run(items, work, unit))

    async def _run(self, items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], unit: str) -> list[Result]:
        results: dict[int, Result] = {}
        indices = iter(range(len(items)))
        workers = len(items) if self.options.batch else min(self.options.concurrency, len(items))
        with tqdm(total=len(items), desc=self.model, unit=unit, delay=0.5) as bar:

            async def worker() -> None:
                for index in indices:  # shared by the workers
                    results[index] = await work(items[index])
                    bar.update()

            async with self._open_transport() as self._transport:
                tasks = [asyncio.ensure_future(worker()) for _ in range(workers)]
                try:
                    await asyncio.gather(*tasks)
                finally:  # after the first error or Ctrl-C nothing more is sent
                    for task in [*tasks, *self._in_flight.values()]:
                        task.cancel()
                    await asyncio.gather(*tasks, *self._in_flight.values(), return_exceptions=True)
        return [results[index] for index in range(len(items))]

    def _open_transport(self) -> AbstractAsyncContextManager[Transport]:
        import openai

        client = openai.AsyncOpenAI(
            base_url=self._url,
            api_key=self._key,
            max_retries=self.options.retries,
            timeout=openai.Timeout(self.options.timeout, connect=min(self.options.timeout, 10)),
        )
        if self.options.batch:
            from narrlit.llm.batch import BatchTransport

            return BatchTransport(client, self._cache, self._url)
        return ChatTransport(client, self.options.concurrency, self._url)

    async def ask(self, request: Request) -> Reply:
        """Return the answer to a request, from the cache or the server.

        Raises:
            RequestFailed: if there is none after all retries.
            ModelError: if no request can succeed.
        """
        key = request.key(self.model)
        reply = self._cache.get(key)
        if reply is not None:
            self.usage.from_cache += 1
            await asyncio.sleep(0)
            return reply
        if key not in self._in_flight:
            self._in_flight[key] = asyncio.ensure_future(self._send(key, request))
            self._in_flight[key].add_done_callback(lambda _: self._in_flight.pop(key, None))
        return await self._in_flight[key]

    async def _send(self, key: str, request: Request) -> Reply:
        while True:
            body = request.body(self.model, self._refused)
            try:
                reply = await self._transport.send(key, request, body)
            except RequestFailed as failure:
                if failure.refused in body:
                    self._leave_out(str(failure.refused))
                    continue
                self.usage.failures[failure.reason] += 1
                raise
            self._cache.put(key, request.record(self.model), reply)
            self.usage.answered += 1
            self.usage.prompt_tokens += reply.prompt_tokens
            self.usage.completion_tokens += reply.completion_tokens
            return reply

    def _leave_out(self, parameter: str) -> None:
        if parameter not in self._refused:
            self._refused.add(parameter)
            self.usage.refused_parameters.append(parameter)
            tqdm.write(f"warning: {self.model} refuses {parameter}; requests are sent without it", file=sys.stderr)


class ChatTransport:
    """Send each request as a chat completion; the SDK retries and honors Retry-After."""

    def __init__(self, client: Any, concurrency: int, url: str) -> None:
        self._client, self._url = client, url
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
                    raise _unreachable(self._url, body["model"], error) from None
                failure = RequestFailed("connection error")
            except openai.APIStatusError as error:
                self._reached = True
                failure = await failure_of(error, body, self._client, self._url)
            except ValueError:  # no JSON
                failure = RequestFailed("malformed answer")
            else:
                self._reached, self._failures = True, 0
                return reply
        self._failures += failure.refused is None
        raise failure


def reply_of(completion: Any) -> Reply:
    """Read a chat completion, as the SDK returns it.

    Raises:
        RequestFailed: if it is none.
    """
    try:
        choice = completion.choices[0]
        message, usage = choice.message, completion.usage
        refusal = getattr(message, "refusal", None)
        text, finish = (refusal, "refusal") if refusal else (message.content or "", choice.finish_reason)
        used = (usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else (0, 0)
    except (AttributeError, IndexError, TypeError):
        raise RequestFailed("malformed answer") from None
    return Reply(str(text), finish, *used)


def refused_parameter(status: int, message: str, body: dict[str, Any]) -> str | None:
    """Find the parameter that a server refuses, by the words of its HTTP 400.

    >>> refused_parameter(400, "Unsupported value: 'temperature' does not support 0.8", {"temperature": 0.8})
    'temperature'
    """
    if status not in (400, 422):
        return None
    if "max_tokens" in body and "max_completion_tokens" in message and "instead" in message:
        return "max_tokens"
    named = (name for name in OPTIONAL_PARAMETERS if name in body and re.search(rf"\b{name}\b", message))
    schemas = re.search(r"json.?schema|guided|grammar", message, re.IGNORECASE) and "response_format" in body
    return next(named, "response_format" if schemas else None)


async def failure_of(error: Any, body: dict[str, Any], client: Any, url: str) -> RequestFailed:
    """Classify an `openai.APIStatusError`.

    Raises:
        ModelError: if no request can succeed; the message never repeats the key.
    """
    status, where = error.status_code, f"{url} ({body['model']})"
    if status in (401, 403):
        raise ModelError(
            f"{where}: HTTP {status}, the key is not accepted; put a valid one into --api-key-env"
        ) from None
    if status == 404:
        raise ModelError(f"{where}: HTTP 404; {await _served(client)}") from None
    if error.code == "insufficient_quota":
        raise ModelError(f"{where}: the account has no credit left; afterwards the same command resumes") from None
    return RequestFailed(f"HTTP {status}", refused_parameter(status, error.message, body))


async def _served(client: Any) -> str:
    try:
        models = [model.id async for model in client.with_options(max_retries=0, timeout=10).models.list()]
    except Exception:  # noqa: BLE001 (this only improves a message)
        return "does the URL end in /v1?"
    return f"it serves {', '.join(models[:5]) or 'no model'}: name one with --llm-model"


def _unreachable(url: str, model: str, error: Exception) -> ModelError:
    reason = " ".join(str(error.__cause__ or error).split())
    return ModelError(f"{url}: {reason}; is the server running? With vLLM: vllm serve {model}")
