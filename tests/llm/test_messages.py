"""Requests' keys: all that decides an answer is in them, and nothing else."""

import json
from dataclasses import replace

import pytest
from llm_jobs import PROMPT, SCHEMA, request

from narrlit.llm.messages import Request, RequestFailed, Sampling

CHANGES = {
    "prompt": replace(PROMPT, text="Another", digest="0" * 64),
    "content": '{"story": "another"}',
    "sampling": Sampling(max_tokens=64, seed=43),
    "schema": None,
    "attempt": 1,
}


@pytest.mark.parametrize("field", CHANGES)
def test_each_field_changes_the_key(field):
    assert replace(request(), **{field: CHANGES[field]}).key("tiny") != request().key("tiny")


@pytest.mark.parametrize("parameter", [{"max_tokens": 65}, {"temperature": 0.0}, {"top_p": 0.9}, {"seed": None}])
def test_each_parameter_changes_the_key(parameter):
    assert request(**parameter).key("tiny") != request().key("tiny")


def test_the_model_changes_the_key_but_neither_the_prompts_name_nor_the_order_of_a_schemas_keys():
    assert request().key("other") != request().key("tiny")
    renamed = replace(request(), prompt=replace(PROMPT, name="else"), schema=dict(reversed(SCHEMA.items())))
    assert renamed.key("tiny") == request().key("tiny")


def test_a_key_stays_the_same_from_release_to_release_as_logs_outlive_them():
    assert request().key("tiny") == "c81a98a1c2fb3dbd3bb4683e988d4d950a5c82ee32c3e7633859820af41bc506"


def test_half_a_surrogate_pair_has_a_key():
    assert len(Request(PROMPT, "\ud800").key("tiny")) == 64


def test_parameters_that_are_left_out():
    left = Sampling(64, 0.8, 0.9, 42).without(["temperature", "seed"])
    assert left == Sampling(64, None, 0.9, None)


def test_a_failure_tells_its_reason_alone_and_with_the_servers_words():
    failed = RequestFailed("HTTP 500", "out of memory")
    assert (failed.reason, str(failed)) == ("HTTP 500", "HTTP 500: out of memory")
    assert str(RequestFailed("time-out")) == "time-out"


def test_a_described_request_is_plain_data_without_the_prompts_text():
    described = request("S").described("tiny")
    assert json.loads(json.dumps(described)) == described
    assert PROMPT.text not in json.dumps(described)
    assert described["prompt"] == PROMPT.digest
