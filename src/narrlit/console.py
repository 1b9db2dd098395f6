"""Messages to the user on stderr; stdout is for results."""

import re
import sys
from typing import Any

from narrlit.errors import printable


def say(message: str) -> None:
    """Print a message; control characters and terminal escapes in it, as from a story's text, are removed."""
    lines = [printable(line, limit=2000) if not line.isprintable() else line for line in message.split("\n")]
    print("\n".join(lines), file=sys.stderr, flush=True)


def say_truncated(coverage: Any, limit: int, one: str = "story", several: str = "stories") -> None:
    """Print how texts longer than `limit` tokens were read, if there were any; `coverage` is theirs."""
    if coverage.long:
        say(coverage.summary(limit, one, several))


def counted(number: int, thing: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "file"), counted(2345, "story")
    ('1 file', '2,345 stories')
    """
    return f"{number:,} {thing if number == 1 else re.sub('y$', 'ie', thing) + 's'}"
