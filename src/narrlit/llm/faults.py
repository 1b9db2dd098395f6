"""What an exception of the client means: a fault that another try may mend, or a mistake that ends the job."""

import asyncio
from typing import Any

from narrlit.endpoints.refusals import message_of, served_models, shown
from narrlit.errors import ModelError
from narrlit.llm.options import Server
from narrlit.llm.retrying import Fault, retry_after
from narrlit.optional import require

NOT_REACHED = "no connection"
BROKEN_ANSWER = "broken answer"


async def fault_of(error: Exception, client: Any, server: Server) -> Fault:
    """The fault behind an exception of a request.

    Args:
        error: an `openai.APIError`, asyncio's TimeoutError or a ValueError about the answer.
        client: the `openai.AsyncOpenAI`, asked for the served models where the model or path isn't found.
        server: who was asked.

    Raises:
        ModelError: if no request of the job can succeed: wrong key, no such model, no quota.
    """
    openai = require("openai", "llm")
    if isinstance(error, (asyncio.TimeoutError, openai.APITimeoutError)):
        return Fault("time-out", f"no answer within {server.timeout:g} seconds; raise --timeout?", again=True)
    if isinstance(error, openai.APIStatusError):
        return await _of_status(error, client, server)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        reason = NOT_REACHED if type(cause).__name__ == "ConnectError" else "connection broken"
        return Fault(reason, shown(str(cause or error), server.key), again=True)
    return Fault(BROKEN_ANSWER, shown(str(error), server.key), again=True)


def is_passing(status: int) -> bool:
    """Whether an HTTP status is one that another try may mend."""
    return status in (408, 409, 425, 429) or status >= 500


async def _of_status(error: Any, client: Any, server: Server) -> Fault:
    status = error.status_code
    said = shown(message_of(error.body), server.key)
    who = f"{server.who}: HTTP {status}, {said}"
    if status in (401, 403):
        raise ModelError(f"{who}; give a key that is valid there by the environment or --api_key_file")
    if status == 404:
        raise ModelError(f"{who}; {await _not_found(client, server)}")
    if status == 429 and getattr(error, "code", None) == "insufficient_quota":
        raise ModelError(f"{who}; when the account has credit again, the same command goes on from its log")
    again = is_passing(status)
    return Fault(
        f"HTTP {status}", said, status=status, again=again, wait=retry_after(error.response.headers) if again else None
    )


async def _not_found(client: Any, server: Server) -> str:
    names = await served_models(client)
    if names is None:
        return f"GET {server.url}/models gives no list of models either: is the URL right (it should end in /v1)?"
    if server.model in names:
        return "the model is served, but not for chat completions: serve one that generates text"
    return f"the models there are {shown(', '.join(names), server.key)}: name one by --llm_model"


def not_there(server: Server, fault: Fault) -> ModelError:
    """The error where the server has never been reached."""
    return ModelError(
        f"{server.who}: {fault.detail}; is the server running there? With vLLM: vllm serve {server.model}"
    )
