"""The calls of OpenAI's Batch API: https://platform.openai.com/docs/api-reference/batch."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from narrlit.endpoints.refusals import message_of, shown
from narrlit.errors import ModelError
from narrlit.llm.batch_lines import ENDPOINT
from narrlit.llm.batch_records import Batch, BatchRecords
from narrlit.llm.faults import fault_of
from narrlit.llm.options import Server
from narrlit.llm.retrying import Pause, persist
from narrlit.llm.usage import Usage
from narrlit.optional import require

T = TypeVar("T")

ENDED = ("completed", "failed", "expired", "cancelled")

FIRST_POLL, LONGEST_POLL = 2.0, 60.0
"""Seconds between two looks at a batch; they grow."""

POLL_RETRIES = 20
"""A batch takes up to a day: an outage of a quarter of an hour is waited for."""


class NotThere(ModelError):  # noqa: N818 (it says what happened)
    """The service knows no such batch or file, or has no batches at all."""


class BatchService:
    """Sends batches, looks after them, and brings what came of them."""

    def __init__(self, server: Server, client: Any, usage: Usage, retries: int, pause: Pause = asyncio.sleep) -> None:
        """Nothing is sent yet.

        Args:
            server: the service.
            client: an open `openai.AsyncOpenAI`.
            usage: counts the tries that fail.
            retries: of each call.
            pause: waits between tries and looks.
        """
        self._server, self._client, self._usage = server, client, usage
        self._retries, self._pause = retries, pause

    async def send(self, batch: Batch, records: BatchRecords) -> None:
        """Upload a batch's file and have the batch made.

        Raises:
            Fault: if the service does not take it.
            ModelError: if it can't.
        """
        content = await asyncio.to_thread(records.file(batch.name).read_bytes)
        upload = (f"{batch.name}.jsonl", content)

        async def put() -> str:
            return _text((await self._client.files.create(file=upload, purpose="batch")).id)

        file = await self._call(put)
        body = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {"narrlit": batch.name},
        }
        tried = False

        async def make() -> str:
            # A try without an answer may have made the batch all the same.
            nonlocal tried
            number = await self._look_for(batch.name) if tried else None
            tried = True
            return number or _text((await self._client.post("/batches", cast_to=object, body=body))["id"])

        records.made(batch, await self._call(make))

    async def find(self, batch: Batch) -> str | None:
        """The service's number of a batch; None where it never made it."""
        return await self._call(lambda: self._look_for(batch.name))

    async def _look_for(self, name: str) -> str | None:
        path, last = "/batches?limit=100", None
        while True:
            answer = await self._client.get(path, cast_to=object)
            numbers = [_text(entry["id"]) for entry in answer["data"]]
            for number, entry in zip(numbers, answer["data"], strict=True):
                if (entry.get("metadata") or {}).get("narrlit") == name:
                    return number
            # A server that knows no pages gives the same again.
            if not answer.get("has_more") or not numbers or numbers[-1] == last:
                return None
            last = numbers[-1]
            path = f"/batches?limit=100&after={quote(last, safe='')}"

    async def ended(self, number: str) -> dict[str, Any]:
        """The batch as the service describes it when it has ended, which may take a day.

        Raises:
            Fault: if the service can't be asked.
            NotThere: if it knows no such batch.
        """
        looks = 0

        async def look() -> dict[str, Any]:
            found = await self._client.get(f"/batches/{number}", cast_to=object)
            return {**found, "status": _text(found["status"])}

        while True:
            found = await self._call(look, POLL_RETRIES)
            if found["status"] in ENDED:
                return found
            await self._pause(min(LONGEST_POLL, FIRST_POLL * 2.0 ** min(looks, 16)) * random.uniform(0.75, 1.25))
            looks += 1

    async def lines(self, found: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What came of a batch's requests, by their keys: the lines of its output and its errors.

        Raises:
            Fault: if they can't be had.
            NotThere: if the service has their files no more.
        """
        lines: dict[str, dict[str, Any]] = {}
        for kind in ("error_file_id", "output_file_id"):
            if found.get(kind):
                lines.update(await self._call(partial(self._entries, found[kind]), POLL_RETRIES))
        return lines

    async def _entries(self, file: str) -> dict[str, dict[str, Any]]:
        content = await self._client.files.content(file)
        entries = [json.loads(line) for line in content.content.split(b"\n") if line.strip()]
        return {_text(entry["custom_id"]): entry for entry in entries}

    async def _call(self, call: Callable[[], Awaitable[T]], retries: int | None = None) -> T:
        openai = require("openai", "llm")

        async def once() -> T:
            try:
                return await call()
            except openai.NotFoundError as error:
                raise self._not_found(error) from None
            except (openai.APIError, ValueError, LookupError, TypeError, AttributeError) as error:
                raise await fault_of(error, self._client, self._server) from None

        return await persist(once, self._retries if retries is None else retries, self._usage, self._pause)

    def _not_found(self, error: Any) -> NotThere:
        return NotThere(
            f"{self._server.who}: HTTP 404, {shown(message_of(error.body), self._server.key)}; has the server "
            "a Batch API (vLLM's has none: --transport chat), and is the key the one that the batch was sent with?"
        )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("the answer is none of a Batch API: a field that should hold text does not")
    return value


def why_failed(found: dict[str, Any], server: Server) -> ModelError:
    """The error where the service refused a whole batch."""
    errors = found.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    first = first if isinstance(first, dict) else {}
    said = first.get("message") or "without a word"
    where = f" (line {first['line']})" if first.get("line") else ""
    told = shown(f"{said}{where}", server.key)
    return ModelError(f"{server.who}: batch {found.get('id')} failed: {told}; mend this, and give the command again")
