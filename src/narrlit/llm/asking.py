"""Many questions at a time, each asked once: what the log answers is not asked again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from narrlit.llm.batch import Batches
from narrlit.llm.client import NOT_ASKED, Chat
from narrlit.llm.log import Log
from narrlit.llm.messages import Reply, Request, RequestFailed
from narrlit.llm.options import LLMOptions
from narrlit.llm.usage import Usage
from narrlit.optional import require

T = TypeVar("T")
R = TypeVar("R")
Ask = Callable[[Request], Awaitable[Reply]]


class Asker:
    """Asks a model what the items of a job need to know.

    Attributes:
        log: the file of all requests and replies.
        usage: counts of all that was asked so far.
    """

    def __init__(self, options: LLMOptions, log: Path, transport: Ask | None = None) -> None:
        """Nothing is sent yet.

        Args:
            options: whom to ask, and how.
            log: the file of all requests and replies; `options.log` goes before it.
            transport: what answers in the server's place.

        Raises:
            OptionError: if the URL, the model or the key is missing or none.
            MissingExtraError: if the package openai is absent.
        """
        if transport is None:
            require("openai", "llm")
            self._server = options.server()
        self._options, self._transport = options, transport
        self._model = options.model()
        self.log = Path(options.log or log)
        self.usage = Usage(options.price_in, options.price_out)
        self._counted: set[str] = set()

    def run(self, items: Sequence[T], work: Callable[[T, Ask], Awaitable[R]], what: str) -> list[R]:
        """What `work` makes of each item, in the items' order. Not to be called where an event loop runs.

        An interrupted run goes on where it was when it is started again with the same log.

        Args:
            items: N; a chat works at `concurrency` of them at a time, a batch at all.
            work: work(item, ask) gives the item's outcome. It may ask as often as it wants, one after the other or at
                once; `ask` raises RequestFailed where there is no answer. What else `work` raises ends the run.
            what: an item's name, for the bar.

        Raises:
            ModelError: if no request can succeed: no server, wrong key, no such model.
            OptionError: if the log can't be written, or another job writes it.
            DataError: if the log's file is none.
        """
        with Log(self.log) as log:
            return asyncio.run(self._all(items, work, what, log))

    async def _all(self, items: Sequence[T], work: Callable[[T, Ask], Awaitable[R]], what: str, log: Log) -> list[R]:
        outcomes: dict[int, R] = {}
        places = iter(range(len(items)))
        with tqdm(total=len(items), desc=self._model, unit=what, delay=0.5) as bar:
            async with self._opened(log) as send:
                ask = _Once(self._model, self._options.left_out, send, log, self.usage, self._counted)

                async def worker() -> None:
                    for place in places:  # shared: each worker takes the next item that nobody has
                        outcomes[place] = await work(items[place], ask)
                        bar.update()

                await _together([worker() for _ in range(min(self._at_once(len(items)), len(items)))])
        return [outcomes[place] for place in range(len(items))]

    def _at_once(self, count: int) -> int:
        return count if self._batched else self._options.concurrency

    @property
    def _batched(self) -> bool:
        return self._transport is None and self._options.transport == "batch"

    def _opened(self, log: Log) -> AbstractAsyncContextManager[Ask]:
        if self._transport is not None:
            return nullcontext(self._transport)
        if self._batched:
            folder = self.log.with_name(f"{self.log.name}.batches")
            return Batches(self._server, self._options, self.usage, folder, lambda key: log.reply(key) is not None)
        return Chat(self._server, self._options, self.usage)


async def _together(work: Sequence[Awaitable[None]]) -> None:
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        await asyncio.gather(*tasks)
    finally:  # after the first failure, or Ctrl-C, nothing more is asked
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Once:
    """Sends each request once: what the log holds is not sent, and what is on its way is waited for."""

    def __init__(
        self, model: str, left_out: Sequence[str], send: Ask, log: Log, usage: Usage, counted: set[str]
    ) -> None:
        self._model, self._left_out, self._send = model, left_out, send
        self._log, self._usage, self._counted = log, usage, counted
        self._under_way: dict[str, asyncio.Task[Reply]] = {}

    async def __call__(self, request: Request) -> Reply:
        request = replace(request, sampling=request.sampling.without(self._left_out))
        key = request.key(self._model)
        reply = self._log.reply(key)
        if reply is not None:
            if key not in self._counted:
                self._counted.add(key)
                self._usage.add(reply, from_log=True)
            await asyncio.sleep(0)  # the others' turn, and Ctrl-C's
            return reply
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.ensure_future(self._sent(request, key))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await task

    async def _sent(self, request: Request, key: str) -> Reply:
        try:
            reply = await self._send(request)
        except RequestFailed as failed:
            self._usage.failures[failed.reason] += 1
            if failed.reason != NOT_ASKED:
                self._log.failed(request, self._model, str(failed))
            raise
        self._log.answered(request, self._model, reply)
        self._counted.add(key)
        self._usage.add(reply, from_log=False)
        return reply
