"""What an endpoint's refusal means, in one line: where, what it said, what to do next. No key is ever in it."""

from typing import TYPE_CHECKING, Any

from narrlit.endpoints.refusals import message_of, served_models, shown
from narrlit.errors import ModelError
from narrlit.optional import require

if TYPE_CHECKING:
    from narrlit.stores.endpoint import Endpoint


async def explain(error: Any, client: Any, endpoint: "Endpoint") -> ModelError:
    """The error to raise for an `openai.APIError`.

    Args:
        error: what the client raised after its last try.
        client: asked for the served models where a model or path isn't found.
        endpoint: who was asked, and how.
    """
    openai = require("openai", "llm")
    options = endpoint.options
    start = f"vllm serve {endpoint.model} --runner pooling"
    if isinstance(error, openai.APITimeoutError):
        said = f"no answer within {options.timeout:g} seconds"
        hint = "raise vectors.endpoint.timeout, or lower vectors.endpoint.batch or vectors.endpoint.concurrency"
    elif isinstance(error, openai.APIConnectionError):
        said = _shown(str(error.__cause__ or error), endpoint)
        hint = f"is the server running there? With vLLM: {start}"
    elif isinstance(error, openai.APIStatusError):
        said = f"HTTP {error.status_code}, {_shown(message_of(error.body), endpoint)}"
        hint = await _not_found(client, endpoint, start) if error.status_code == 404 else _hint(error, endpoint)
    else:
        said, hint = _shown(str(error), endpoint), "does the URL lead to an OpenAI interface?"
    return ModelError(f"{endpoint.who}: {said}; {hint}")


def _hint(error: Any, endpoint: "Endpoint") -> str:
    status = error.status_code
    if status in (401, 403):
        return f"set the environment variable {endpoint.options.api_key_variable} to a key that is valid there"
    if status in (400, 413, 422):
        return (
            "if a text is too long, let the server cut it: for vLLM, vectors.endpoint.parameters "
            "{truncate_prompt_tokens: 512}"
        )
    if status == 429:
        return "lower vectors.endpoint.concurrency, raise vectors.endpoint.retries, or come back later"
    return "look at the server's log"


async def _not_found(client: Any, endpoint: "Endpoint", start: str) -> str:
    names = await served_models(client)
    if names is None:
        return f"GET {endpoint.url}/models gives no list of models either: is the URL right (it should end in /v1)?"
    if endpoint.model in names:
        return f"the model is served, but not for embeddings; with vLLM: {start}"
    return f"the models there are {_shown(', '.join(names), endpoint)}: name one in vectors.endpoint.served_model"


def _shown(text: str, endpoint: "Endpoint") -> str:
    return shown(text, endpoint.options.key())
