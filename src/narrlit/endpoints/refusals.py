"""What a server says when it refuses, short and without the key."""

import textwrap
from typing import Any

from narrlit.optional import require

SHOWN = 200
"""Characters of a server's own words that a message repeats."""

PROBE_SECONDS = 10


def shown(text: str, key: str | None) -> str:
    """A server's words as messages may repeat them: one line, cut, the key replaced."""
    return textwrap.shorten(text if key is None else text.replace(key, "[key]"), SHOWN, placeholder="...")


def message_of(body: Any) -> str:
    """The words in an error's body: servers put them under error.message, message or detail, or send plain text."""
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(name):
            return message_of(body[name])
    return str(body or "without a word")


async def served_models(client: Any) -> list[str] | None:
    """Names of the models that the server lists; None where it lists none.

    Args:
        client: an `openai.AsyncOpenAI`.
    """
    openai = require("openai", "llm")
    try:
        answer = await client.with_options(max_retries=0, timeout=PROBE_SECONDS).get("/models", cast_to=object)
    except (openai.APIError, ValueError):
        return None
    data = answer.get("data") if isinstance(answer, dict) else None
    names = [str(entry["id"]) for entry in data or [] if isinstance(entry, dict) and "id" in entry]
    return names or None
