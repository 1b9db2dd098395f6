"""From a backend's mentions to names: their spans, and how they are compared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from narrlit.text.pseudonyms.gazetteer import PEOPLES
from narrlit.text.pseudonyms.lexicon import COMMON, FUNCTION, PARTICLES, STAYING, TITLES
from narrlit.text.pseudonyms.mentions import Kind, Mention
from narrlit.text.pseudonyms.placeholders import protected, touches
from narrlit.text.pseudonyms.roles import EVENTS, ORGANISATIONS, PERSONS, PLACES

Key = tuple[str, ...]
"""A name as it is compared: its words in lower case, without stops and without a possessive 's."""

EVERYDAY = FUNCTION | COMMON | STAYING | TITLES | PEOPLES | PERSONS | PLACES | ORGANISATIONS | EVENTS
"""Words that may be part of a name, or no name, elsewhere in the same text."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’][sS]\Z")
_BEGINNING = re.compile(r"(?:\A|[.!?…:\n])[\s\"'”’»)\]“‘«(\[]*\Z")
_INSIDE_WORD = re.compile(r"\w\w")
_INSIDE = PARTICLES | {"of", "the", "and", "for"}


@dataclass(frozen=True, slots=True)
class Named:
    """A name where it stands.

    Attributes:
        start: its first character's place in its text.
        end: the place after its last.
        key: the name as it is compared.
        kind: the mention's vote.
        cluster: the mention's coreference cluster.
    """

    start: int
    end: int
    key: Key
    kind: Kind | None
    cluster: int | None


def key_of(name: str) -> Key:
    """The name as it is compared.

    >>> key_of("J.R. O’BRIEN's"), key_of("Ludwig van Beethoven")
    (('j', 'r', "o'brien"), ('ludwig', 'van', 'beethoven'))
    """
    return tuple(word.lower().replace("’", "'") for word in _WORD.findall(_POSSESSIVE.sub("", name)))


def named(text: str, mentions: Sequence[Mention]) -> list[Named]:
    """The names among a text's mentions: whole words, apart from placeholders and the lines that mark views.

    A mention with a vote or without a cluster is a name. Any other may be a pronoun or a description as well: it is a
    name if its words are capitalised, an article and titles before them left out, and they are neither words of every
    day nor one word that only begins a sentence.
    """
    forbidden = protected(text)
    found = []
    for mention in mentions:
        if mention.start >= mention.end or touches(forbidden, mention.start, mention.end):
            continue
        sure = mention.kind is not None or mention.cluster is None
        name = _plain(text, mention) if sure else _capitalised(text, mention)
        if name is not None and name.key and _is_whole(text, name):
            found.append(name)
    return found


def _plain(text: str, mention: Mention) -> Named:
    possessive = _POSSESSIVE.search(text, mention.start, mention.end)
    end = possessive.start() if possessive else mention.end
    return Named(mention.start, end, key_of(text[mention.start : end]), mention.kind, mention.cluster)


def _is_whole(text: str, name: Named) -> bool:
    """Whether no word is cut; a placeholder in the middle of one would not be known again."""
    return not any(0 < place < len(text) and _INSIDE_WORD.match(text, place - 1) for place in (name.start, name.end))


def _capitalised(text: str, mention: Mention) -> Named | None:
    """The name that a mention without a vote is, None if it is none."""
    words = list(_WORD.finditer(text, mention.start, mention.end))
    while words and (words[0].group().lower() in FUNCTION or (len(words) > 1 and words[0].group().lower() in TITLES)):
        words.pop(0)
    if not words or not all(word.group()[0].isupper() or word.group() in _INSIDE for word in words):
        return None
    start, end = words[0].start(), words[-1].end()
    if not words[-1].group()[0].isupper() or "\n" in text[start:end]:
        return None
    name = _plain(text, Mention(start, end, None, mention.cluster))
    beginning = len(name.key) == 1 and _BEGINNING.search(text, 0, name.start)
    return None if beginning or set(name.key) <= EVERYDAY else name
