"""Lines of a batch's files: https://platform.openai.com/docs/api-reference/batch/request-input."""

import json
from typing import Any

from narrlit.endpoints.refusals import message_of, shown
from narrlit.llm.completions import BrokenAnswer, code_of, reply_of
from narrlit.llm.faults import BROKEN_ANSWER, is_passing
from narrlit.llm.messages import Reply
from narrlit.llm.retrying import Fault

ENDPOINT = "/v1/chat/completions"


def request_line(key: str, body: dict[str, Any]) -> bytes:
    """The line of a request."""
    line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def reply_of_line(line: dict[str, Any], key: str | None) -> Reply:
    """The reply in a line of a batch's output or errors.

    Args:
        line: of either.
        key: is not repeated.

    Raises:
        Fault: if the line has none.
    """
    response = _object(line.get("response"))
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        try:
            return reply_of(body, key)
        except BrokenAnswer as error:
            raise Fault(BROKEN_ANSWER, str(error), again=True) from None
    if isinstance(status, int) and status:
        raise Fault(f"HTTP {status}", shown(message_of(body), key), status=status, again=is_passing(status))
    why = _object(line.get("error"))
    raise Fault(
        code_of(why.get("code") or "no reply", key).replace("_", " "), shown(str(why.get("message") or ""), key)
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
