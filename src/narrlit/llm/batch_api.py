"""Requests as files through OpenAI's Batch API: https://platform.openai.com/docs/api-reference/batch."""

import asyncio
import json
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tqdm import tqdm

from narrlit.errors import ModelError, printable
from narrlit.llm.cache import AnswerCache, Reply
from narrlit.llm.completions import RequestFailed, batch_result
from narrlit.servers import Endpoint

if TYPE_CHECKING:
    from narrlit.llm.client import Request

ENDPOINT = "/v1/chat/completions"
UNFINISHED = ("validating", "in_progress", "finalizing", "cancelling")
MAX_REQUESTS, MAX_BYTES = 50_000, 190_000_000
MAX_FILE_BYTES, TRANSFER_SECONDS = 2**30, 3600
"""Size of a file of results at most; its transfer, or that of a file of requests, may take longer than one reply."""
QUIET_SECONDS, POLL_SECONDS = 0.2, 20.0
"""A batch is sent when no request was added for the first; its status is requested every so many of the second."""

Part = dict[str, tuple["Request", dict[str, Any]]]  # requests and their bodies, by key


class BatchTransport:
    """Collect requests until all items wait, send them as one batch, and distribute the answers.

    A batch is recorded in the answer cache before it is sent: an interrupted job waits for it and sends nothing again.
    """

    def __init__(self, endpoint: Endpoint, cache: AnswerCache) -> None:
        self._client, self._cache, self._url = endpoint.client(MAX_FILE_BYTES), cache, endpoint.url
        self._files = self._client.with_options(timeout=TRANSFER_SECONDS).files
        self._queue: Part = {}
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

    async def send(self, key: str, request: "Request", body: dict[str, Any]) -> Reply:
        """Wait for the answer to a request in the next batch, or in a resumed one."""
        if (known := self._cache.get(key)) is not None:
            return known
        self._queue[key] = request, body
        self._waiting[key] = asyncio.get_running_loop().create_future()
        return await self._waiting[key]

    def _start(self, work: Awaitable[None]) -> None:
        self._tasks.append(asyncio.ensure_future(self._guarded(work)))

    async def _guarded(self, work: Awaitable[None]) -> None:
        import openai

        try:
            await work
        except Exception as error:  # noqa: BLE001 (every waiting item has to end)
            if isinstance(error, openai.APIError):
                hint = "is there a Batch API? Without `batch` requests are sent one by one"
                error = ModelError(f"{self._url}: {type(error).__name__} in a batch; {hint}; the same command resumes")
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)

    async def _send_when_quiet(self) -> None:
        while True:
            size = -1
            while size != len(self._queue) or not size:
                size = len(self._queue)
                await asyncio.sleep(QUIET_SECONDS)
            while self._queue:
                await self._submit()

    async def _submit(self) -> None:
        """Send as many requests of the queue as fit into a batch, at least one."""
        part: Part = {}
        size = 0
        for key in list(self._queue)[:MAX_REQUESTS]:
            size += len(json.dumps(self._queue[key][1])) + 200
            if part and size > MAX_BYTES:
                break
            part[key] = self._queue.pop(key)
        name = f"narrlit-{uuid4().hex}"
        self._cache.add_batch(name, {key: request.record(body["model"]) for key, (request, body) in part.items()})
        bodies = {key: body for key, (_, body) in part.items()}
        line = {"method": "POST", "url": ENDPOINT}
        content = "\n".join(json.dumps({"custom_id": key, **line, "body": body}) for key, body in bodies.items())
        file = await self._files.create(file=(f"{name}.jsonl", content.encode()), purpose="batch")
        batch = await self._client.batches.create(
            input_file_id=file.id, endpoint=ENDPOINT, completion_window="24h", metadata={"narrlit": name}
        )
        self._cache.set_batch_id(name, batch.id)
        _say(batch.id, f"{len(part):,} requests sent; after an interruption the same command waits for it")
        self._start(self._collect(name, batch.id, bodies))

    async def _resume(self, name: str, batch_id: str | None) -> None:
        import openai

        try:
            if batch_id is None:  # interrupted while it was being sent
                listed = [batch async for batch in self._client.batches.list(limit=100)]
                batch_id = next((b.id for b in listed if (b.metadata or {}).get("narrlit") == name), None)
            if batch_id is not None:
                return await self._collect(name, batch_id, {})
        except openai.NotFoundError:
            _say(batch_id or name, "no longer on the server; its requests are sent again")
        except openai.APIError as error:
            raise ModelError(f"{self._url}: cannot ask for batch {batch_id or name}: {type(error).__name__}") from None
        return self._cache.finish_batch(name, {})

    async def _collect(self, name: str, batch_id: str, bodies: dict[str, dict[str, Any]]) -> None:
        """Wait for the end of a batch; store its answers in the cache, and return them to waiting requests."""
        while (batch := await self._client.batches.retrieve(batch_id)).status in UNFINISHED:
            await asyncio.sleep(POLL_SECONDS)
        if batch.status == "failed":
            self._cache.finish_batch(name, {})
            reasons = [error.message for error in (batch.errors.data if batch.errors else None) or []]
            reason = printable(reasons[0] if reasons else "no reason")
            raise ModelError(f"{self._url}: batch {batch_id} failed: {reason}")
        results: dict[str, Reply | RequestFailed] = {}
        broken_lines = 0
        for file_id in filter(None, (batch.error_file_id, batch.output_file_id)):
            content = (await self._files.content(file_id)).text
            for line in filter(str.strip, content.split("\n")):
                try:
                    key, result = batch_result(line, bodies)
                except ValueError:
                    broken_lines += 1
                else:
                    results[key] = result
        replies = {key: result for key, result in results.items() if isinstance(result, Reply)}
        self._cache.finish_batch(name, replies)
        broken = f", {broken_lines:,} broken lines, whose requests the same command sends again" if broken_lines else ""
        _say(batch_id, f"{batch.status}, {len(replies):,} answers{broken}")
        lacking = RequestFailed("broken line of a batch" if broken_lines else f"batch {batch.status}")
        for key in bodies:
            future, result = self._waiting.pop(key), results.get(key, lacking)
            if isinstance(result, Reply):
                future.set_result(result)
            else:
                future.set_exception(result)


def _say(batch: str, message: str) -> None:
    tqdm.write(f"batch {batch}: {message}", file=sys.stderr)
