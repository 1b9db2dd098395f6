"""Requests to a language model: a prompt, the schema of the reply, and sampling."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from pydantic import BaseModel

from narrlit.llm.options import LLMOptions
from narrlit.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; a parameter that is None is left out of the request."""

    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None

    def with_options(self, options: LLMOptions) -> "Sampling":
        """Return the parameters with those that the options set."""
        temperature = self.temperature if options.temperature is None else options.temperature
        return Sampling(options.max_tokens or self.max_tokens, temperature, self.top_p)


@dataclass(frozen=True, slots=True)
class Request:
    """Request: `content` is the user message, `schema` the pydantic model of the answer."""

    prompt: Prompt
    content: str
    schema: type[BaseModel]
    sampling: Sampling
    seed: int

    def key(self, model: str) -> str:
        """Compute the digest of everything that determines the answer."""
        parts = [
            model,
            self.prompt.digest,
            self.content,
            self.schema.model_json_schema(),
            asdict(self.sampling),
            self.seed,
        ]
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def record(self, model: str) -> dict[str, object]:
        """Return plain data for the answer cache, with the name and digest of the prompt."""
        prompt = {"prompt": self.prompt.name, "digest": self.prompt.digest}
        return {"model": model, **prompt, "content": self.content, "seed": self.seed, **asdict(self.sampling)}

    def body(self, model: str, refused: set[str]) -> dict[str, object]:
        """Build the body of a chat completion, without the parameters in `refused`."""
        schema = {"name": "reply", "strict": True, "schema": self.schema.model_json_schema()}
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        parameters = {
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "seed": self.seed,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        accepted = {name: value for name, value in parameters.items() if value is not None and name not in refused}
        messages = self.prompt.messages(self.content)
        return {"model": model, "messages": messages, limit: self.sampling.max_tokens, **accepted}
