"""Messages that a server sends to its page, which has a text of each code in every language."""

import re
from collections.abc import Mapping

from pydantic import BaseModel

from narrlit.errors import printable

Values = Mapping[str, str | int]
"""Values that a text names, such as the name of a column; of these, `n` decides between singular and plural."""
LIBRARY_MESSAGES = {
    "broken_csv": r":(?P<line>\d+): .*; put texts .*in double quotes",
    "broken_document": r"^document .*; check that it is complete",
    "broken_json": r":(?P<line>\d+): broken JSON",
    "broken_workbook": r"^workbook .*; save it as \.xlsx again",
    "damaged_index": r"^index .* is damaged",
    "empty_file": r" is empty; name a file| has no rows; name a file",
    "empty_index": r"^index .* has no stories: add some",
    "empty_query": r"^the query is empty",
    "few_for_map": r"^a map needs at least (?P<limit>\d+) stories",
    "folder_in_use": r": another run is writing this folder",
    "long_for_excel": r"a cell of Excel holds at most",
    "no_header": r": the first line is a row of data",
    "no_text_column": r": unknown columns: ",
    "no_text_inside": r" has no text; run text recognition",
    "no_triple": r"no triple to write",
    "no_usable_row": r": no row can be used \(",
    "no_version": r"no group of versions to write",
    "not_text": r": a binary file, or text in an unknown encoding",
    "nothing_to_write": r"nothing to write; give",
    "read_as": r"^read as (?P<encoding>\S+)$",
    "read_sheet": r"^read sheet (?P<sheet>.+) of (?P<sheets>\d+)$",
    "same_column_twice": r":(?P<line>\d+): two columns are named (?P<column>.+);",
    "several_text_columns": r"(?P<column>\S+) and .* could each be the text",
    "too_few_values": (
        r"^`column=(?P<column>[^`]+)`: .*"
        r"(has fewer than two values|no two stories have the same value|too few to learn from)"
    ),
}
"""Codes of messages of the library that are common on the page, with patterns whose groups are the values."""


class Message(BaseModel):
    """Message to a person.

    Attributes:
        message: the message in English.
        code: short name of the message; None if there is none.
        values: values that the message names.
    """

    message: str
    code: str | None = None
    values: dict[str, str | int] = {}


def library_message(error: object, limit: int = 500) -> Message:
    """Find the code and the values of a message of the library.

    >>> library_message("read as cp1252").values
    {'encoding': 'cp1252'}
    >>> library_message("the moon is full").code
    """
    text = printable(error, limit)
    for code, pattern in LIBRARY_MESSAGES.items():
        match = re.search(pattern, text)
        if match is not None:
            return Message(message=text, code=code, values=match.groupdict())
    return Message(message=text)
