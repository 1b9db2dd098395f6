"""Mentions of names in texts: kinds and placeholders of names, and names within the spans of entities."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["Character", "Location", "Organization", "Entity"]
Span = tuple[int, int]

KINDS: tuple[Kind, ...] = ("Character", "Location", "Organization", "Entity")
"""Kinds of names, which are the prefixes of placeholders; ties between votes are resolved in this order."""

PLACEHOLDER = re.compile(r"(?<!\w)(?:Character_[A-Z]+|(?:Location|Organization|Entity)_\d+)(?!\w)")
"""Pattern of a placeholder."""

_KIND_OF_LABEL: dict[str, Kind] = {
    **dict.fromkeys(("PERSON", "PER", "PRS"), "Character"),
    **dict.fromkeys(("GPE", "LOC", "FAC", "PLACE"), "Location"),
    **dict.fromkeys(("ORG", "NORP", "ORGANIZATION"), "Organization"),
}
_NO_NAMES = frozenset(["DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"])
_SEPARATOR = re.compile(rf"\n|{PLACEHOLDER.pattern}")
_LEADING = re.compile(r"(?:the|an?|mr|mrs|ms|dr|sir|miss)\b\.?\s+|[^\w\s]+|_+|\s+", re.IGNORECASE)
_TRAILING = re.compile(r"(?:(?<=\w)['’][sS]|[^\w\s]|_|\s)+\Z")


@dataclass(frozen=True, slots=True)
class Mention:
    """Mention of a name at characters `start` to `end`, with its kind and the number of its coreference cluster."""

    start: int
    end: int
    kind: Kind
    cluster: int | None = None

    @property
    def span(self) -> Span:
        """Characters `start` and `end`."""
        return self.start, self.end


MentionFinder = Callable[[Sequence[str], Sequence[int]], list[list[Mention]]]
"""Function that finds the names in texts, given the texts and the index of each text's group."""


def kind_of_label(label: str) -> Kind | None:
    """Return the kind of a name by its entity label; None for labels of times and quantities."""
    return None if label.upper() in _NO_NAMES else _KIND_OF_LABEL.get(label.upper(), "Entity")


def name_spans(text: str, span: Span) -> list[Span]:
    """Find the names in the span of an entity.

    Names contain no line breaks or placeholders, no leading articles or titles, and no possessive endings. Words in
    lower case, or without letters, are not names.

    >>> text = "Jesus. However, the Ahab's"
    >>> [text[start:end] for start, end in name_spans(text, (16, 26)) + name_spans(text, (5, 14))]
    ['Ahab', 'However']
    """
    start, stop = span
    separators = []
    for match in _SEPARATOR.finditer(text):
        if match.start() < stop and match.end() > start:
            separators.append(match.span())
    names = []
    for end, after in [*separators, (stop, stop)]:
        while leading := _LEADING.match(text, start, max(start, end)):
            start = leading.end()
        name = _TRAILING.sub("", text[start:end])
        if any(letter.isalpha() and not letter.islower() for letter in name):  # also in scripts without case
            names.append((start, start + len(name)))
        start = after
    return names
