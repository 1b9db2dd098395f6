"""Parsing of seeds on the command line."""

from narrlit.commands.options import listed
from narrlit.errors import OptionError


def read_seeds(text: str | None) -> list[int] | None:
    """Parse comma-separated seeds; None stays None.

    >>> read_seeds("1,2,3")
    [1, 2, 3]
    """
    if text is None:
        return None
    words = listed(text)
    if len(words) < 2 or len(set(words)) < len(words) or not all(word.isdecimal() for word in words):
        raise OptionError("invalid_seeds", seeds=text)
    return [int(word) for word in words]
