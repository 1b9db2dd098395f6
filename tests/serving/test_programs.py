"""The API for programs, by the clients that people use."""

import asyncio
import base64
import json
import re
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
from servers import client_of, running_server

import narrlit
from narrlit.serving.encoders import SharedEncoder

TEXTS = ["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."]


@pytest.fixture(scope="module")
def server(tmp_path_factory, served_encoder):
    with running_server(tmp_path_factory.mktemp("data"), served_encoder, model="minilm") as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server.url) as client:
        yield client


def test_the_openai_client_gets_the_vectors_of_embed(server, served_encoder):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")

    answer = client.embeddings.create(input=TEXTS, model="minilm")
    as_numbers = client.embeddings.create(input=TEXTS[0], model="minilm", encoding_format="float")

    expected = narrlit.embed(TEXTS, served_encoder)
    assert np.abs(np.array([each.embedding for each in answer.data]) - expected).max() < 1e-6
    assert np.abs(np.array(as_numbers.data[0].embedding) - expected[0]).max() < 1e-6
    assert [each.index for each in answer.data] == [0, 1, 2]
    assert answer.usage.total_tokens == 15
    assert [model.id for model in client.models.list()] == ["minilm"]


def test_the_model_is_loaded_as_the_settings_say(tmp_path, served_encoder):
    encoder = narrlit.load("minilm", max_length=8, long="truncate")
    text = "A knight seeks a grail for years, loses all he owns, and finds it at home."
    with running_server(tmp_path, model="minilm", loading=encoder.loading) as server:
        answer = httpx.post(f"{server.url}/v1/embeddings", json={"input": text}, timeout=120).json()

    vector = np.array(answer["data"][0]["embedding"])
    assert np.abs(vector - encoder.embed([text])[0]).max() < 1e-6
    assert np.abs(vector - served_encoder.embed([text])[0]).max() > 1e-3


def test_an_openai_client_of_another_model_is_told_the_name(server):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    with pytest.raises(openai.NotFoundError, match="name minilm"):
        client.embeddings.create(input=TEXTS, model="text-embedding-3-small")
    with pytest.raises(openai.BadRequestError, match="dimension"):
        client.embeddings.create(input=TEXTS, model="minilm", dimensions=32)


def test_base64_is_little_endian_float32(client, served_encoder):
    answer = client.post("/v1/embeddings", json={"input": TEXTS[0], "encoding_format": "base64"}).json()
    vector = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), "<f4")
    assert np.abs(vector - narrlit.embed(TEXTS[:1], served_encoder)[0]).max() < 1e-6


def test_similarity_is_that_of_the_library(client, served_encoder):
    expected = narrlit.similarity(TEXTS, served_encoder)
    among = client.post("/v1/similarity", json={"texts": TEXTS}).json()
    with_others = client.post("/v1/similarity", json={"texts": TEXTS[:1], "others": TEXTS[1:]}).json()

    assert np.allclose(among["similarities"], expected, atol=1e-6)
    assert np.allclose(with_others["similarities"], expected[:1, 1:], atol=1e-6)


def test_the_page_shows_what_the_server_answers(tmp_path):
    page = (Path(__file__).parents[2] / "docs/server.md").read_text(encoding="utf-8")
    code, output = re.search(r"```bash\n(curl .*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    requests = re.findall(r"curl \S+8000(/\S+) \\\n +--json '(.*)'", code)
    shown, rest = [], output
    while rest.strip():
        answer, end = json.JSONDecoder().raw_decode(rest.strip())
        shown, rest = [*shown, answer], rest.strip()[end:]

    with running_server(tmp_path, SharedEncoder("narrlit-mini"), model="narrlit-mini") as server:
        similarity, ranking = (httpx.post(server.url + path, json=json.loads(body)).json() for path, body in requests)

    # Float32: other machines sum in another order.
    assert np.allclose(similarity.pop("similarities"), shown[0].pop("similarities"), atol=1e-5)
    scores, expected = ([each.pop("relevance_score") for each in found["results"]] for found in (ranking, shown[1]))
    assert np.allclose(scores, expected, atol=1e-5)
    assert similarity == shown[0]
    assert {**ranking, "id": ""} == {**shown[1], "id": ""}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_rerank_puts_the_most_similar_document_first(client, version):
    body = {"query": TEXTS[0], "documents": [TEXTS[2], {"text": TEXTS[1]}], "return_documents": True}
    answer = client.post(f"/{version}/rerank", json=body).json()

    assert [result["index"] for result in answer["results"]] == [1, 0]
    assert answer["results"][0]["document"] == {"text": TEXTS[1]}
    assert answer["results"][0]["relevance_score"] > answer["results"][1]["relevance_score"]

    best = client.post(f"/{version}/rerank", json={**body, "top_n": 1, "return_documents": False}).json()
    assert [result["document"] for result in best["results"]] == [None]


@pytest.mark.parametrize(
    ("path", "body", "parameter"),
    [
        ("/v1/embeddings", {"input": []}, "input"),
        ("/v1/embeddings", {"input": ["a story", "  "]}, "input"),
        ("/v1/embeddings", {"input": [[1, 2]]}, "input"),
        ("/v1/embeddings", {"input": ["story"] * 2049}, "input"),
        ("/v1/embeddings", {"input": "x" * 500_001}, "input"),
        ("/v1/embeddings", {"input": "x", "encoding_format": "hex"}, "encoding_format"),
        ("/v1/similarity", {"texts": []}, "texts"),
        ("/v1/rerank", {"query": "x", "documents": ["y"], "top_n": 0}, "top_n"),
        ("/v1/embeddings", {"input": ["cut \ud83d"]}, "input"),
        ("/v1/similarity", {"texts": ["x"], "others": ["\udfff"]}, "others"),
        ("/v1/rerank", {"query": "x", "documents": [{"text": "\ud83d"}]}, "documents"),
    ],
)
def test_invalid_requests_name_the_field(client, path, body, parameter):
    answer = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["parameter"] == error["param"] == parameter
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("path", "body", "optional"),
    [
        ("/v1/embeddings", {"input": "a fox"}, ["model", "encoding_format", "dimensions", "user"]),
        ("/v1/similarity", {"texts": ["a fox", "a hen"]}, ["others", "model"]),
        ("/v1/rerank", {"query": "a fox", "documents": ["a hen"]}, ["model", "top_n", "return_documents"]),
    ],
)
def test_null_stands_for_the_default_of_a_field(client, path, body, optional):
    answers = [client.post(path, json={**body, **dict.fromkeys(fields)}).json() for fields in ([], optional)]
    for answer in answers:
        answer.pop("id", None)
    assert answers[0] == answers[1]
    assert "error" not in answers[0]


def test_the_dimension_of_the_model_may_be_named(client):
    answer = client.post("/v1/embeddings", json={"input": "a fox", "dimensions": 384}).json()
    assert len(answer["data"][0]["embedding"]) == 384


@pytest.mark.parametrize(
    ("content", "kind", "remedy"),
    [
        ('{"input":', "application/json", "the body is no JSON"),
        ('{"input": "a fox"}', "application/x-www-form-urlencoded", "Content-Type: application/json"),
    ],
)
def test_a_body_that_is_no_json_is_refused_with_what_to_do(client, content, kind, remedy):
    answer = client.post("/v1/embeddings", content=content, headers={"content-type": kind})
    assert answer.status_code == 400
    assert remedy in answer.json()["error"]["message"]
    assert answer.json()["error"]["parameter"] is None


def test_programs_that_watch_the_server_ask_for_the_head_alone(client):
    answer = client.head("/health")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]])
def test_numbers_of_tokens_are_refused_with_what_langchain_needs(client, tokens):
    error = client.post("/v1/embeddings", json={"input": tokens}).json()["error"]
    assert error["message"] == (
        "input: numbers of tokens are not supported; send texts (LangChain: check_embedding_ctx_length=False)"
    )


def test_an_unknown_path_or_method_answers_as_every_error(client):
    assert client.get("/nothing").json()["error"]["message"] == "Not Found"
    assert client.get("/v1/embeddings").status_code == 405
    assert client.get("/v1/embeddings").json()["error"]["message"] == "Method Not Allowed"


def test_health_metrics_and_openapi(client):
    assert client.get("/health").json() == {"status": "ok", "model": "minilm", "version": narrlit.__version__}
    client.post("/v1/embeddings", json={"input": TEXTS})
    metrics = client.get("/metrics").text
    assert 'narrlit_requests_total{method="POST",route="/v1/embeddings",status="200"}' in metrics
    assert "narrlit_waiting_texts 0.0" in metrics
    assert {"/v1/embeddings", "/v1/similarity", "/v1/rerank", "/v2/rerank"} <= client.get("/openapi.json").json()[
        "paths"
    ].keys()


def test_requests_at_once_get_the_vectors_of_their_own_texts(settings, served_encoder):
    texts = [f"A story about {number} kings." for number in range(40)]
    expected = narrlit.embed(texts, served_encoder)

    async def ask():
        async with client_of(settings, served_encoder) as client:
            requests = [client.post("/v1/embeddings", json={"input": text}) for text in texts]
            return await asyncio.gather(*requests)

    answers = asyncio.run(ask())
    vectors = [answer.json()["data"][0]["embedding"] for answer in answers]
    assert np.abs(np.array(vectors) - expected).max() < 1e-6
