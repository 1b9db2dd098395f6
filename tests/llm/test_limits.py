"""Rates on a clock of the test's own."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.llm.limits import Limits


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


def sent_at(amounts, think=0.0, **limits):
    """When requests of these many tokens are sent, each asked for `think` seconds after the one before."""
    clock = Clock()
    times = []

    async def send():
        limit = Limits(**limits, clock=clock, sleep=clock.sleep)
        for tokens in amounts:
            await limit.take(tokens)
            times.append(clock.now)
            clock.now += think

    asyncio.run(send())
    return times


def most_in_a_minute(times, amounts):
    return max(sum(b for t, b in zip(times, amounts, strict=True) if s <= t < s + 60) for s in times)


def test_without_a_limit_nobody_waits():
    assert sent_at([1e9] * 5) == [0.0] * 5


def test_requests_are_spread_over_the_minute():
    times = sent_at([1] * 300, requests_per_minute=120)
    assert most_in_a_minute(times, [1] * 300) <= 122
    assert times[-1] == pytest.approx(298 / 2, abs=0.1)  # none slower than is allowed, either


def test_a_slow_sender_never_waits_and_saves_no_more_than_a_second():
    assert sent_at([1] * 5, think=10, requests_per_minute=60) == [0, 10, 20, 30, 40]
    clock = Clock()
    limits = Limits(60, clock=clock, sleep=clock.sleep)
    clock.now = 1000.0
    asyncio.run(take(limits, 3))
    assert clock.now == pytest.approx(1002)


async def take(limits, count, tokens=1):
    for _ in range(count):
        await limits.take(tokens)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=60), st.integers(100, 2000))
def test_tokens_of_any_minute_stay_near_the_limit(amounts, limit):
    times = sent_at(amounts, tokens_per_minute=limit)
    assert times == sorted(times)
    # One request may be larger than the bucket: it goes first, and the others wait for what it owes.
    assert most_in_a_minute(times, amounts) <= limit * 61 / 60 + max(amounts) + 1e-6


def test_the_stricter_limit_counts():
    times = sent_at([100] * 10, requests_per_minute=6000, tokens_per_minute=600)
    assert times[-1] == pytest.approx(89, abs=1.1)
    times = sent_at([1] * 10, requests_per_minute=6, tokens_per_minute=6000)
    assert times[-1] == pytest.approx(90, abs=10)


def test_what_a_request_did_not_use_is_given_back_and_what_it_used_more_is_owed():
    clock = Clock()
    limits = Limits(tokens_per_minute=60, clock=clock, sleep=clock.sleep)
    asyncio.run(take(limits, 1, tokens=31))  # owes 30
    limits.correct(31, 11)
    asyncio.run(take(limits, 1))
    assert clock.now == pytest.approx(11)
    limits.correct(1, 21)
    asyncio.run(take(limits, 1))
    assert clock.now == pytest.approx(32)


def test_a_pause_that_the_server_asks_for_holds_everybody_and_a_shorter_one_does_not_end_it():
    clock = Clock()
    limits = Limits(clock=clock, sleep=clock.sleep)
    limits.hold(7)
    limits.hold(2)
    asyncio.run(take(limits, 2))
    assert clock.now == 7


def test_first_come_first_served():
    clock = Clock()
    order = []

    async def main():
        limits = Limits(60, clock=clock, sleep=lambda seconds: asyncio.wait_for(clock.sleep(seconds), None))

        async def one(name):
            await limits.take(1)
            order.append(name)

        await asyncio.gather(*(one(name) for name in range(20)))

    asyncio.run(main())
    assert order == list(range(20))
