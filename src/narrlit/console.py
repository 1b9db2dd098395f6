"""Messages to the person at the screen, on stderr: stdout is for results."""

import sys

from narrlit.errors import printable


def say(message: str) -> None:
    """Print a message; control characters and terminal escapes in it, as from a story's text, are removed."""
    lines = [printable(line, limit=2000) if not line.isprintable() else line for line in message.split("\n")]
    print("\n".join(lines), file=sys.stderr, flush=True)


def say_truncated(count: int, limit: int, one: str = "story", several: str = "stories") -> None:
    """Print how many texts were truncated, if any were.

    Args:
        count: different texts that were truncated.
        limit: tokens that are read of each.
        one: name of one such text.
        several: name of several.
    """
    if count:
        say(f"{count} {f'{one} was' if count == 1 else f'{several} were'} longer than {limit} tokens and truncated")


def counted(number: int, thing: str) -> str:
    """A number with its noun.

    >>> counted(1, "file"), counted(2345, "file")
    ('1 file', '2,345 files')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(count: int) -> str:
    """Bytes as a person reads them.

    >>> size(999), size(1234), size(56_789_000_000)
    ('999 B', '1.2 kB', '56.8 GB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    power = min(len(units) - 1, max(0, (len(str(count)) - 1) // 3))
    return f"{count / 1000**power:.{min(power, 1)}f} {units[power]}"
