"""Messages to the person at the screen, on stderr: stdout is for results."""

import re
import sys

from narrlit.errors import printable


def say(message: str) -> None:
    """Print a message; control characters and terminal escapes in it, as from a story's text, are removed."""
    lines = [printable(line, limit=2000) if not line.isprintable() else line for line in message.split("\n")]
    print("\n".join(lines), file=sys.stderr, flush=True)


def say_truncated(count: int, limit: int, one: str = "story", several: str = "stories") -> None:
    """Print how many different texts were truncated to `limit` tokens, if any were."""
    if count:
        say(f"{count} {f'{one} was' if count == 1 else f'{several} were'} longer than {limit} tokens and truncated")


def counted(number: int, thing: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "file"), counted(2345, "story")
    ('1 file', '2,345 stories')
    """
    return f"{number:,} {thing if number == 1 else re.sub('y$', 'ie', thing) + 's'}"
