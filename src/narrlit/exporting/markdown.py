"""Names in Markdown and in Python code, such that they are shown as they are."""

import json
import re

from narrlit.errors import printable

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&])")


def escaped(name: str) -> str:
    r"""Escape the characters of a name that have a meaning in Markdown, and put it on one line.

    >>> print(escaped("a_b *c*\n# d"))
    a\_b \*c\* \# d
    """
    return SPECIAL.sub(r"\\\1", printable(name))


def code(name: str) -> str:
    """Write a name as code in a line of Markdown.

    >>> print(code("train.jsonl"), code("a`b"))
    `train.jsonl` ``a`b``
    """
    name = printable(name)
    longest = max(map(len, re.findall("`+", name)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if name.startswith("`") or name.endswith("`") else ""
    return f"{fence}{padding}{name}{padding}{fence}"


def literal(name: str) -> str:
    r"""Write a name as a string of Python on one line.

    >>> print(literal('a"b'))
    "a\"b"
    """
    return json.dumps(printable(name), ensure_ascii=False)
