"""JSON objects out of a model's reply."""

import json
from collections.abc import Mapping
from typing import Any

from narrlit.errors import NarrlitError


class Unparsable(NarrlitError):  # noqa: N818 (it says what the reply is)
    """A reply holds no object that fits the schema.

    Attributes:
        reason: what is wrong with it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_object(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The object that a reply consists of, else the last one in it that fits the schema.

    Raises:
        Unparsable: if there is none.
    """
    try:
        found = json.loads(text)
    except ValueError:
        raise Unparsable("no JSON object") from None
    return found
