"""Mentions in texts: kinds and placeholders of names, names within entities, and descriptions within clusters."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

NameKind = Literal["Character", "Location", "Organization", "Entity"]
Span = tuple[int, int]

NAME_KINDS: tuple[NameKind, ...] = ("Character", "Location", "Organization", "Entity")
"""Kinds of names, which are the prefixes of placeholders; ties between votes are resolved in this order."""

PLACEHOLDER = re.compile(r"(?<!\w)(?:Character_[A-Z]+|(?:Location|Organization|Entity)_\d+)(?!\w)")
"""Pattern of a placeholder."""

_KIND_OF_LABEL: dict[str, NameKind] = {
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
    """Mention at characters `start` to `end`: its kind, if it is a name, and the number of its coreference cluster.

    A mention without a kind is a pronoun or a description, such as "his wife".
    """

    start: int
    end: int
    kind: NameKind | None
    cluster: int | None = None

    @property
    def span(self) -> Span:
        """Characters `start` and `end`."""
        return self.start, self.end


MentionFinder = Callable[[Sequence[str], Sequence[int]], list[list[Mention]]]
"""Function that finds the mentions in texts, given the texts and the index of each text's group."""


def kind_of_label(label: str) -> NameKind | None:
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


def description_span(text: str, span: Span) -> Span | None:
    """Reduce a mention of a coreference cluster to its words, without a possessive ending.

    Returns:
        The reduced span; None if it has no word, contains a placeholder or a line break, or ends within a word.

    >>> text = "the old king's crown"
    >>> description_span(text, (0, 14)), description_span(text, (5, 12))
    ((0, 12), None)
    """
    start, stop = span
    words = _TRAILING.sub("", text[start:stop])
    end = start + len(words)
    start += len(words) - len(words.lstrip())
    within_word = re.search(r"\w\Z", text[:start]) or re.match(r"\w", text[end:])
    has_word = re.search(r"\w", text[start:end])
    if not has_word or within_word or _SEPARATOR.search(text[start:end]):
        return None
    return start, end
