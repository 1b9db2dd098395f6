"""Names in texts: their kinds and placeholders, and the names in spans that a model marked."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["Character", "Location", "Organization", "Entity"]
Span = tuple[int, int]

KINDS: tuple[Kind, ...] = ("Character", "Location", "Organization", "Entity")
"""Prefixes of placeholders; the order breaks ties between votes."""

PLACEHOLDER = re.compile(r"(?<!\w)(?:Character_[A-Z]+|(?:Location|Organization|Entity)_\d+)(?!\w)")

_KIND_OF_LABEL: dict[str, Kind] = {
    **dict.fromkeys(("PERSON", "PER", "PRS"), "Character"),
    **dict.fromkeys(("GPE", "LOC", "FAC", "PLACE"), "Location"),
    **dict.fromkeys(("ORG", "NORP", "ORGANIZATION"), "Organization"),
}
_NO_NAMES = frozenset(["DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"])
_LEADING = re.compile(r"(?:the|an?|mr|mrs|ms|dr|sir|miss)\b\.?\s+|[^\w\s]+|_+|\s+", re.IGNORECASE)
_TRAILING = re.compile(r"(?:(?<=\w)['’][sS]|[^\w\s]|_|\s)+\Z")


@dataclass(frozen=True, slots=True)
class Mention:
    """A name at characters `start` to `end`, its kind, and the number of its coreference cluster in the text."""

    start: int
    end: int
    kind: Kind
    cluster: int | None = None


MentionFinder = Callable[[Sequence[str], Sequence[int]], list[list[Mention]]]
"""Function from texts, and the index of each text's group, to their names in order."""


def kind_of_label(label: str) -> Kind | None:
    """Kind for an entity label; None for labels of times and quantities."""
    return None if label.upper() in _NO_NAMES else _KIND_OF_LABEL.get(label.upper(), "Entity")


def name_spans(text: str, span: Span) -> list[Span]:
    """Reduce a span that a model marked to names, without line breaks, placeholders, articles, titles, possessives.

    Words without a letter, or in lower case, are no names.

    >>> text = "Jesus. However, the Ahab's"
    >>> [text[start:end] for start, end in name_spans(text, (16, 26)) + name_spans(text, (5, 14))]
    ['Ahab', 'However']
    """
    start, stop = span
    blocked = [found.span() for found in re.finditer(rf"\n|{PLACEHOLDER.pattern}", text) if found.start() < stop]
    names = []
    for end, after in (*((a, b) for a, b in blocked if b > start), (stop, stop)):
        while leading := _LEADING.match(text, start, max(start, end)):
            start = leading.end()
        name = _TRAILING.sub("", text[start:end])
        if any(letter.isalpha() and not letter.islower() for letter in name):  # a script without cases has neither
            names.append((start, start + len(name)))
        start = after
    return names
