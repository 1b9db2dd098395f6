"""Chat completions, received one by one or as lines of a batch, as a reply or a failed request."""

import json
import re
from collections.abc import Mapping
from typing import Any

from narrlit.errors import NarrlitError
from narrlit.llm.cache import Reply

OPTIONAL_PARAMETERS = ("temperature", "top_p", "seed", "response_format")
"""Parameters of a request that some models or servers refuse; requests are then sent without them."""


class RequestFailed(NarrlitError):  # noqa: N818 (a result rather than an error: the item continues without it)
    """Request without an answer after all retries; `refused` is the parameter that the server refuses, if any."""

    def __init__(self, reason: str, refused: str | None = None) -> None:
        super().__init__("request_failed", reason=reason)
        self.reason, self.refused = reason, refused


def reply_of(completion: Any) -> Reply:
    """Read a chat completion, as the SDK returns it; raise RequestFailed if it is malformed."""
    try:
        choice, usage = completion.choices[0], completion.usage
        text, finish = choice.message.content or "", choice.finish_reason
        refusal = getattr(choice.message, "refusal", None)
        if refusal:
            text, finish = refusal, "refusal"
        prompt_tokens = completion_tokens = 0
        if usage:
            prompt_tokens, completion_tokens = usage.prompt_tokens or 0, usage.completion_tokens or 0
    except (AttributeError, IndexError, TypeError):
        raise RequestFailed("malformed answer") from None
    are_numbers = isinstance(prompt_tokens, int) and isinstance(completion_tokens, int)
    if not isinstance(finish, str | None) or not are_numbers:
        raise RequestFailed("malformed answer")
    return Reply(str(text), finish, prompt_tokens, completion_tokens)


def refused_parameter(status: int, message: str, body: dict[str, object]) -> str | None:
    """Find the parameter that a server refuses, from the message of an HTTP 400 or 422.

    >>> refused_parameter(400, "Unsupported value: 'temperature' does not support 0.8", {"temperature": 0.8})
    'temperature'
    """
    if status not in (400, 422):
        return None
    if "max_tokens" in body and "max_completion_tokens" in message and "instead" in message:
        return "max_tokens"
    for name in OPTIONAL_PARAMETERS:
        if name in body and re.search(rf"\b{name}\b", message):
            return name
    if "response_format" in body and re.search(r"json.?schema|guided|grammar", message, re.IGNORECASE):
        return "response_format"
    return None


def batch_result(line: str, bodies: Mapping[str, dict[str, object]]) -> tuple[str, Reply | RequestFailed]:
    """Read one line of a batch's output or error file.

    Args:
        line: the line, a JSON object.
        bodies: bodies of the requests, by key.

    Raises:
        ValueError: if the line is broken: truncated, not JSON, or without a required field.
    """
    try:
        content = json.loads(line)
        key = str(content["custom_id"])
        return key, _line_result(content, bodies.get(key, {}))
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError("broken line") from error


def _line_result(line: dict[str, Any], body: dict[str, object]) -> Reply | RequestFailed:
    """Read a parsed line: the answer to the request with this body, or an error."""
    from openai.types.chat import ChatCompletion

    response = line.get("response") or {}
    status, content = response.get("status_code"), response.get("body") or {}
    if status is None:
        return RequestFailed(str((line.get("error") or {}).get("code", "no answer")))
    if status != 200:
        return RequestFailed(f"HTTP {status}", refused_parameter(status, json.dumps(content), body))
    try:
        return reply_of(ChatCompletion.model_construct(None, **content))
    except RequestFailed as failure:
        return failure
