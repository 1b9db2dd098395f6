"""Requests that the OpenAPI document describes, and others like them, are never a fault of the server."""

import shutil

import httpx
import hypothesis
import pytest
from servers import running_server

schemathesis = pytest.importorskip("schemathesis")
EXAMPLES = 15
"""Requests of each route."""


@pytest.fixture(scope="module")
def server(tmp_path_factory, served_encoder, tales_index):
    data = tmp_path_factory.mktemp("data")
    shutil.copytree(tales_index, data / "collections" / "own")
    with running_server(data, served_encoder, model="minilm", indexes=(tales_index,)) as server:
        yield server


def test_the_document_describes_every_route(server):
    document = httpx.get(f"{server.url}/openapi.json").json()
    routes = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert ("POST", "/v1/embeddings") in routes
    assert ("POST", "/imports") in routes
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            assert "422" not in operation["responses"], (method, path)


@pytest.mark.slow
@pytest.mark.long
def test_no_request_from_the_document_is_a_fault(server):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried = []
    for found in schema.get_all_operations():
        operation = found.ok()

        @hypothesis.settings(max_examples=EXAMPLES, suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(case=operation.as_strategy())
        def is_answered(case):
            answer = case.call(timeout=120)
            assert answer.status_code < 500, (case.method, case.path, answer.status_code, answer.text[:500])

        is_answered()
        tried.append(operation.label)

    assert len(tried) >= 20
    assert httpx.get(f"{server.url}/health").status_code == 200
