"""Chat completions, one at a time and as the lines of a batch."""

import json

import pytest
from openai.types.chat import ChatCompletion
from refusals import refused

from narrlit.llm.cache import Reply
from narrlit.llm.completions import batch_result, refused_parameter, reply_of

BODY = {
    "choices": [{"message": {"content": "A"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2},
}


def completion(**changes):
    return ChatCompletion.model_construct(None, **{**BODY, **changes})


def test_a_reply_has_text_end_and_tokens():
    assert reply_of(completion()) == Reply("A", "stop", 7, 2)

    refusal = [{"message": {"content": "A", "refusal": "No."}, "finish_reason": "stop"}]
    assert reply_of(completion(choices=refusal, usage=None)) == Reply("No.", "refusal", 0, 0)
    for choices in ([], [{}], [{"message": {"content": "A"}, "finish_reason": 3}]):
        with refused("request_failed", reason="malformed answer"):
            reply_of(completion(choices=choices))


@pytest.mark.parametrize(
    ("status", "message", "parameter"),
    [
        (400, "'top_p' is not supported", "top_p"),
        (422, "guided decoding is off", "response_format"),
        (400, "use 'max_completion_tokens' instead", "max_tokens"),
        (400, "the context is too long", None),
        (500, "'top_p' is not supported", None),
    ],
)
def test_a_refused_parameter_is_named_by_the_server(status, message, parameter):
    body = {"top_p": 0.9, "response_format": {}, "max_tokens": 64}
    assert refused_parameter(status, message, body) == parameter
    assert refused_parameter(status, message, {}) is None


def test_a_line_of_a_batch_is_a_reply_or_a_failure():
    def result(response, **fields):
        line = json.dumps({"custom_id": "k", "response": response, **fields})
        return batch_result(line, {"k": {"seed": 42}})

    assert result({"status_code": 200, "body": BODY}) == ("k", Reply("A", "stop", 7, 2))

    key, failure = result({"status_code": 400, "body": {"error": "seed is unknown"}})
    assert key == "k"
    assert failure.reason == "HTTP 400"
    assert failure.refused == "seed"
    assert result(None, error={"code": "batch_expired"})[1].reason == "batch_expired"
    assert result({"status_code": 200, "body": {}})[1].reason == "malformed answer"
    for line in ('{"custom_id": "k", "resp', "[]", "{}"):
        with pytest.raises(ValueError):
            batch_result(line, {})
