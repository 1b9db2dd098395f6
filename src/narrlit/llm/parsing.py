"""JSON objects out of a model's reply. The reply alone is read, so nothing of the prompt's template comes back."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from narrlit.errors import NarrlitError
from narrlit.llm.schema import misfit

_IN_A_STRING = ("Unterminated string", "Invalid \\")


class Unparsable(NarrlitError):  # noqa: N818 (it says what the reply is)
    """A reply holds no object that fits the schema.

    Attributes:
        reason: what is wrong with it: "no JSON object", or where the last object does not fit.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Repeated(dict[str, Any]):
    """An object with a key twice: which value is meant can't be told."""


def parse_object(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object that a reply consists of, else the last one in it that fits the schema.

    Thoughts (`<think>...</think>`) before the reply are passed over. Objects inside other objects or inside strings are
    not looked at, nor is anything behind a string that is broken: a story that a model repeats may hold whatever it
    likes.

    Args:
        text: the reply.
        schema: an object's JSON schema, with the keywords of `narrlit.llm.schema`.

    Raises:
        Unparsable: if there is none.
    """
    fault = "no JSON object"
    fitting = None
    for found in _objects(_without_thoughts(text)):
        misfitting = "a key stands twice" if _has_repeated(found) else misfit(found, schema)
        if misfitting is None:
            fitting = found
        else:
            fault = misfitting
    if fitting is None:
        raise Unparsable(fault)
    return fitting


def _without_thoughts(text: str) -> str:
    if not text.lstrip().startswith("<think>"):
        return text  # a story may hold the closing mark
    return text.partition("</think>")[2]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects of a text, from left to right."""
    # Line breaks inside strings are no JSON, but models write them, and they can't be mistaken.
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number, strict=False)
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if error.msg.startswith(_IN_A_STRING):
                return
            end = max(error.pos, start + 1)
        except (ValueError, RecursionError):
            return
        else:
            yield found
        start = text.find("{", end)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Repeated(found)


def _has_repeated(value: object) -> bool:
    if isinstance(value, dict):
        return isinstance(value, _Repeated) or any(map(_has_repeated, value.values()))
    return isinstance(value, list) and any(map(_has_repeated, value))


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
