"""Requests sent as files through OpenAI's Batch API: https://platform.openai.com/docs/api-reference/batch."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from tqdm import tqdm

from narrlit.errors import ModelError, printable
from narrlit.llm.cache import AnswerCache, Reply
from narrlit.llm.completions import RequestFailed, batch_result
from narrlit.llm.requests import Request
from narrlit.servers import Endpoint

if TYPE_CHECKING:
    from openai.types import Batch

ENDPOINT = "/v1/chat/completions"
UNFINISHED = ("validating", "in_progress", "finalizing", "cancelling")
"""Statuses of a batch that has no results yet."""
MAX_REQUESTS, MAX_BYTES = 50_000, 190_000_000
"""Largest number of requests in a batch, and largest size of its file."""
LINE_BYTES = 200
"""Size of a line in the file of a batch, without the body of its request; an upper bound."""
MAX_FILE_BYTES = 2**30
"""Largest size of a file of results."""
TRANSFER_SECONDS = 3600
"""Time limit for the transfer of a file of requests or results."""
QUIET_SECONDS = 0.2
"""Time without a new request after which a batch is sent."""
POLL_SECONDS = 20.0
"""Time between two requests for the status of a batch."""


@dataclass(frozen=True)
class QueuedRequest:
    """Request that waits for the next batch, with the body to send."""

    request: Request
    body: dict[str, object]

    @property
    def record(self) -> dict[str, object]:
        """Plain data for the answer cache."""
        return self.request.record(str(self.body["model"]))

    def line(self, key: str) -> str:
        """Format the line in the file of a batch."""
        return json.dumps({"custom_id": key, "method": "POST", "url": ENDPOINT, "body": self.body})


@dataclass(frozen=True)
class BatchResults:
    """Results of a batch.

    Attributes:
        by_key: reply or failure of each request that has one.
        broken_lines: number of lines that can't be read.
    """

    by_key: dict[str, Reply | RequestFailed]
    broken_lines: int

    @property
    def replies(self) -> dict[str, Reply]:
        """Replies by the keys of their requests."""
        return {key: result for key, result in self.by_key.items() if isinstance(result, Reply)}


class BatchTransport:
    """Collect requests until all items wait, send them as one batch, and distribute the answers.

    A batch is recorded in the answer cache before it is sent, so that a resumed job waits for it and sends no request
    twice.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache) -> None:
        self._client, self._cache, self._url = endpoint.client(MAX_FILE_BYTES), cache, endpoint.url
        self._files = self._client.with_options(timeout=TRANSFER_SECONDS).files
        self._queue: dict[str, QueuedRequest] = {}
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "BatchTransport":
        """Collect the batches of an interrupted job first."""
        await asyncio.gather(*(self._resume(name, batch_id) for name, batch_id in self._cache.batches()))
        self._start(self._send_when_quiet())
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    async def send(self, key: str, request: Request, body: dict[str, object]) -> Reply:
        """Wait for the answer to a request in the next batch, or in a resumed one."""
        if (reply := self._cache.get(key)) is not None:
            return reply
        self._queue[key] = QueuedRequest(request, body)
        self._waiting[key] = asyncio.get_running_loop().create_future()
        return await self._waiting[key]

    def _start(self, work: Awaitable[None]) -> None:
        self._tasks.append(asyncio.ensure_future(self._guarded(work)))

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Await `work`; pass an error on to all waiting requests."""
        import openai

        try:
            await work
        except Exception as error:  # noqa: BLE001 (every waiting item has to end)
            if isinstance(error, openai.APIError):
                error = ModelError("batch_failed", url=self._url, reason=type(error).__name__)
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)

    async def _send_when_quiet(self) -> None:
        """Send the queue whenever no request was added for a while."""
        while True:
            size = -1
            while size != len(self._queue) or not size:
                size = len(self._queue)
                await asyncio.sleep(QUIET_SECONDS)
            while self._queue:
                await self._submit()

    async def _submit(self) -> None:
        """Send as many requests of the queue as fit into a batch, at least one."""
        requests = self._take_from_queue()
        name = f"narrlit-{uuid4().hex}"
        self._cache.add_batch(name, {key: queued.record for key, queued in requests.items()})
        content = "\n".join(queued.line(key) for key, queued in requests.items())
        file = await self._files.create(file=(f"{name}.jsonl", content.encode()), purpose="batch")
        batch = await self._client.batches.create(
            input_file_id=file.id, endpoint=ENDPOINT, completion_window="24h", metadata={"narrlit": name}
        )
        self._cache.set_batch_id(name, batch.id)
        _say(batch.id, f"{len(requests):,} requests sent; after an interruption, repeat the command to wait for it")
        self._start(self._collect(name, batch.id, {key: queued.body for key, queued in requests.items()}))

    def _take_from_queue(self) -> dict[str, QueuedRequest]:
        """Remove as many requests from the queue as fit into a batch, at least one."""
        requests: dict[str, QueuedRequest] = {}
        size = 0
        for key in list(self._queue)[:MAX_REQUESTS]:
            size += len(json.dumps(self._queue[key].body)) + LINE_BYTES
            if requests and size > MAX_BYTES:
                break
            requests[key] = self._queue.pop(key)
        return requests

    async def _resume(self, name: str, batch_id: str | None) -> None:
        """Collect a batch of an interrupted job; drop it if the server does not have it."""
        import openai

        try:
            if batch_id is None:  # interrupted while it was being sent
                batch_id = await self._find_batch(name)
            if batch_id is not None:
                return await self._collect(name, batch_id, {})
        except openai.NotFoundError:
            _say(batch_id or name, "no longer on the server; its requests are sent again")
        except openai.APIError as error:
            raise ModelError(
                "unknown_batch", url=self._url, batch=batch_id or name, reason=type(error).__name__
            ) from None
        return self._cache.finish_batch(name, {})

    async def _find_batch(self, name: str) -> str | None:
        """Find the server's id of the batch with the given name."""
        batches = [batch async for batch in self._client.batches.list(limit=100)]
        for batch in batches:
            if (batch.metadata or {}).get("narrlit") == name:
                return str(batch.id)
        return None

    async def _collect(self, name: str, batch_id: str, bodies: dict[str, dict[str, object]]) -> None:
        """Wait for the end of a batch; store its answers in the cache, and return them to waiting requests."""
        while (batch := await self._client.batches.retrieve(batch_id)).status in UNFINISHED:
            await asyncio.sleep(POLL_SECONDS)
        if batch.status == "failed":
            self._cache.finish_batch(name, {})
            raise ModelError("batch_refused", url=self._url, batch=batch_id, reason=_failure(batch))
        results = await self._results(batch, bodies)
        self._cache.finish_batch(name, results.replies)
        counts, missing_reason = f"{len(results.replies):,} answers", f"batch {batch.status}"
        if results.broken_lines:
            counts += f", {results.broken_lines:,} broken lines; repeat the command to send these requests again"
            missing_reason = "broken line of a batch"
        _say(batch_id, f"{batch.status}, {counts}")
        for key in bodies:
            result = results.by_key.get(key, RequestFailed(missing_reason))
            future = self._waiting.pop(key)
            if isinstance(result, Reply):
                future.set_result(result)
            else:
                future.set_exception(result)

    async def _results(self, batch: "Batch", bodies: Mapping[str, dict[str, object]]) -> BatchResults:
        """Read the error file and the output file of a batch; an answer takes precedence over an error."""
        by_key: dict[str, Reply | RequestFailed] = {}
        broken_lines = 0
        for file_id in (batch.error_file_id, batch.output_file_id):
            if not file_id:
                continue
            content = (await self._files.content(file_id)).text
            for line in content.split("\n"):
                if not line.strip():
                    continue
                try:
                    key, result = batch_result(line, bodies)
                except ValueError:
                    broken_lines += 1
                else:
                    by_key[key] = result
        return BatchResults(by_key, broken_lines)


def _failure(batch: "Batch") -> str:
    """Return the reason that a server gives for a failed batch."""
    errors = batch.errors.data if batch.errors else None
    return printable(errors[0].message if errors else "no reason")


def _say(batch: str, message: str) -> None:
    """Print a message about a batch to stderr, above the progress bar."""
    tqdm.write(f"batch {batch}: {message}", file=sys.stderr)
