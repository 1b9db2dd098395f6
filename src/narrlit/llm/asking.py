"""Many questions at a time, each asked once: what the log answers is not asked again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from narrlit.llm.messages import Reply, Request
from narrlit.llm.options import LLMOptions
from narrlit.llm.usage import Usage

T = TypeVar("T")
R = TypeVar("R")
Ask = Callable[[Request], Awaitable[Reply]]


class Asker:
    """Asks a model what items of a job need to know.

    Attributes:
        usage: counts of all that was asked so far.
    """

    def __init__(self, options: LLMOptions, log: Path, transport: Ask | None = None) -> None:
        """Nothing is sent yet.

        Args:
            options: whom to ask, and how.
            log: the file of all requests and replies; `options.log` goes before it.
            transport: what answers instead of the server.
        """
        self.options = options
        self.log = Path(options.log or log)
        self.usage = Usage(options.price_in, options.price_out)
        self._transport = transport

    def run(self, items: Sequence[T], work: Callable[[T, Ask], Awaitable[R]], what: str) -> list[R]:
        """What `work` makes of each item, in the items' order.

        Args:
            items: N.
            work: work(item, ask) gives the item's outcome; it may ask as often as it wants. `ask` raises RequestFailed.
            what: the items' name, for the bar.
        """

        async def all_of_them() -> list[R]:
            assert self._transport is not None  # noqa: S101
            return [await work(item, self._transport) for item in items]

        return asyncio.run(all_of_them())
