"""What is asked of a language model, and what it answers."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from narrlit.errors import NarrlitError
from narrlit.prompts.prompt import Prompt


class RequestFailed(NarrlitError):  # noqa: N818 (it says what happened)
    """A request has no answer after all tries; the item it was for goes on without, or gives up.

    Attributes:
        reason: "time-out", "HTTP 500" and so on, short enough to be counted by.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn. What is None is left out of the request, as some reasoning models refuse it.

    Attributes:
        max_tokens: the answer's tokens at most.
        temperature: 0 takes the likeliest token.
        top_p: the share of probability that is drawn from.
        seed: of the first attempt; each further one has the next number.
    """

    max_tokens: int = 512
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None

    def without(self, names: Collection[str]) -> "Sampling":
        """The same with these parameters left out."""
        nothing: dict[str, Any] = dict.fromkeys(names)
        return replace(self, **nothing)


@dataclass(frozen=True, slots=True)
class Request:
    """One question.

    Attributes:
        prompt: its text is the system's message.
        content: the user's message. Stories stand in it as JSON, so that none can break out of its place.
        sampling: how the answer is drawn.
        schema: the JSON schema of the answer; None: any text.
        attempt: 0, 1, ... of the same question asked again.
    """

    prompt: Prompt
    content: str
    sampling: Sampling = field(default_factory=Sampling)
    schema: Mapping[str, Any] | None = None
    attempt: int = 0

    def key(self, model: str) -> str:
        """Digest of all that decides the answer: prompt, model, parameters, schema, content, attempt."""
        return sha256(json.dumps(self.described(model), sort_keys=True).encode()).hexdigest()

    def described(self, model: str) -> dict[str, Any]:
        """The request as plain data; the prompt by its digest."""
        return {
            "prompt": self.prompt.digest,
            "model": model,
            "sampling": asdict(self.sampling),
            "schema": self.schema,
            "content": self.content,
            "attempt": self.attempt,
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer.

    Attributes:
        text: empty where the model gave none.
        finish: why it ended: "stop", "length" (cut off), "content_filter", ...; None where the server doesn't say.
        prompt_tokens: of the question.
        completion_tokens: of the answer.
    """

    text: str
    finish: str | None
    prompt_tokens: int
    completion_tokens: int
