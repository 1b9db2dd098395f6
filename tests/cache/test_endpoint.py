"""Vectors of a real server on loopback: in order, checked, and each refusal told in a line without the key."""

import dataclasses
import itertools
import os
import signal
import socket
import threading
import traceback

import numpy as np
import pytest
from embedding_server import (
    Refusal,
    drop_one,
    embedding_server,
    hashed_vector,
    one_shorter,
    out_of_order,
    repeat_an_index,
    shorter_later,
    with_number,
    without_index,
)

from narrlit.errors import ModelError, OptionError
from narrlit.stores.endpoint import Endpoint, EndpointOptions

TEXTS = [f"story {i}" for i in range(23)]
KEY = "sk-Tr0ub4dor-and-3"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Hardly any wait between tries, no key and no proxy from outside."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server():
    with embedding_server() as running:
        yield running


def endpoint(server, **options):
    return Endpoint(server.url, "served", EndpointOptions(**{"batch": 4, "retries": 2, **options}))


def expected(texts):
    return np.array([hashed_vector(text) for text in texts], dtype=np.float32)


def refusal_of(server, **options):
    """The one line of the error that embedding gives."""
    with pytest.raises(ModelError) as caught:
        endpoint(server, **options)(TEXTS)
    message = str(caught.value)
    assert "\n" not in message
    assert server.url in message
    assert "served" in message
    return message


def test_vectors_come_in_the_texts_order_over_many_requests_and_calls(server):
    embed = endpoint(server, concurrency=3)
    for texts in (TEXTS, TEXTS[::-1], TEXTS[:1], TEXTS):  # an event loop a call
        found = embed(texts)
        assert found.dtype == np.float32
        assert np.array_equal(found, expected(texts))
    assert embed.dimension == 6
    sent = [request.body["input"] for request in server.requests[:6]]
    assert sorted(sent) == sorted(TEXTS[i : i + 4] for i in range(0, 23, 4))


def test_no_text_asks_nothing(server):
    embed = endpoint(server)
    assert embed([]).shape == (0, 0)
    embed(TEXTS[:1])
    assert embed([]).shape == (0, 6)
    assert len(server.requests) == 1


def test_what_is_asked_is_what_the_options_say(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    options = {"served_model": "other", "api_key_variable": "MY_KEY", "parameters": {"truncate_prompt_tokens": 9}}
    endpoint(server, **options)(TEXTS[:2])
    (request,) = server.requests
    assert request.body == {
        "model": "other",
        "input": TEXTS[:2],
        "encoding_format": "float",
        "truncate_prompt_tokens": 9,
    }
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_without_a_key_a_placeholder_is_sent(server):
    endpoint(server)(TEXTS[:2])
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_progress_counts_each_text_once(server):
    done = []
    endpoint(server)(TEXTS, on_done=done.append)
    assert sorted(done) == [3, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_as_many_requests_at_a_time_as_allowed_and_no_more(server, concurrency):
    together, more = threading.Barrier(concurrency, timeout=20), threading.Event()

    def wait(server, number):
        if server.at_once > concurrency:
            more.set()
        together.wait()  # broken, and the test with it, if fewer are ever sent together
        more.wait(0.05)  # time for one too many to arrive

    server.on_request = wait
    texts = [f"text {i}" for i in range(6)]  # a multiple of the barrier's parties
    endpoint(server, batch=1, concurrency=concurrency, retries=0)(texts)
    assert server.most_at_once == concurrency


def test_answers_out_of_order_are_put_in_order(server):
    server.alter = out_of_order
    assert np.array_equal(endpoint(server)(TEXTS), expected(TEXTS))


@pytest.mark.parametrize(
    ("alter", "complaint"),
    [
        (drop_one, "answered 3 vectors for 4 texts"),
        (lambda entries, _: [*entries, entries[0]], "answered 5 vectors for 4 texts"),
        (repeat_an_index, "index fields are not 0 to 3, each once"),
        (without_index, "index fields are not 0 to 3, each once"),
        (with_number(float("nan")), "vector 3 holds numbers that are not finite"),
        (with_number(float("inf")), "vector 3 holds numbers that are not finite"),
        (with_number(1e300), "vector 3 holds numbers that are not finite"),
        (with_number(10**400), "vector 3 is no list of numbers"),
        (with_number(None), "vector 3 holds numbers that are not finite"),
        (with_number([1.0]), "vector 3 is no list of numbers"),
        (lambda entries, _: [{**entry, "embedding": "AACAPw=="} for entry in entries], "vector 0 is no list"),
        (lambda entries, _: [{**entry, "embedding": []} for entry in entries], "vector 0 is no list of numbers"),
        (one_shorter, r"vectors of 6 and of 5 numbers \(vector 3\)"),
        (lambda entries, _: "none", "without a list of embeddings"),
        (lambda entries, _: entries[0]["embedding"], "without a list of embeddings"),
    ],
)
def test_an_answer_that_cannot_be_the_texts_vectors_is_refused(server, alter, complaint):
    server.alter = alter
    with pytest.raises(ModelError, match=complaint) as caught:
        endpoint(server, concurrency=1)(TEXTS[:4])
    assert f"{server.url} (served)" in str(caught.value)
    assert len(server.requests) == 1  # no second try: the server is wrong, not busy


def test_a_broken_vector_is_named_by_its_text(server):
    bad = with_number(float("nan"))
    server.alter = lambda entries, number: bad(entries, number) if number == 2 else entries
    with pytest.raises(ModelError, match="vector 11 holds"):
        endpoint(server, concurrency=1)(TEXTS)


def test_another_dimension_later_is_refused(server):
    server.alter = shorter_later
    with pytest.raises(ModelError, match="vectors of 5 numbers, earlier ones had 6"):
        endpoint(server, concurrency=1)(TEXTS)


def test_another_dimension_in_another_call_is_refused(server):
    server.alter = shorter_later
    embed = endpoint(server)
    embed(TEXTS[:4])
    with pytest.raises(ModelError, match="vectors of 5 numbers, earlier ones had 6"):
        embed(TEXTS[:4])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_server_that_is_busy_for_a_while_is_asked_again(server, status):
    busy = Refusal(status, {"error": {"message": "busy"}}, (("Retry-After", "0"),))
    server.refusals = iter([busy, busy])
    assert np.array_equal(endpoint(server)(TEXTS[:4]), expected(TEXTS[:4]))
    assert len(server.requests) == 3


def test_a_server_that_says_how_long_to_wait_is_obeyed(server, monkeypatch):
    waits = []

    async def note(seconds):
        waits.append(seconds)

    monkeypatch.setattr("openai._base_client.anyio.sleep", note)
    server.refusals = iter([Refusal(429, "", (("Retry-After", "7"),))])
    endpoint(server)(TEXTS[:4])
    assert waits == [7]


@pytest.mark.parametrize(
    ("refusal", "said", "hint", "tries"),
    [
        (Refusal(500, {"error": {"message": "CUDA out\nof memory"}}), "HTTP 500, CUDA out of memory", "log", 3),
        (Refusal(429, {"message": "slowly"}), "HTTP 429, slowly", "vectors.endpoint.concurrency", 3),
        (Refusal(401, {"error": {"message": "no key"}}), "HTTP 401, no key", "variable OPENAI_API_KEY", 1),
        (Refusal(403, {"detail": "not you"}), "HTTP 403, not you", "variable OPENAI_API_KEY", 1),
        (Refusal(400, {"error": "too long"}), "HTTP 400, too long", "truncate_prompt_tokens", 1),
        (Refusal(400, "<html>No</html>"), "HTTP 400, <html>No</html>", "truncate_prompt_tokens", 1),
        (Refusal(418, {}), "HTTP 418, without a word", "log", 1),
        (Refusal(404, {"message": "no model"}), "HTTP 404, no model", "the model is served, but not for embed", 1),
        (Refusal(200, "{broken"), "broken JSON", "proxy", 1),
    ],
)
def test_a_refusal_says_what_was_said_and_what_to_do(server, refusal, said, hint, tries):
    server.refusals = itertools.repeat(refusal)
    message = refusal_of(server, concurrency=1)
    assert said in message
    assert hint in message
    assert len(server.requests) == tries


def test_long_words_of_a_server_are_shortened(server):
    server.refusals = itertools.repeat(Refusal(400, {"error": {"message": "too long " * 1000}}))
    message = refusal_of(server)
    assert "too long too long" in message
    assert 200 < len(message) < 450


def test_an_unknown_model_is_told_with_those_that_are_served(server):
    server.refusals = itertools.repeat(Refusal(404, {"message": "The model `served` does not exist."}))
    server.models = ("one", "two")
    message = refusal_of(server)
    assert "the models there are one, two: name one in vectors.endpoint.served_model" in message


def test_a_wrong_path_is_told(server):
    server.url = server.url.removesuffix("/v1")
    message = refusal_of(server)
    assert "HTTP 404, Not Found" in message
    assert "should end in /v1" in message
    assert not server.requests


def test_no_server_there_is_told_with_how_to_start_one(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        server.url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        message = refusal_of(server, retries=1)
    assert "connect" in message.lower()
    assert "vllm serve served --runner pooling" in message


def test_a_server_that_does_not_answer_in_time_is_told(server):
    released = threading.Event()
    server.on_request = lambda server, number: released.wait(20)
    message = refusal_of(server, timeout=0.05, retries=1, batch=64)
    released.set()
    assert "no answer within 0.05 seconds" in message
    assert len(server.requests) == 2


def test_after_a_failure_nothing_more_is_asked_or_waited_for(server):
    released = threading.Event()
    server.refusals = iter([Refusal(400, "no")])
    server.on_request = lambda server, number: number > 0 and released.wait(20)
    refusal_of(server, batch=1, concurrency=2)
    assert not released.is_set()
    assert len(server.requests) <= 2
    released.set()


def test_ctrl_c_ends_a_call_that_waits(server, request):
    # A shell that starts the tests in the background has them take no notice of Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    released = threading.Event()

    def interrupt(server, number):
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(20)

    server.on_request = interrupt
    with pytest.raises(KeyboardInterrupt):
        endpoint(server, batch=64)(TEXTS)
    assert not released.is_set()
    assert server.at_once == 1  # it ended while the server was still at work
    released.set()


@pytest.mark.parametrize("status", [401, 404, 500])
def test_the_key_shows_nowhere(server, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.refusals = itertools.repeat(Refusal(status, {"error": {"message": f"wrong key: {KEY}, {KEY}"}}))
    server.models = (KEY,)
    embed = endpoint(server, retries=0)
    with pytest.raises(ModelError) as caught:
        embed(TEXTS)
    shown = [str(caught.value), *traceback.format_exception(caught.value)]
    shown += [repr(embed), repr(vars(embed)), repr(embed.options), repr(dataclasses.asdict(embed.options))]
    assert "wrong key: [key], [key]" in shown[0]
    assert KEY not in "".join(shown)


def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(server, monkeypatch):
    for broken in (f"{KEY} x", f"{KEY}ß", f"{KEY}\n{KEY}"):
        monkeypatch.setenv("OPENAI_API_KEY", broken)
        with pytest.raises(OptionError, match="OPENAI_API_KEY") as caught:
            endpoint(server)(TEXTS)
        assert KEY not in "".join(traceback.format_exception(caught.value))
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")  # as files hold it
    endpoint(server)(TEXTS[:1])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch", 0),
        ("concurrency", 0),
        ("retries", -1),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("timeout", float("inf")),
        ("api_key_variable", ""),
        ("api_key_variable", KEY),
        ("api_key_variable", "hf_abcdef"),
        ("served_model", " "),
        ("parameters", {"input": []}),
        ("parameters", {"model": "m"}),
        ("parameters", {"encoding_format": "base64"}),
        ("parameters", {"x": {1}}),
        ("parameters", {"x": float("nan")}),
    ],
)
def test_options_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(OptionError, match=rf"vectors\.endpoint\.{field}") as caught:
        EndpointOptions(**{field: value})
    if field == "api_key_variable" and value:
        assert value not in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:8000", "file:///etc/passwd", "http://", "http://[", "http:///v1"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(OptionError, match="http://"):
        Endpoint(url, "m", EndpointOptions())


@pytest.mark.parametrize("url", [f"http://me:{KEY}@host/v1", f"http://{KEY}@host/v1", f"http://host/v1?key={KEY}"])
def test_a_url_with_a_secret_is_refused_without_showing_it(url):
    with pytest.raises(OptionError, match="host") as caught:
        Endpoint(url, "m", EndpointOptions())
    assert KEY not in str(caught.value)


def test_a_slash_at_the_url_s_end_changes_nothing(server):
    server.url += "/"
    assert np.array_equal(endpoint(server)(TEXTS[:2]), expected(TEXTS[:2]))
