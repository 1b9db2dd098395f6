"""Requests whose clients may leave before they are answered."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from narrlit.serving.problems import client_left

T = TypeVar("T")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine until it ends or the client leaves, which cancels it.

    Args:
        request: a request whose body has been read.
        work: the work for its answer.

    Raises:
        RefusedError: if the client has left.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_client_leaves(request))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise client_left()
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()


async def _client_leaves(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
