"""Messages to the user, on stderr; results, on stdout."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from narrlit.errors import printable
from narrlit.sentences import counted

__all__ = ["Recorded", "counted", "print_result", "say", "say_truncated"]


class Recorded(Protocol):
    """Result that can be converted to plain data."""

    @property
    def record(self) -> Mapping[str, object] | Sequence[Mapping[str, object]]:
        """The result as plain data."""


def print_result(result: Recorded, as_json: bool) -> None:
    """Print a result as text, or its record as JSON on one line."""
    print(json.dumps(result.record) if as_json else result)


def say(message: str) -> None:
    """Print a message to stderr, without control characters and terminal escapes that a story's text may contain."""
    lines = []
    for line in message.split("\n"):
        lines.append(line if line.isprintable() else printable(line, limit=2000))
    print("\n".join(lines), file=sys.stderr, flush=True)


def say_truncated(coverage: Any, limit: int, one: str = "story", several: str = "stories") -> None:
    """Print how texts longer than `limit` tokens were read, if `coverage` counts any."""
    if coverage.long:
        say(coverage.summary(limit, one, several))
