"""Tables as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any


def markdown_table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as a Markdown table with aligned columns, numbers to the right.

    >>> print(markdown_table("", [{"system": "full", "n": 200}, {"system": "no mask", "n": 9}]))
    | system  |   n |
    |---------|----:|
    | full    | 200 |
    | no mask |   9 |
    <BLANKLINE>
    """
    names = list(rows[0])
    right = [all(isinstance(line.get(name, 0), int) for line in rows) for name in names]
    texts = [names, *([str(line.get(name, "")) for name in names] for line in rows)]
    lines = [[text.replace("|", "\\|") for text in line] for line in texts]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = [[c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)] for line in lines]
    rule = "|" + "|".join("-" * (w + 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True)) + "|"
    head, *body = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([*([f"## {title}", ""] if title else []), head, rule, *body, ""])
