"""How often and when a failed request is tried again."""

import asyncio
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.llm.retrying import LONGEST_WAIT, PATIENCE, Fault, backoff, persist, retry_after
from narrlit.llm.usage import Usage


def tried(faults, retries=3):
    """(what came, waits, usage) of a call that raises these faults first, and then gives "reply"."""
    faults, waits, usage = iter(faults), [], Usage()

    async def send():
        fault = next(faults, None)
        if fault is not None:
            raise fault
        return "reply"

    async def pause(seconds):
        waits.append(seconds)

    try:
        return asyncio.run(persist(send, retries, usage, pause)), waits, usage
    except Fault as fault:
        return fault, waits, usage


def test_no_fault_is_no_wait():
    assert tried([])[:2] == ("reply", [])


def test_faults_that_pass_are_tried_again_and_counted_by_reason():
    found, waits, usage = tried(
        [Fault("time-out", again=True), Fault("HTTP 500", again=True), Fault("time-out", again=True)]
    )
    assert found == "reply"
    assert usage.retries == {"time-out": 2, "HTTP 500": 1}
    assert len(waits) == 3
    for number, wait in enumerate(waits):
        assert 0.25 * 2**number <= wait <= 0.5 * 2**number


def test_after_the_last_try_the_last_fault_is_raised():
    last = Fault("HTTP 502", "bad gateway", again=True)
    found, waits, usage = tried([Fault("HTTP 500", again=True)] * 3 + [last])
    assert found is last
    assert len(waits) == 3
    assert usage.retries == {"HTTP 500": 3}
    assert str(found.final()) == "HTTP 502: bad gateway"


def test_no_retries_is_one_try():
    found, waits, usage = tried([Fault("time-out", again=True)], retries=0)
    assert (found.reason, waits, usage.retries) == ("time-out", [], {})


def test_what_does_not_pass_is_not_tried_again():
    found, waits, _ = tried([Fault("HTTP 400", again=False)])
    assert (found.reason, waits) == ("HTTP 400", [])


def test_the_servers_wait_is_heeded_unless_it_is_too_long():
    assert tried([Fault("HTTP 429", again=True, wait=7.5), Fault("HTTP 429", again=True, wait=0.0)])[1] == [7.5, 0.0]
    found, waits, _ = tried([Fault("HTTP 429", again=True, wait=PATIENCE + 1)])
    assert (found.reason, waits) == ("HTTP 429", [])


@given(st.integers(0, 2000), st.floats(0, 1))
def test_waits_double_up_to_a_limit_and_are_never_nothing(tries, chance):
    longest = min(LONGEST_WAIT, 0.5 * 2 ** min(tries, 20))
    assert longest / 2 <= backoff(tries, chance) <= longest


def test_retry_after_as_seconds_milliseconds_or_a_date():
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "300", "retry-after": "9"}) == 0.3
    soon = datetime.now(timezone.utc) + timedelta(seconds=100)
    assert 90 <= retry_after({"retry-after": format_datetime(soon, usegmt=True)}) <= 100
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


@pytest.mark.parametrize("value", ["", "soon", "-3", "nan", "inf", "99 GMT"])
def test_a_retry_after_without_sense_is_none(value):
    assert retry_after({"retry-after": value}) is None
