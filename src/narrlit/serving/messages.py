"""Messages that a server sends to its page, which has texts of many codes in every language."""

from collections.abc import Mapping

from pydantic import BaseModel

from narrlit.data.row_file import ReadingNote
from narrlit.errors import NarrlitError, printable
from narrlit.sentences import SentenceFormatter

Values = Mapping[str, str | int | float]
"""Values that a text names, such as the name of a column; of these, `n` decides between singular and plural."""


class Message(BaseModel):
    """Message to a person.

    Attributes:
        message: the message in English.
        code: short name of the message; None if there is none.
        values: values that the message names.
    """

    message: str
    code: str | None = None
    values: dict[str, str | int | float] = {}


def message_of(source: NarrlitError | ReadingNote, limit: int = 500) -> Message:
    """Return the message of an error or a note of the library: its sentence, code and values as plain data.

    >>> message_of(ReadingNote.of("read_as", encoding="cp1252"))
    Message(message='read as cp1252', code='read_as', values={'encoding': 'cp1252'})
    """
    values: dict[str, str | int | float] = {}
    for name, value in source.values.items():
        number = isinstance(value, int | float)
        values[name] = value if number else printable(SentenceFormatter().format_field(value, ""), limit)
    return Message(message=printable(source, limit), code=source.code, values=values)


def hide(message: Message, replaced: Mapping[str, str]) -> Message:
    """Replace parts of a message, such as paths of the machine, in its sentence and its values."""
    text, values = message.message, dict(message.values)
    for old, new in replaced.items():
        text = text.replace(old, new)
        for name, value in values.items():
            values[name] = value.replace(old, new) if isinstance(value, str) else value
    return message.model_copy(update={"message": text, "values": values})
