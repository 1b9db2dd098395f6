"""Chats with a real server on loopback: what is sent, what goes wrong, how often it is tried."""

import asyncio
import socket

import pytest
from llm_jobs import SCHEMA, SYSTEM, content, options, request, sound
from llm_server import REFUSALS, REPLIES

from narrlit.errors import ModelError
from narrlit.llm import retrying
from narrlit.llm.client import HOPELESS, Chat
from narrlit.llm.completions import guessed_tokens
from narrlit.llm.limits import Limits
from narrlit.llm.messages import RequestFailed
from narrlit.llm.parsing import parse_object
from narrlit.llm.usage import Usage

KEY = "sk-Tr0ub4dor-and-3"


class Elsewhere:
    def __init__(self, url):
        self.url = url


class Talk:
    """What a chat answers to requests, one after the other, and what it waited between tries."""

    def __init__(self, given, requests, limits=None):
        self.usage, self.waits = Usage(), []
        self.outcomes = asyncio.run(self._all(given, requests, limits))

    async def _pause(self, seconds):
        self.waits.append(seconds)

    async def _all(self, given, requests, limits):
        outcomes = []
        async with Chat(given.server(), given, self.usage, limits, self._pause) as ask:
            for one in requests:
                try:
                    outcomes.append(await ask(one))
                except RequestFailed as failed:
                    outcomes.append(failed)
        return outcomes

    @property
    def reasons(self):
        return [outcome.reason for outcome in self.outcomes]


def talk(llm, *requests, limits=None, **given):
    return Talk(options(llm, **given), requests or [request()], limits)


def test_what_is_sent_and_what_comes_back(llm):
    found = talk(llm, request("S", attempt=3, temperature=0.8, top_p=0.9), api_key=KEY).outcomes[0]
    assert llm.bodies == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content("S")}],
            "max_tokens": 64,
            "temperature": 0.8,
            "top_p": 0.9,
            "seed": 45,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
            },
        }
    ]
    assert llm.headers[0]["authorization"] == f"Bearer {KEY}"
    assert parse_object(found.text, SCHEMA) == {"theme": sound("S", 45)}
    assert found.finish == "stop"
    assert found.prompt_tokens == len(f"{SYSTEM} {content('S')}".split())
    assert found.completion_tokens == len(found.text.split())


def test_what_is_none_is_not_sent(llm):
    talk(llm, request(seed=None))
    assert set(llm.bodies[0]) == {"model", "messages", "max_tokens", "response_format"}
    assert llm.headers[0]["authorization"] == "Bearer none"


PASSING = {
    "429": "HTTP 429",
    "429 retry-after": "HTTP 429",
    "500": "HTTP 500",
    "503 page": "HTTP 503",
    "broken answer": "broken answer",
    "no choices": "broken answer",
    "time-out": "time-out",
    "dripping": "time-out",
    "dropped": "connection broken",
}


def seconds_for(mode):
    """A time-out that is soon where it is to come, and else never comes."""
    return 0.7 if PASSING[mode] == "time-out" else 60


@pytest.mark.parametrize("mode", PASSING)
def test_what_passes_is_tried_again_until_it_has_passed(llm, mode):
    llm.modes = iter([mode, mode])
    found = talk(llm, timeout=seconds_for(mode))
    assert parse_object(found.outcomes[0].text, SCHEMA) == {"theme": sound("story 0")}
    assert found.usage.retries == {PASSING[mode]: 2}
    assert len(llm.bodies) == 3
    assert all(body == llm.bodies[0] for body in llm.bodies)


@pytest.mark.parametrize("mode", PASSING)
def test_what_does_not_pass_is_a_failed_request_after_all_tries(llm, mode):
    llm.mode = mode
    found = talk(llm, timeout=seconds_for(mode), retries=1)
    assert found.reasons == [PASSING[mode]]
    assert "\n" not in str(found.outcomes[0])
    assert len(llm.bodies) == 2


def test_what_is_wrong_with_the_request_is_not_tried_again(llm):
    llm.mode = "400"
    found = talk(llm, request())
    assert found.reasons == ["HTTP 400"]
    assert "context length" in str(found.outcomes[0])
    assert found.usage.retries == {}


@pytest.mark.parametrize("mode", REPLIES)
def test_replies_come_back_as_they_are(llm, mode):
    llm.mode = mode
    found = talk(llm).outcomes[0]
    sound_text = f'{{"theme": "{sound("story 0")}"}}'.replace('"story"', '\\"story\\"').replace(
        '"story 0"', '\\"story 0\\"'
    )
    assert found.text == REPLIES[mode](sound_text, SCHEMA)
    assert found.finish == ("length" if mode == "cut off" else "stop")


def test_the_servers_wait_holds_the_others_too(llm):
    llm.modes = iter(["429 retry-after"])
    now, slept = [0.0], []

    async def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    found = talk(llm, limits=Limits(clock=lambda: now[0], sleep=sleep))
    assert found.waits == [0.2]
    assert slept == [pytest.approx(0.2)]


def test_a_wait_beyond_patience_fails_the_request_holds_nobody_and_in_a_row_ends_the_asking(llm, monkeypatch):
    monkeypatch.setattr(retrying, "PATIENCE", 0.1)  # the server asks for 0.2 seconds
    llm.mode = "429 retry-after"
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        raise AssertionError("nobody is to be held")

    requests = [request(f"S{i}") for i in range(HOPELESS + 2)]
    found = talk(llm, *requests, limits=Limits(clock=lambda: 0.0, sleep=sleep))
    assert found.reasons == ["HTTP 429"] * HOPELESS + ["not asked"] * 2
    assert "asks to wait 0 seconds" in str(found.outcomes[0])
    assert (found.waits, slept, len(llm.bodies)) == ([], [], HOPELESS)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 3, "completion_tokens": 2}])
def test_tokens_that_the_server_does_not_count_are_not_given_back(llm, usage):
    answer = {"choices": [{"message": {"content": "{}"}}], "usage": usage}
    llm.answer = lambda body, mode: (200, {}, answer)
    guessed = guessed_tokens(request())
    now = [0.0]

    async def sleep(seconds):
        now[0] += seconds

    talk(llm, request(), request(), limits=Limits(None, guessed, lambda: now[0], sleep))
    assert now[0] == pytest.approx(60 if usage is None else 60 * 5 / guessed)


def test_mistakes_end_the_job_in_one_line_without_the_key(llm):
    def told(server=llm, **given):
        with pytest.raises(ModelError) as caught:
            talk(server, api_key=KEY, **given)
        message = str(caught.value)
        assert "\n" not in message
        assert KEY not in message
        assert caught.value.__cause__ is None
        return message

    llm.key = "another"
    assert "HTTP 401, Incorrect API key provided: Bearer [key]" in told()
    llm.key = None
    assert "the models there are tiny: name one by --llm_model" in told(llm_model="large")
    assert "should end in /v1" in told(Elsewhere(llm.url.removesuffix("/v1")))
    llm.mode = "quota"
    assert "exceeded your quota" in told()
    assert len(llm.bodies) == 2  # the model's and the quota's: no mistake is tried twice


def test_a_server_that_was_never_there_ends_the_job_with_the_way_to_start_it():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"

    with pytest.raises(ModelError, match="vllm serve tiny"):
        talk(Elsewhere(url), retries=1)


def test_a_server_that_goes_away_fails_requests_but_not_the_job(llm):
    def requests():
        yield request("S")
        llm.shutdown()
        yield request("T")

    found = Talk(options(llm), requests())
    assert found.outcomes[0].finish == "stop"
    assert found.outcomes[1].reason == "no connection"


def test_a_server_that_fails_all_the_time_is_asked_no_more(llm):
    llm.mode = "500"
    found = talk(llm, *[request(f"S{i}") for i in range(HOPELESS + 5)], retries=0)
    assert found.reasons == ["HTTP 500"] * HOPELESS + ["not asked"] * 5
    assert len(llm.bodies) == HOPELESS


def test_one_reply_in_between_is_hope_and_refused_requests_say_nothing_of_the_server(llm):
    fails = ["500"] * (HOPELESS - 1)
    llm.modes = iter([*fails, None, *fails, *["400"] * 5])
    found = talk(llm, *[request(f"S{i}") for i in range(2 * HOPELESS + 5)], retries=0)
    reasons = [getattr(outcome, "reason", None) for outcome in found.outcomes]
    assert reasons == ["HTTP 500"] * 19 + [None] + ["HTTP 500"] * 19 + ["HTTP 400"] * 5 + [None]


def test_a_server_without_schemas_is_asked_without_from_then_on(llm):
    llm.refuses = ("response_format",)
    llm.reply_of = lambda body: 'Sure: {"theme": "t"}'
    found = talk(llm, request("S"), request("T"))
    assert [parse_object(outcome.text, SCHEMA) for outcome in found.outcomes] == [{"theme": "t"}] * 2
    assert ["response_format" in body for body in llm.bodies] == [True, False, False]


def test_one_request_that_is_too_long_does_not_end_the_schemas(llm):
    llm.modes = iter(["400", "400"])
    found = talk(llm, request("S"), request("T"), request("U"))
    assert found.outcomes[0].reason == "HTTP 400"
    assert ["response_format" in body for body in llm.bodies] == [True, False, True, True]


def test_once_a_schema_was_taken_a_refusal_is_the_requests(llm):
    llm.modes = iter([None, "400"])
    assert talk(llm, request("S"), request("T")).outcomes[1].reason == "HTTP 400"
    assert len(llm.bodies) == 2


def test_models_that_want_max_completion_tokens_get_them(llm):
    llm.refuses = ("max_tokens", "response_format")
    found = talk(llm, request("S"), request("T"))
    assert [outcome.finish for outcome in found.outcomes] == ["stop"] * 2
    assert len(llm.bodies) == 4
    assert llm.bodies[3]["max_completion_tokens"] == 64
    assert not {"max_tokens", "response_format"} & set(llm.bodies[3])


def test_never_more_requests_at_a_time_than_asked_for(llm):
    llm.seconds = 0.05
    given = options(llm, concurrency=3)

    async def all_at_once():
        async with Chat(given.server(), given, Usage()) as ask:
            await asyncio.gather(*(ask(request(f"S{i}")) for i in range(10)))

    asyncio.run(all_at_once())
    assert llm.most_at_once == 3


def test_a_model_that_repeats_the_key_is_not_heard_but_a_placeholder_is_a_word(llm):
    llm.reply_of = lambda body: f"your key is {KEY}, EMPTY"
    assert talk(llm, api_key=KEY).outcomes[0].text == "your key is [key], EMPTY"
    llm.answer = lambda body, mode: (
        200,
        {},
        {"choices": [{"message": {"content": ""}, "finish_reason": KEY + "!" * 99}]},
    )
    assert talk(llm, api_key=KEY).outcomes[0].finish == "[key]" + "!" * 35
    del llm.answer
    assert talk(llm, api_key="EMPTY").outcomes[0].text == f"your key is {KEY}, EMPTY"


def test_every_refusal_of_the_server_is_tested():
    assert set(REFUSALS) == {*PASSING, "400", "quota"} - {"time-out", "dripping", "dropped"}
