"""Requests and replies as chat completions have them: https://platform.openai.com/docs/api-reference/chat."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from narrlit.endpoints.refusals import shown
from narrlit.llm.messages import Reply, Request
from narrlit.llm.retrying import Fault

SHORTEST_KEY = 8
"""Characters: shorter ones, as EMPTY, are placeholders and may be words of a reply."""

LONGEST_CODE = 40
"""Characters of a server's code for why something ended."""


class BrokenAnswer(ValueError):  # noqa: N818 (it says what the answer is)
    """What came back is no chat completion."""


class Dialect:
    """How a server wants to be asked, learned from what it refuses and takes.

    Some refuse a JSON schema: then the reply is plain text, which the parser reads. Some models want
    `max_completion_tokens` in the place of `max_tokens`.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self._limit = "max_tokens"
        self._taken: dict[str, bool] = {}  # schema -> whether the server takes it

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request, as far as is known how the server wants it."""
        sampling = request.sampling
        drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        drawn["seed"] = None if sampling.seed is None else sampling.seed + request.attempt
        body = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": request.prompt.text},
                {"role": "user", "content": request.content},
            ],
            self._limit: sampling.max_tokens,
            **{name: value for name, value in drawn.items() if value is not None},
        }
        if request.schema is not None and self._taken.get(_text(request.schema), True):
            schema = {"name": "reply", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def instead(self, body: dict[str, Any], fault: Fault) -> dict[str, Any] | None:
        """Another body for the same request, where the server refused this one's form; None where it knows the form."""
        if fault.status not in (400, 422):
            return None
        if "max_tokens" in body and "max_completion_tokens" in fault.detail:
            other = {name: value for name, value in body.items() if name != "max_tokens"}
            return {**other, "max_completion_tokens": body["max_tokens"]}
        form = body.get("response_format")
        if form is not None and not self._taken.get(_text(form["json_schema"]["schema"])):
            return {name: value for name, value in body.items() if name != "response_format"}
        return None

    async def converse(self, request: Request, send: Callable[[Request, dict[str, Any]], Awaitable[Reply]]) -> Reply:
        """The reply to a request, in the form that the server wants.

        Raises:
            Fault: that `send` raised, where no other form is left. Nothing is learned from it then: it may be the
                request's content that was refused.
        """
        body = self.body(request)
        while True:
            try:
                reply = await send(request, body)
            except Fault as fault:
                other = self.instead(body, fault)
                if other is None:
                    raise
                body = other
            else:
                self._learn(request, body)
                return reply

    def _learn(self, request: Request, body: dict[str, Any]) -> None:
        self._limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        if request.schema is not None:
            self._taken[_text(request.schema)] = "response_format" in body


def _text(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True)


def guessed_tokens(request: Request) -> float:
    """About as many tokens as a request takes at most: four bytes a token, and the whole answer."""
    return (len(request.prompt.text.encode()) + len(request.content.encode())) / 4 + request.sampling.max_tokens


def reply_of(answer: object, key: str | None) -> Reply:
    """The reply in an answer to `POST /chat/completions`.

    Args:
        answer: the answer's JSON.
        key: is not repeated where the model does so.

    Raises:
        BrokenAnswer: if it is no such answer.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(answer, dict) or not isinstance(choice, dict) or not isinstance(message, dict):
        raise BrokenAnswer("the answer holds no chat completion: does the URL lead to an OpenAI interface?")
    text = message.get("content") or message.get("refusal") or ""
    if not isinstance(text, str):
        raise BrokenAnswer("the answer's content is no text")
    key = key if key is not None and len(key) >= SHORTEST_KEY else None
    text = text if key is None else text.replace(key, "[key]")
    usage = answer.get("usage")
    finish = choice.get("finish_reason")
    counts = [_count(usage, name) for name in ("prompt_tokens", "completion_tokens")]
    return Reply(text, code_of(finish, key) if isinstance(finish, str) else None, *counts)


def code_of(code: object, key: str | None) -> str:
    """A server's code as it may be repeated: short, without the key."""
    return shown(str(code), key)[:LONGEST_CODE]


def _count(usage: object, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else 0
