"""Markdown: tables, and names escaped so that they are shown as they are."""

import json
import re
from collections.abc import Mapping, Sequence

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


def markdown_table(title: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Format rows as a Markdown table with aligned columns, numbers to the right.

    >>> print(markdown_table("", [{"system": "full", "n": 200}, {"system": "no mask", "n": 9}]))
    | system  |   n |
    |---------|----:|
    | full    | 200 |
    | no mask |   9 |
    <BLANKLINE>
    """
    lines = [f"## {title}", ""] if title else []
    columns = [_markdown_column(name, rows) for name in rows[0]]
    for cells in zip(*columns, strict=True):
        lines.append(f"|{'|'.join(cells)}|")
    return "\n".join([*lines, ""])


def _markdown_column(name: str, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Format a column as cells of one width: its name, the rule, and the values of the rows."""
    texts = [_escape(name)]
    for row in rows:
        texts.append(_escape(row.get(name, "")))
    width = max(map(len, texts))
    if all(isinstance(row.get(name, 0), int) for row in rows):
        align, rule = str.rjust, "-" * (width + 1) + ":"
    else:
        align, rule = str.ljust, "-" * (width + 2)
    head, *values = [f" {align(text, width)} " for text in texts]
    return [head, rule, *values]


def _escape(value: object) -> str:
    """Write a value so that it stays in one cell."""
    return str(value).replace("|", "\\|")
