"""Embeddings of a server with OpenAI's interface: order, repeated requests, refusals in one line without the key."""

import asyncio
import itertools
import os
import signal
import socket
import threading
import time
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
from hostile_server import REPLIES, hostile_server
from refusals import refused

from narrlit.embedding_cache.server import EmbeddingServer, ServerOptions
from narrlit.errors import ModelError, OptionError

TEXTS = [f"story number {i}" for i in range(10)]
KEY = "sk-abcDEF123456"


def expected(texts=TEXTS):
    return np.array([hashed_vector(text) for text in texts], dtype=np.float32)


@pytest.fixture
def server(monkeypatch):
    for name in ("OPENAI_API_KEY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.002)
    with embedding_server() as running:
        yield running


def client(server, **options):
    settings = {"batch_size": 4, "concurrency": 3, "max_retries": 2, "timeout": 20, "model": "served", **options}
    return EmbeddingServer(server.url + "/", "model", ServerOptions(**settings))


def refusal_of(server, **options):
    with pytest.raises(ModelError) as caught:
        client(server, **options).embed(TEXTS)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("alter", [lambda entries, number: entries, out_of_order])
@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_embeddings_come_in_the_order_of_the_texts(server, alter, batch_size):
    server.alter = alter
    found = client(server, batch_size=batch_size, parameters={"dimensions": 6}).embed(TEXTS)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected())
    assert sorted(text for request in server.requests for text in request.body["input"]) == sorted(TEXTS)

    for request in server.requests:
        assert len(request.body["input"]) <= batch_size
        own = {name: value for name, value in request.body.items() if name != "input"}
        assert own == {"model": "served", "encoding_format": "float", "dimensions": 6}


def test_requests_are_sent_at_once_up_to_a_limit(server):
    together = threading.Barrier(3)
    server.on_request = lambda server, number: together.wait(20)
    assert np.array_equal(client(server, batch_size=1, concurrency=3).embed(TEXTS[:9]), expected(TEXTS[:9]))
    assert server.most_at_once == 3


@pytest.mark.parametrize(
    ("alter", "words"),
    [
        (drop_one, "an answer does not have one embedding with each index"),
        (repeat_an_index, "an answer does not have one embedding with each index"),
        (without_index, "an answer does not have one embedding with each index"),
        (lambda entries, number: None, "an answer does not have one embedding with each index"),
        (one_shorter, "of the same length"),
        (shorter_later, "of the same length"),
        (with_number(float("nan")), "NaN or infinity"),
        (with_number(1e300), "NaN or infinity"),
        (with_number("x"), "of the same length"),
    ],
)
def test_answers_that_do_not_fit_are_refused(server, alter, words):
    server.alter = alter
    assert words in refusal_of(server)


@pytest.mark.parametrize(
    ("refusal", "words", "requests"),
    [
        (Refusal(500, {"error": {"message": "CUDA out\nof memory"}}), ("HTTP 500", "CUDA out", "log"), 3),
        (Refusal(429, {"message": "slowly"}), ("HTTP 429", "slowly", "embeddings.server.concurrency"), 3),
        (Refusal(401, {"error": {"message": "no key"}}), ("HTTP 401", "no key", "variable OPENAI_API_KEY"), 1),
        (Refusal(403, {"detail": "not you"}), ("HTTP 403", "not you", "variable OPENAI_API_KEY"), 1),
        (Refusal(400, {"error": "too long"}), ("HTTP 400", "too long", "truncate_prompt_tokens"), 1),
        (Refusal(418, {}), ("HTTP 418", "log"), 1),
        (Refusal(404, {"message": "no model"}), ("HTTP 404", "served, but not for this"), 1),
        (Refusal(200, "{broken"), ("served",), 1),
    ],
)
def test_a_refusal_quotes_the_answer_and_names_a_remedy(server, refusal, words, requests):
    server.refusals = itertools.repeat(refusal)
    message = refusal_of(server, concurrency=1, batch_size=64)
    assert all(word in message for word in words), message
    assert len(server.requests) == requests


def test_an_unknown_model_and_a_wrong_path_are_named(server):
    server.refusals = itertools.repeat(Refusal(404, {"message": "The model `served` does not exist."}))
    server.models = ("one", "two")
    assert "it serves one, two: name one with `embeddings.server.model`" in refusal_of(server)
    server.url = server.url.removesuffix("/v1")
    assert "does the URL end in /v1" in refusal_of(server)


def test_a_missing_server_is_reported_with_how_to_start_one(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        server.url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        assert "vllm serve served --runner pooling" in refusal_of(server, max_retries=1)


def test_a_server_that_does_not_answer_in_time_is_reported(server):
    released = threading.Event()
    server.on_request = lambda server, number: released.wait(20)
    message = refusal_of(server, timeout=0.5, max_retries=1, batch_size=64)
    released.set()

    assert "no answer in time" in message
    assert len(server.requests) == 2


def test_after_a_failure_nothing_more_is_requested(server):
    server.refusals = iter([Refusal(400, "no")])
    refusal_of(server, batch_size=1, concurrency=2)
    assert len(server.requests) <= 5


def test_ctrl_c_ends_a_call(server, request):
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    released = threading.Event()

    def interrupt(server, number):
        time.sleep(0.5)  # the caller waits by now: a signal just before it begins to wait would not wake it
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(20)

    server.on_request = interrupt

    with pytest.raises(KeyboardInterrupt):
        client(server, batch_size=1, concurrency=1).embed(TEXTS)
    assert server.at_once == 1  # it ended while the server was still at work

    released.set()
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 404, 500])
def test_the_key_is_shown_nowhere(server, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.refusals = itertools.repeat(Refusal(status, {"error": {"message": f"wrong key: {KEY}, {KEY}"}}))
    server.models = (KEY,)
    used = client(server, max_retries=0)

    with pytest.raises(ModelError) as caught:
        used.embed(TEXTS)

    shown = [str(caught.value), *traceback.format_exception(caught.value), repr(vars(used))]
    assert "wrong key: [key], [key]" in shown[0]
    assert KEY not in "".join(shown)


def test_a_key_that_is_invalid_in_a_header_is_refused_without_being_shown(server, monkeypatch):
    for broken in (f"{KEY} x", f"{KEY}ß", f"{KEY}\n{KEY}"):
        monkeypatch.setenv("OPENAI_API_KEY", broken)
        with refused("invalid_key", variable="OPENAI_API_KEY") as caught:
            client(server).embed(TEXTS)
        assert KEY not in "".join(traceback.format_exception(caught.value))

    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")  # as in a file
    client(server).embed(TEXTS[:1])

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_size", 0),
        ("concurrency", 0),
        ("max_retries", -1),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("api_key_variable", KEY),
        ("parameters", {"input": []}),
    ],
)
def test_options_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(OptionError) as caught:
        ServerOptions(**{field: value})
    assert caught.value.options == [f"embeddings.server.{field}"]
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("drip", "no answer in time; raise `embeddings.server.timeout`"),
        ("1 GiB", "the reply has more than"),
        ("deep", "the reply is nested too deeply"),
        ("a little too deep", "the reply is nested too deeply"),
    ],
)
def test_an_endless_reply_costs_one_line(server, reply, words):
    timeout = 0.5 if reply == "drip" else 60
    with hostile_server(REPLIES[reply]) as (server.url, requests):
        assert words in refusal_of(server, timeout=timeout, max_retries=0, batch_size=64)
    assert len(requests) == 1


def test_a_notebook_may_embed_by_a_server(server):
    async def cell():
        return client(server).embed(TEXTS)

    assert np.array_equal(asyncio.run(cell()), expected())
