"""Refusals of a server, and the JSON in which every error is answered."""

import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from narrlit.errors import MissingExtraError, NarrlitError, OptionError, printable
from narrlit.serving.messages import Message, Values, hide, message_of

CLIENT_LEFT = 499
"""Status code of requests whose client has left, as nginx logs it."""
RETRY_SECONDS = 2
"""Seconds after which a client may repeat a request that found no room."""
HTTP_CODES = {408: "body_too_slow", 413: "body_too_large"}
"""Codes of errors of HTTP that a person may meet."""


class ErrorDetail(Message):
    """Error of a request, with the fields of OpenAI's errors; its message is what is wrong and what to do.

    Attributes:
        parameter: name of the field or parameter that is wrong.
        param: the same, under OpenAI's name.
        type: class of the error.
    """

    parameter: str | None = None
    param: str | None = None
    type: str = "invalid_request_error"


class ErrorAnswer(BaseModel):
    """Body of every answer with an error."""

    error: ErrorDetail


@dataclass(eq=False)
class RefusedError(Exception):
    """Request that is refused.

    Attributes:
        status: status code of HTTP.
        message: what is wrong and what to do.
        parameter: name of the field or parameter that is wrong.
        code: short name of the error.
        values: values that the message names.
        headers: additional headers of the answer.
    """

    status: int
    message: str
    parameter: str | None = None
    code: str | None = None
    values: Values = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message


def overloaded(message: str) -> RefusedError:
    """Return the refusal of a request for which there is no room or no time."""
    return RefusedError(503, message, code="overloaded", headers={"Retry-After": str(RETRY_SECONDS)})


def missing(what: str, name: str) -> RefusedError:
    """Return the refusal of a request that names something which does not exist."""
    shown = printable(name, 60)
    return RefusedError(404, f"no {what} {shown!r}", what, code=f"{what}_not_found", values={"name": shown})


def client_left() -> RefusedError:
    """Return the refusal of a request whose client has left, which nobody receives."""
    return RefusedError(CLIENT_LEFT, "the client has left")


def answer(refusal: RefusedError) -> JSONResponse:
    """Answer a refused request."""
    kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
    detail = ErrorDetail(
        message=refusal.message,
        parameter=refusal.parameter,
        param=refusal.parameter,
        type=kind,
        code=refusal.code,
        values=dict(refusal.values),
    )
    body = ErrorAnswer(error=detail).model_dump()
    return JSONResponse(body, refusal.status, headers=dict(refusal.headers))


def refusal_of(error: NarrlitError) -> RefusedError:
    """Turn an error of the library into a refusal; its parameter is the first option in the sentence.

    >>> refusal_of(OptionError("at_least", option="k", found=0, least=1)).parameter
    'k'
    """
    options = error.options if isinstance(error, OptionError) else ()
    parameter = options[0].partition(".")[0] if options else None
    status = 503 if isinstance(error, MissingExtraError) else 400
    known = message_of(error, 1000)
    return RefusedError(status, known.message, parameter, known.code, known.values)


def refusal_of_http(error: HTTPException) -> RefusedError:
    """Turn an error of the web framework into a refusal."""
    return RefusedError(
        error.status_code, str(error.detail), code=HTTP_CODES.get(error.status_code), headers=error.headers or {}
    )


def refusal_of_fault(error: Exception) -> RefusedError:
    """Turn an unforeseen error into a refusal without details, which only the server's log has."""
    if isinstance(error, ClientDisconnect):
        return client_left()
    print("".join(traceback.format_exception(error)), file=sys.stderr, flush=True)
    return RefusedError(500, "the server failed to answer this request; its log says why", code="server_error")


def install_handlers(app: FastAPI, paths: Callable[[], Mapping[str, str]]) -> None:
    """Let an application answer every error as JSON.

    Args:
        app: the application.
        paths: returns paths of the machine that messages of the library may name, and what replaces each.
    """

    async def on_refusal(_: Request, error: Exception) -> JSONResponse:
        return answer(cast("RefusedError", error))

    async def on_mistake(_: Request, error: Exception) -> JSONResponse:
        refusal = refusal_of(cast("NarrlitError", error))
        hidden = hide(Message(message=refusal.message, values=dict(refusal.values)), paths())
        return answer(replace(refusal, message=hidden.message, values=hidden.values))

    async def on_invalid(request: Request, error: Exception) -> JSONResponse:
        problem = cast("RequestValidationError", error).errors()[0]
        is_body = tuple(problem["loc"]) == ("body",)
        if problem["type"] == "json_invalid":
            return answer(RefusedError(400, "the body is no JSON", code="invalid_request"))
        if is_body and "json" not in request.headers.get("content-type", ""):
            message = "the body was not read as JSON; send Content-Type: application/json"
            return answer(RefusedError(400, message, code="invalid_request"))
        return answer(_invalid_field(problem))

    async def on_http(_: Request, error: Exception) -> JSONResponse:
        return answer(refusal_of_http(cast("HTTPException", error)))

    app.add_exception_handler(RefusedError, on_refusal)
    app.add_exception_handler(NarrlitError, on_mistake)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)


def _invalid_field(problem: Mapping[str, Any]) -> RefusedError:
    """Describe the first field of a request that is missing or invalid."""
    places = [str(part) for part in problem.get("loc", ())]
    name = ".".join(places[1:]) or None
    message = printable(problem.get("msg", "the request is invalid"))
    return RefusedError(400, f"{name or 'request'}: {message[:1].lower()}{message[1:]}", name, code="invalid_request")
