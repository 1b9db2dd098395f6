import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.llm.messages import Reply, RequestFailed
from narrlit.llm.rounds import SOUND, Rejected, ask_in_rounds, object_in, text_schema

SCHEMA = text_schema(neg_theme={"type": "string", "minLength": 1})


def reply(text, finish="stop"):
    return Reply(text, finish, 1, 1)


def run(wanted, rounds, answers, delays=None):
    """The harvest and what was asked; answers(kind, attempt) is a text, "bad..." to be rejected, or an error."""
    asked = []

    async def send(kind, attempt):
        asked.append((kind, attempt))
        if delays is not None:
            await asyncio.sleep(delays.random() / 1000)
        found = answers(kind, attempt)
        if isinstance(found, Exception):
            raise found
        return reply(found)

    def read(kind, got):
        if got.text.startswith("bad"):
            raise Rejected(got.text)
        return got.text

    return asyncio.run(ask_in_rounds(wanted, rounds, send, read)), asked


def test_a_rejected_reply_is_asked_for_again_under_the_next_attempt_and_nothing_else_is():
    harvest, asked = run(
        {"x": 3, "y": 1},
        4,
        lambda kind, attempt: "bad length" if (kind, attempt) in {("x", 1), ("x", 3)} else f"{kind}{attempt}",
    )
    assert asked == [("x", 0), ("x", 1), ("x", 2), ("y", 0), ("x", 3), ("x", 4)]
    assert harvest.taken == {"x": ["x0", "x2", "x4"], "y": ["y0"]}
    assert dict(harvest.verdicts) == {("x", SOUND): 3, ("x", "bad length"): 2, ("y", SOUND): 1}
    assert harvest.reasons("x") == {"bad length": 2}
    assert harvest.reasons("y") == {}


def test_rounds_end():
    harvest, asked = run({"x": 2}, 3, lambda kind, attempt: "bad always")
    assert asked == [("x", attempt) for attempt in range(6)]
    assert harvest.taken == {"x": []}
    assert harvest.reasons("x") == {"bad always": 6}


def test_a_request_that_fails_is_counted_and_not_asked_again():
    harvest, asked = run(
        {"x": 2}, 4, lambda kind, attempt: RequestFailed("HTTP 500") if attempt == 0 else f"x{attempt}"
    )
    assert asked == [("x", 0), ("x", 1)]
    assert harvest.taken == {"x": ["x1"]}
    assert harvest.reasons("x") == {"no answer: HTTP 500": 1}


def test_other_errors_are_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        run({"x": 1}, 4, lambda kind, attempt: ZeroDivisionError())


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 12)), st.integers(0, 99))
def test_the_order_of_arrival_decides_nothing(bad, seed):
    def answers(kind, attempt):
        return "bad" if attempt in bad else f"{kind}{attempt}"

    wanted = {"x": 3, "y": 2}
    one, asked = run(wanted, 4, answers)
    other, asked_too = run(wanted, 4, answers, random.Random(seed))
    assert (one, sorted(asked)) == (other, sorted(asked_too))
    assert len(set(asked)) == len(asked)
    assert all(len(one.taken[kind]) <= count for kind, count in wanted.items())


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        (reply('{"neg_theme": "A story."}', "length"), "cut off"),
        (reply("", "content_filter"), "refusal"),
        (reply("I'm sorry, but I can't help with that."), "refusal"),
        (reply("Here is a story about a dog."), "unparsable"),
        (reply('{"neg_outcome": "A story."}'), "unparsable"),
        (reply('{"neg_theme": 5}'), "unparsable"),
        (reply(""), "unparsable"),
    ],
)
def test_replies_without_an_object_are_rejected_by_reason(got, reason):
    with pytest.raises(Rejected) as rejected:
        object_in(got, SCHEMA)
    assert rejected.value.reason == reason


def test_an_object_with_text_around_it_is_read():
    got = reply('Sure! Here it is:\n```json\n{"neg_theme": "A {curly} story."}\n```\nEnjoy.')
    assert object_in(got, SCHEMA) == {"neg_theme": "A {curly} story."}
