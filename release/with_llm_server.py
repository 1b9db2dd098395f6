"""Run a command with a server of a language model: `python with_llm_server.py COMMAND...`.

The server is that of the tests (tests/helpers/llm_server.py). Its replies fit each request's schema. Their texts are
drawn from a few words, because copies of a story and repeated answers are not accepted.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from random import Random
from typing import Any

from llm_server import MODEL, llm_server, question, schema_of

WORDS = ("ship", "lamp", "oath", "debt", "rival", "guest", "letter", "garden", "verdict", "ransom", "fever", "bell")


def text(generator: Random) -> str:
    """Draw a sentence."""
    return f"The {' and the '.join(generator.sample(WORDS, 6))} end well."


def filled(schema: Mapping[str, Any], generator: Random) -> object:
    """Draw a value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: filled(field, generator) for name, field in schema["properties"].items()}
    if schema["type"] == "array":
        return [filled(schema["items"], generator) for _ in range(schema.get("minItems", 1))]
    return text(generator)


def reply(body: Mapping[str, Any]) -> str:
    """Reply to a request; the same request always gets the same reply."""
    generator = Random(f"{question(body)} {body.get('seed')}")
    schema = schema_of(body)
    return text(generator) if schema is None else json.dumps(filled(schema, generator))


with llm_server(reply_of=reply) as server:
    variables = {"OPENAI_BASE_URL": server.url, "NARRLIT_LLM_MODEL": MODEL, "OPENAI_API_KEY": "none"}
    result = subprocess.run(sys.argv[1:], env=os.environ | variables, check=False)
raise SystemExit(result.returncode)
