"""Requests that a server refuses, and that it answers others meanwhile."""

import asyncio
import contextlib
import dataclasses
import re
import resource
from multiprocessing.connection import wait
from pathlib import Path

import httpx
import pytest
from servers import (
    client_of,
    connected_to,
    embedding_request,
    head_of_answer,
    running_server,
    serving_process,
    wait_until,
)

from narrlit.serving.middleware import CONTENT_POLICY
from narrlit.serving.reading_worker import MOST_EXPANDED
from narrlit.serving.settings import Limits

TOKEN = "a long secret"


def answers_of(settings, encoder, *requests, **options):
    """The answers of an application to (method, path, options of httpx), one after the other."""

    async def ask():
        async with client_of(settings, encoder, **options) as client:
            return [await client.request(method, path, **details) for method, path, details in requests]

    return asyncio.run(ask())


def get(path="/v1/models", **headers):
    return "GET", path, {"headers": {name.replace("_", "-"): value for name, value in headers.items()}}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "a@127.0.0.1", ""])
def test_a_foreign_host_is_refused(settings, served_encoder, host):
    [answer] = answers_of(settings, served_encoder, get(Host=host))
    assert answer.status_code == 421
    assert answer.json()["error"]["parameter"] == "Host"


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_the_names_of_loopback_are_answered(settings, served_encoder, host):
    [answer] = answers_of(settings, served_encoder, get(Host=host))
    assert answer.status_code == 200


def test_on_another_address_numbers_are_answered_and_foreign_names_are_not(settings, served_encoder):
    public = dataclasses.replace(settings, host="0.0.0.0", token=TOKEN)
    key = f"Bearer {TOKEN}"
    answers = answers_of(
        public,
        served_encoder,
        get(Host="192.168.1.5:8000", Authorization=key),
        get(Host="evil.example", Authorization=key),
    )
    assert [answer.status_code for answer in answers] == [200, 421]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://evil.example"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(settings, served_encoder, origin, method):
    request = (method, "/v1/embeddings", {"headers": {"Origin": origin}, "json": {"input": "x"}})
    [answer] = answers_of(settings, served_encoder, request)
    assert answer.status_code == 403
    assert answer.json()["error"]["parameter"] == "Origin"
    assert "access-control-allow-origin" not in answer.headers


def test_the_own_origin_is_answered(settings, served_encoder):
    request = ("POST", "/v1/embeddings", {"headers": {"Origin": "http://127.0.0.1"}, "json": {"input": "x"}})
    [answer] = answers_of(settings, served_encoder, request)
    assert answer.status_code == 200


def test_a_cross_site_request_without_origin_is_refused_unless_it_follows_a_link(settings, served_encoder):
    answers = answers_of(
        settings,
        served_encoder,
        get(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors"),
        get(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate"),
    )
    assert [answer.status_code for answer in answers] == [403, 200]


def test_a_missing_or_wrong_token_is_refused(settings, served_encoder):
    secured = dataclasses.replace(settings, token=TOKEN)
    answers = answers_of(
        secured,
        served_encoder,
        get(),
        get(Authorization="Bearer wrong"),
        get(Authorization=f"Basic {TOKEN}"),
        get(Cookie=f"narrlit_token={TOKEN}"),
        get("/v1/models?token=wrong"),
        get(Authorization=f"Bearer {TOKEN}"),
        get("/health"),
    )
    assert [answer.status_code for answer in answers] == [401] * 5 + [200] * 2
    assert TOKEN not in answers[0].text


def test_the_token_in_an_address_becomes_a_cookie(settings, served_encoder):
    secured = dataclasses.replace(settings, token=TOKEN)
    redirected, answered = answers_of(
        secured,
        served_encoder,
        ("GET", "/v1/models", {"params": {"token": TOKEN, "a": "b"}}),
        get(),
    )
    assert (redirected.status_code, redirected.headers["location"]) == (303, "/v1/models?a=b")
    cookie = redirected.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert answered.status_code == 200


def test_every_answer_has_the_content_policy(settings, served_encoder):
    answers = answers_of(settings, served_encoder, get(), get("/nothing"), get(Host="evil.example"))
    for answer in answers:
        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_a_body_above_the_limit_is_refused_by_its_header_and_while_it_arrives(settings, served_encoder):
    small = dataclasses.replace(settings, limits=Limits(body_bytes=1000))

    async def chunks():
        for _ in range(20):
            yield b"x" * 100

    answers = answers_of(
        small,
        served_encoder,
        ("POST", "/v1/embeddings", {"content": b"x" * 1001}),
        ("POST", "/v1/embeddings", {"content": chunks()}),
        ("POST", "/v1/embeddings", {"json": {"input": "x" * 900}}),
    )
    assert [answer.status_code for answer in answers] == [413, 413, 200]
    assert "1,000 bytes" in answers[1].json()["error"]["message"]
    assert [answer.json()["error"]["code"] for answer in answers[:2]] == ["body_too_large"] * 2


def test_a_body_that_does_not_arrive_is_refused(settings, served_encoder):
    async def slow():
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    impatient = dataclasses.replace(settings, limits=Limits(body_seconds=0.1))
    [answer] = answers_of(impatient, served_encoder, ("POST", "/v1/embeddings", {"content": slow()}))
    assert answer.status_code == 408


def test_beyond_the_limits_requests_are_told_to_come_again_and_health_is_answered(settings, served_encoder):
    few = dataclasses.replace(settings, limits=Limits(requests=4))

    async def ask():
        async with client_of(few, served_encoder) as client:
            requests = [client.post("/v1/embeddings", json={"input": f"story {n}"}) for n in range(30)]
            return await asyncio.gather(*requests, client.get("/health"))

    *answers, health = asyncio.run(ask())
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 4
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["code"] == "overloaded"
    assert health.status_code == 200


@contextlib.contextmanager
def few_open_files(number):
    """Processes that are started meanwhile may open this number of files, unless they raise it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.long
@pytest.mark.slow
def test_of_600_requests_at_once_256_are_answered_and_the_others_may_be_repeated(tmp_path):
    request = embedding_request("A knight seeks a grail.")
    with contextlib.ExitStack() as stack:
        with few_open_files(256):
            _, url = stack.enter_context(serving_process(tmp_path / "data"))
        connections = [stack.enter_context(connected_to(url)) for _ in range(600)]
        for connection in connections:
            connection.sendall(request[:-1])  # without its last byte, a request keeps its place

        wait_until(lambda: len(wait(connections, timeout=0)) >= 344, seconds=60)
        health = httpx.get(f"{url}/health", timeout=10)
        refused = set(wait(connections, timeout=0))
        others = [connection for connection in connections if connection not in refused]
        for connection in others:
            connection.sendall(request[-1:])
        refusals = [head_of_answer(connection) for connection in refused]
        answers = [head_of_answer(connection) for connection in others]
        after = httpx.post(f"{url}/v1/embeddings", json={"input": "A diver seeks a pearl."}, timeout=60)

    assert health.status_code == 200
    assert [status for status, _ in refusals] == [503] * 344
    assert all("retry-after: 2" in lines for _, lines in refusals)
    assert [status for status, _ in answers] == [200] * 256
    assert after.status_code == 200


def test_a_request_whose_client_leaves_is_dropped(tmp_path, served_encoder):
    long = "A knight seeks a grail, and loses all he owns. " * 20
    with running_server(tmp_path, served_encoder, model="minilm") as server:
        with connected_to(server.url) as leaving:
            leaving.sendall(embedding_request(*[long] * 300))
            wait_until(lambda: "narrlit_waiting_texts 0.0" not in metrics_of(server))
        left = 'narrlit_requests_total{method="POST",route="/v1/embeddings",status="499"} 1.0'
        wait_until(lambda: left in metrics_of(server), seconds=30)
        wait_until(lambda: "narrlit_waiting_texts 0.0" in metrics_of(server), seconds=30)
        [embedded] = re.findall(r"^narrlit_texts_embedded_total (\S+)", metrics_of(server), re.MULTILINE)
    assert float(embedded) < 300


def metrics_of(server):
    return httpx.get(f"{server.url}/metrics", timeout=60).text


def test_the_limits_are_those_of_the_documentation():
    limits = Limits()
    [texts, bytes_, seconds, waiting] = documented_limits()
    assert texts == f"{limits.texts:,} texts in a request, {limits.characters:,} characters in a text"
    assert bytes_ == f"{limits.body_bytes // 2**20} MB in a body, {limits.upload_bytes // 2**20} MB in an upload"
    assert seconds == f"{limits.body_seconds:g} seconds without a part of the body"
    assert waiting == (
        f"{limits.waiting_texts:,} texts waiting, {limits.requests} requests at once, "
        f"{limits.seconds:g} seconds for an answer"
    )
    security = Path("docs/security.md").read_text(encoding="utf-8")
    assert f"{limits.reading_bytes // 2**30} GB of memory and two minutes for each" in security
    assert limits.reading_seconds == 2 * 60
    assert f"more than {limits.unpacked_bytes // 2**30} GB or {limits.files:,} files" in security
    assert f"documents above {MOST_EXPANDED // 2**20} MB when unpacked" in security


def documented_limits():
    """The first column of the table of limits in docs/server.md."""
    lines = Path("docs/server.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("| limit | refusal |") + 2
    return [line.split("|")[1].strip() for line in lines[start : start + 4]]


def test_an_unforeseen_error_has_no_details(settings, served_encoder, capfd):
    async def ask():
        async with client_of(settings, served_encoder) as client:

            @client.app.get("/fault")
            async def fault():
                raise RuntimeError(f"at {settings.data}")

            return await client.get("/fault")

    answer = asyncio.run(ask())
    assert answer.status_code == 500
    assert str(settings.data) not in answer.text
    assert "content-security-policy" in answer.headers
    assert "RuntimeError: at" in capfd.readouterr().err


def test_a_client_of_another_protocol_is_no_reason_to_stop(settings, served_encoder):
    broken = ("POST", "/v1/embeddings", {"content": b"\xff\xfe{", "headers": {"Content-Type": "application/json"}})
    answer, after = answers_of(settings, served_encoder, broken, get())
    assert answer.status_code == 400
    assert after.status_code == httpx.codes.OK
