"""Requests that fail are sent again, after a while that grows."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TypeVar

from narrlit.llm.messages import RequestFailed
from narrlit.llm.usage import Usage

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds before the second try, and before any."""

PATIENCE = 600.0
"""Seconds: a server that asks for a longer pause has no answer for this job."""


class Fault(Exception):  # noqa: N818 (it says what happened)
    """One try has no answer.

    Attributes:
        reason: short, to be counted by.
        detail: the server's own words.
        status: HTTP's, where there is one.
        again: whether another try may help.
        wait: seconds that the server asks for before it; None: it doesn't say.
        asks_too_long: whether that is longer than PATIENCE, so that there is no other try.
    """

    def __init__(
        self, reason: str, detail: str = "", *, status: int = 0, again: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.detail, self.status, self.wait = reason, detail, status, wait
        self.asks_too_long = (wait or 0) > PATIENCE
        self.again = again and not self.asks_too_long

    def final(self) -> RequestFailed:
        """The same when there is no further try."""
        asked = f" (it asks to wait {self.wait:.0f} seconds)" if self.asks_too_long else ""
        return RequestFailed(self.reason, self.detail + asked)


async def persist(send: Callable[[], Awaitable[T]], retries: int, usage: Usage, pause: Pause = asyncio.sleep) -> T:
    """What `send` gives, tried `retries` more times where it raises a Fault that another try may mend.

    Raises:
        Fault: the last one.
    """
    tries = 0
    while True:
        try:
            return await send()
        except Fault as fault:
            if not fault.again or tries >= retries:
                raise
            usage.retries[fault.reason] += 1
            wait = backoff(tries, random.random()) if fault.wait is None else fault.wait
        tries += 1
        await pause(wait)


def backoff(tries: int, chance: float) -> float:
    """Seconds before the next try: doubled each time, and by chance up to half less, so that not all come back at once.

    >>> backoff(0, 1.0), backoff(3, 1.0), backoff(3, 0.0), backoff(99, 1.0)
    (0.5, 4.0, 2.0, 60.0)
    """
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(tries, 32)) * (0.5 + 0.5 * chance)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks to wait: a number, or a date (RFC 9110, 10.2.3); None where it doesn't say.

    >>> retry_after({"retry-after": "7"}), retry_after({"retry-after-ms": "250"}), retry_after({"retry-after": "soon"})
    (7.0, 0.25, None)
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            wait = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())
