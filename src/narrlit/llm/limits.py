"""Not more requests and tokens a minute than a server allows."""

import asyncio
import time
from collections.abc import Awaitable, Callable

BURST_SECONDS = 1.0
"""What may be sent at once, as seconds of the allowed rate: so no minute holds much more than the limit."""

SHORTEST_WAIT = 1e-6
"""Seconds: what is less may be rounding, by which a clock's reading does not change."""


class Bucket:
    """A bucket that fills with a minute's allowance in a minute, and holds what flows in within BURST_SECONDS.

    An amount larger than the bucket may be taken when it is full; it then owes the rest.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._rate = per_minute / 60
        self._size = self._level = self._rate * BURST_SECONDS
        self._clock = clock
        self._at = clock()

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._size, self._level + (now - self._at) * self._rate)
        self._at = now

    def wait(self, amount: float) -> float:
        """Seconds until `amount` may be taken; 0 if it may now."""
        self._fill()
        return max(0.0, (min(amount, self._size) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Take an amount, or give one back where it is negative."""
        self._fill()
        self._level = min(self._size, self._level - amount)


class Limits:
    """Who wants to send waits here, first come, first served."""

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Nobody has sent anything yet.

        Args:
            requests_per_minute: None: no limit.
            tokens_per_minute: None: no limit.
            clock: seconds.
            sleep: waits for seconds of that clock.
        """
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute, clock)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute, clock)
        self._clock, self._sleep = clock, sleep
        self._held_until = float("-inf")
        self._turn = asyncio.Lock()

    async def take(self, tokens: float) -> None:
        """Wait until a request of about so many tokens may be sent, and count it as sent."""
        async with self._turn:
            while (wait := self._wait(tokens)) > SHORTEST_WAIT:
                await self._sleep(wait)
            if self._requests is not None:
                self._requests.take(1)
            if self._tokens is not None:
                self._tokens.take(tokens)

    def correct(self, guessed: float, used: float) -> None:
        """What a request was counted as, and what it used in fact."""
        if self._tokens is not None:
            self._tokens.take(used - guessed)

    def hold(self, seconds: float) -> None:
        """The server asks for a pause: nobody sends before its end."""
        self._held_until = max(self._held_until, self._clock() + seconds)

    def _wait(self, tokens: float) -> float:
        waits = [self._held_until - self._clock()]
        if self._requests is not None:
            waits.append(self._requests.wait(1))
        if self._tokens is not None:
            waits.append(self._tokens.wait(tokens))
        return max(waits)
