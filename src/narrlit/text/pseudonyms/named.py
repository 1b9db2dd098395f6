"""From a backend's mentions to names: their spans, and how they are compared."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from narrlit.text.pseudonyms.gazetteer import PEOPLES
from narrlit.text.pseudonyms.lexicon import COMMON, FUNCTION, PARTICLES, STAYING, TITLES
from narrlit.text.pseudonyms.mentions import Kind, Mention
from narrlit.text.pseudonyms.placeholders import protected
from narrlit.text.pseudonyms.roles import EVENTS, ORGANISATIONS, PERSONS, PLACES

Key = tuple[str, ...]
"""A name as it is compared: its words in lower case, without stops and without a possessive 's."""

EVERYDAY = FUNCTION | COMMON | STAYING | TITLES | PEOPLES | PERSONS | PLACES | ORGANISATIONS | EVENTS
"""Words that may be part of a name, or no name, elsewhere in the same text."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’][sS]\Z")
_BEGINNING = re.compile(r"(?:\A|[.!?…:\n])[\s\"'”’»)\]“‘«(\[]*\Z")
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
    """The names among a text's mentions; none touches a placeholder, or a line that parts a story from its views.

    A mention without a cluster is a name. One of a cluster may be a pronoun or a description as well: it is a name if
    its words are capitalised, an article and titles before them left out, and it has a vote or does not only begin a
    sentence. A description with a vote stands in the list for the name inside it, which it puts into its cluster.
    """
    forbidden = protected(text)
    free = [
        m for m in mentions if m.start < m.end and not any(m.start < end and start < m.end for start, end in forbidden)
    ]
    plain = [_plain(text, mention) for mention in free if mention.cluster is None]
    found = [name for name in plain if name.key]
    for mention in free:
        if mention.cluster is not None:
            found += _clustered(text, mention, found)
    return found


def _plain(text: str, mention: Mention) -> Named:
    possessive = _POSSESSIVE.search(text, mention.start, mention.end)
    end = possessive.start() if possessive else mention.end
    return Named(mention.start, end, key_of(text[mention.start : end]), mention.kind, mention.cluster)


def _clustered(text: str, mention: Mention, names: Sequence[Named]) -> Iterator[Named]:
    name = _capitalised(text, mention)
    if name is not None:
        yield name
        return
    for inner in names if mention.kind is not None else ():
        inside = mention.start <= inner.start and inner.end <= mention.end
        if inside and inner.kind == mention.kind and not _POSSESSIVE.match(text[inner.end : inner.end + 2]):
            yield Named(inner.start, inner.end, inner.key, inner.kind, mention.cluster)
            return


def _capitalised(text: str, mention: Mention) -> Named | None:
    """The name that a clustered mention is, None if it is none."""
    words = list(_WORD.finditer(text, mention.start, mention.end))
    while words and (words[0].group().lower() in FUNCTION or (len(words) > 1 and words[0].group().lower() in TITLES)):
        words.pop(0)
    if not words or not all(w.group()[0].isupper() or w.group() in _INSIDE for w in words):
        return None
    if not words[-1].group()[0].isupper() or "\n" in text[words[0].start() : words[-1].end()]:
        return None
    name = _plain(text, Mention(words[0].start(), words[-1].end(), mention.kind, mention.cluster))
    if name.kind is None:
        everyday = all(word in EVERYDAY for word in name.key)
        if everyday or (len(name.key) == 1 and _BEGINNING.search(text, 0, name.start)):
            return None
    return name if name.key else None
