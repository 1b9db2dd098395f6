"""Tables as Markdown."""

from collections.abc import Mapping, Sequence


def markdown_table(title: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Format rows as a Markdown table with aligned columns, numbers to the right.

    >>> print(markdown_table("", [{"system": "full", "n": 200}, {"system": "no mask", "n": 9}]))
    | system  |   n |
    |---------|----:|
    | full    | 200 |
    | no mask |   9 |
    <BLANKLINE>
    """
    columns = [_markdown_column(name, rows) for name in rows[0]]
    head, rule, *body = [f"|{'|'.join(cells)}|" for cells in zip(*columns, strict=True)]
    heading = [f"## {title}", ""] if title else []
    return "\n".join([*heading, head, rule, *body, ""])


def _markdown_column(name: str, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Format a column as cells of one width: its name, the rule, and the values of the rows."""
    values = [str(row.get(name, "")) for row in rows]
    texts = [text.replace("|", "\\|") for text in [name, *values]]
    width = max(map(len, texts))
    if all(isinstance(row.get(name, 0), int) for row in rows):
        head, *values = [f" {text.rjust(width)} " for text in texts]
        return [head, "-" * (width + 1) + ":", *values]
    head, *values = [f" {text.ljust(width)} " for text in texts]
    return [head, "-" * (width + 2), *values]
