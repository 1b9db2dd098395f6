"""Chat completions by files, as OpenAI's Batch API has them: slower than one by one, and cheaper."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from narrlit.errors import ModelError
from narrlit.llm.batch_lines import reply_of_line, request_line
from narrlit.llm.batch_records import Batch, BatchRecords
from narrlit.llm.batch_service import BatchService, NotThere, why_failed
from narrlit.llm.client import open_client
from narrlit.llm.completions import Dialect
from narrlit.llm.faults import NOT_REACHED, not_there
from narrlit.llm.messages import Reply, Request
from narrlit.llm.options import LLMOptions, Server
from narrlit.llm.retrying import Fault, Pause, persist
from narrlit.llm.usage import Usage

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
"""Of one batch; OpenAI allows 50,000 requests and 200 MB."""

QUIET_SECONDS = 0.5
"""When nothing more was asked for so long, all wait, and what they asked is sent."""


class Batches:
    """Asks a server by batches: `async with Batches(...) as ask: await ask(request)`.

    What is asked is collected until all wait, and sent as one batch; what is asked after its replies makes the next.
    Batches of an interrupted job are waited for, not sent again.
    """

    def __init__(
        self,
        server: Server,
        options: LLMOptions,
        usage: Usage,
        folder: Path,
        known: Callable[[str], bool],
        pause: Pause = asyncio.sleep,
    ) -> None:
        """Nothing is sent yet; to be made where the event loop runs.

        Args:
            server: whom to ask.
            options: how.
            usage: counts the tries that fail.
            folder: of the batches' files and how far each is.
            known: whether the request of a key has its reply in the log.
            pause: waits between tries and looks at a batch.
        """
        self._server, self._options, self._usage, self._pause = server, options, usage, pause
        self._records, self._known = BatchRecords(folder), known
        self._dialect = Dialect(server.model)
        self._queue: dict[str, bytes] = {}  # key -> line of a batch's file
        self._sent: set[str] = set()  # keys of batches that have not ended
        self._waiting: dict[str, asyncio.Future[dict[str, Any] | None]] = {}  # None: it is to be asked again
        self._held: dict[str, dict[str, Any]] = {}  # what came for keys that nobody waits for yet
        self._ended: list[Batch] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._fault: Exception | None = None
        self._asked = asyncio.Event()

    async def __aenter__(self) -> "Batches":
        """Take up the batches that were sent before.

        Raises:
            OptionError: if the folder can't be written, or another job writes there.
            ModelError: if the service can't say what became of them.
        """
        self._records.__enter__()
        self._client = await open_client(self._server).__aenter__()
        self._service = BatchService(self._server, self._client, self._usage, self._options.retries, self._pause)
        try:
            for batch in list(self._records.left.values()):
                await self._take_up(batch)
        except Fault as fault:
            await self.__aexit__(fault)
            raise ModelError(f"{self._server.who}: {fault.final()}; the same command goes on later") from None
        self._start(self._gather())
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not any(exception):  # all that was asked has its reply in the log
            self._put_away(self._ended)
        await self._client.close()
        self._records.__exit__(None, None, None)

    async def __call__(self, request: Request) -> Reply:
        """The reply to a request, hours later.

        Raises:
            RequestFailed: if there is none after all tries, each a batch, or the batch's time was up.
            ModelError: if the service refused the whole batch, or can't be reached.
        """
        try:
            # No wait between tries: the next batch waits for all others anyway.
            return await persist(
                lambda: self._dialect.converse(request, self._send), self._options.retries, self._usage, _at_once
            )
        except Fault as fault:
            raise fault.final() from None

    async def _send(self, request: Request, body: dict[str, Any]) -> Reply:
        if self._fault is not None:
            raise self._fault
        key = request.key(self._server.model)
        line = self._held.pop(key, None)
        while line is None:
            waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
            if key not in self._sent:
                self._queue[key] = request_line(key, body)
                self._asked.set()
            line = await waiting
        return reply_of_line(line, self._server.key)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(self._guarded(work)))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 (whatever it is, those who wait must hear of it)
            self._fault = self._mistake(error) if isinstance(error, Fault) else error
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(self._fault)

    def _mistake(self, fault: Fault) -> ModelError:
        if fault.reason == NOT_REACHED:
            return not_there(self._server, fault)
        return ModelError(f"{self._server.who}: {fault.final()}; the same command goes on from here")

    async def _take_up(self, batch: Batch) -> None:
        if batch.number is None:  # the job was killed while it was sent
            number = await self._service.find(batch)
            if number is None:
                return self._records.done(batch)
            self._records.made(batch, number)
        self._sent.update(batch.keys)
        self._start(self._collect_recorded(batch))
        return None

    async def _gather(self) -> None:
        while True:
            await self._asked.wait()
            ended, count = list(self._ended), 0
            while count < len(self._queue):
                count = len(self._queue)
                await asyncio.sleep(QUIET_SECONDS)
            self._asked.clear()
            self._put_away(ended)  # what came of them was taken, and logged, in the meantime
            for part in list(self._parts()):
                batch = self._records.sending(part)
                self._sent.update(part)
                await self._service.send(batch, self._records)
                self._tell(
                    batch, f"{len(part):,} requests sent; if this job is interrupted, its command goes on with them"
                )
                self._start(self._collect(batch))

    def _parts(self) -> Iterator[dict[str, bytes]]:
        """The queue, which is emptied, in parts that may be one batch each."""
        part: dict[str, bytes] = {}
        size = 0
        while self._queue:
            key = next(iter(self._queue))
            line = self._queue.pop(key)
            if part and (len(part) == MOST_REQUESTS or size + len(line) > MOST_BYTES):
                yield part
                part, size = {}, 0
            part[key] = line
            size += len(line)
        if part:
            yield part

    async def _collect(self, batch: Batch) -> None:
        found = await self._service.ended(str(batch.number))
        if found["status"] == "failed":
            self._records.done(batch)
            raise why_failed(found, self._server)
        lines = await self._service.lines(found)
        self._tell(batch, f"{found['status']}; {len(lines):,} of {len(batch.keys):,} requests came back")
        for key in batch.keys:
            self._sent.discard(key)
            line = lines.get(key, {"error": {"code": f"batch_{found['status']}"}})
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                self._held[key] = line
            elif not waiting.done():
                waiting.set_result(line)
        self._ended.append(batch)

    async def _collect_recorded(self, batch: Batch) -> None:
        """As `_collect`, of a batch of an earlier job, which the service may have deleted since."""
        try:
            await self._collect(batch)
        except NotThere:
            await self._service.find(batch)  # raises where the service has no batches at all: is it another?
            self._tell(batch, f"{self._server.who} has it, or what came of it, no more; its requests are asked again")
            self._records.done(batch)
            for key in batch.keys:
                self._sent.discard(key)
                waiting = self._waiting.pop(key, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)

    def _put_away(self, ended: list[Batch]) -> None:
        """Look no more at batches of which every reply is in the log, where it isn't one that nobody asked for yet."""
        for batch in list(ended):
            if all(self._known(key) for key in self._held.keys() & set(batch.keys)):
                self._records.done(batch)
                self._ended.remove(batch)

    def _tell(self, batch: Batch, what: str) -> None:
        tqdm.write(f"batch {batch.number}: {what}", file=sys.stderr)


async def _at_once(_: float) -> None:
    await asyncio.sleep(0)
