"""The value of one field of a row: is it a text that can be used, a label, or a fault to count."""

import re
from collections.abc import Mapping


class RowError(Exception):
    """Why a row can't be used; its message is the reason that is counted."""


# UTF-8 read as Latin-1 or Windows-1252, and what a decoder put for bytes it didn't know. After the capital A with
# tilde, quotes and dashes are left out: they follow the letter in sound Portuguese text.
_MOJIBAKE = re.compile(
    "\ufffd"  # replacement character
    "|[\x80-\x84\x86-\x9f]"  # C1 controls: never typed (but U+0085 is a line break)
    "|â[€\x80]"  # quotes, dashes, ellipsis
    "|Ã[\x80-\xbf€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ]"  # accented letters
    "|Â[\xa0-\xbf]"  # no-break space, signs
    "|ðŸ"  # emoji
    "|ï(?:»¿|¿½)"  # byte order mark, replacement character
)

_LABELS = {"true": True, "1": True, "false": False, "0": False}


def has_mojibake(text: str) -> bool:
    """Whether a text holds character sequences that a wrong decoding leaves behind.

    >>> has_mojibake("the captainâ€™s daughter"), has_mojibake("the captain’s daughter")
    (True, False)
    """
    return _MOJIBAKE.search(text) is not None


def text_fault(value: object, name: str) -> str | None:
    """Why a value can't be the text of a field, None if it can.

    >>> text_fault("  ", "text_a")
    'empty text_a'
    """
    if value is None:
        return f"missing {name}"
    if not isinstance(value, str):
        return f"{name} is not text"
    if not value.strip():
        return f"empty {name}"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return f"{name} has half a surrogate pair"  # a broken escape: no tokenizer and no file takes it
    return None


def text_of(row: Mapping[str, object], name: str) -> str:
    """The text of a field.

    Raises:
        RowError: if it is missing, null, empty, or not text.
    """
    value = row.get(name)
    reason = text_fault(value, name)
    if reason is not None or not isinstance(value, str):
        raise RowError(reason)
    return value


def mapping_of(value: object) -> Mapping[str, object]:
    """A row's fields.

    Raises:
        RowError: if the row is not a mapping.
    """
    if not isinstance(value, Mapping):
        raise RowError("row is not an object")
    return value


def label_of(value: object, name: str) -> bool | None:
    """A label: true, false, 1 or 0, as JSON or as text in any case; None where there is none.

    Raises:
        RowError: if it is anything else.

    >>> label_of("TRUE", "label"), label_of(0, "label"), label_of("", "label")
    (True, False, None)
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, str)):
        written = str(value).strip().lower()
        if not written:
            return None
        if written in _LABELS:
            return _LABELS[written]
    raise RowError(f"{name} is not true or false")


def id_of(row: Mapping[str, object], name: str = "id") -> str | None:
    """The name a source gives a story: text or a whole number; None where there is none.

    Raises:
        RowError: if it is anything else.
    """
    value = row.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    reason = text_fault(value, name)
    if reason is not None:
        raise RowError(reason)
    return str(value)
