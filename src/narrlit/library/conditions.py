"""SQL conditions on the columns of a LanceDB table."""

import re
from typing import Any

from narrlit.errors import OptionError, printable
from narrlit.library.story_frame import HIDDEN

_LITERAL = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"")
"""String or quoted name in SQL."""
_PLACEHOLDER = re.compile(r"[$?]|(?<!:):(?!:)")
"""Placeholder of a parameter, which a condition must not have."""


def column_list(table: Any) -> str:
    """Return the columns of a LanceDB table that conditions may name, with their types, for messages."""
    shown = [field for field in table.schema if field.name not in HIDDEN]
    return "columns: " + ", ".join(f"{field.name} ({field.type})" for field in shown)


def check_condition(table: Any, where: str) -> None:
    """Check a condition on the columns of a LanceDB table.

    Raises:
        OptionError: if it is not a valid condition on these columns.
    """
    if _PLACEHOLDER.search(_LITERAL.sub("", where)):  # LanceDB panics
        raise OptionError("placeholder_in_condition", where=printable(where, 80))
    try:
        table.count_rows(where)
    except Exception as error:
        message = str(error).removeprefix("Invalid input, ").partition(" Valid fields")[0].partition(", /")[0]
        problem = printable(message, 150).rstrip(". ")
        if "literal" in message:
            problem += "; compare a column of text with '...', or write CAST(column AS INT)"
        raise OptionError(
            "invalid_condition", where=printable(where, 80), problem=problem, columns=column_list(table)
        ) from error


def quoted(value: object) -> str:
    """Format a value as an SQL literal.

    >>> quoted("king's"), quoted(1812)
    ("'king''s'", '1812')
    """
    if isinstance(value, int | float):
        return str(value)
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'"
