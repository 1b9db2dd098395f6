"""Threads that search, explain and draw, and a bound on what waits for them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from narrlit.serving.problems import overloaded

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Threads for work that takes longer than a moment.

    Attributes:
        most_waiting: number of calls that may wait or run.
        seconds: time in which a call has to end.
    """

    def __init__(self, threads: int, most_waiting: int, seconds: float) -> None:
        self.most_waiting, self.seconds = most_waiting, seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="narrlit-worker")
        self._active = 0

    async def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread; a call that is cancelled before it begins is dropped.

        Raises:
            RefusedError: if too many calls are waiting, or there is no result in time.
        """
        if self._active >= self.most_waiting:
            raise overloaded("too many requests are waiting: repeat the request later")
        self._active += 1
        call: Future[T] = self._pool.submit(function, *arguments, **options)
        call.add_done_callback(self._count_down)
        try:
            async with asyncio.timeout(self.seconds):
                return await asyncio.wrap_future(call)
        except TimeoutError:
            raise overloaded(f"no result within {self.seconds:g} seconds: repeat the request later") from None

    def submit(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> "Future[T]":
        """Call a function in a thread without waiting for it."""
        return self._pool.submit(function, *arguments, **options)

    async def wait_for(self, result: "Future[T]") -> T:
        """Wait for the result of a call, which goes on if it is not there in time.

        Raises:
            RefusedError: if there is no result in time.
        """
        try:
            async with asyncio.timeout(self.seconds):
                return await asyncio.shield(asyncio.wrap_future(result))
        except TimeoutError:
            raise overloaded(f"no result within {self.seconds:g} seconds: repeat the request later") from None

    def close(self) -> None:
        """Finish the calls that have begun, and drop the others."""
        self._pool.shutdown(cancel_futures=True)

    def _count_down(self, _: "Future[T]") -> None:
        self._active -= 1
