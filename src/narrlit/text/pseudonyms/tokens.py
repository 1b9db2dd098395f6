"""The words of a text with their places: which are capitalised, and which are so because something begins there."""

import re
from dataclasses import dataclass

from narrlit.text.pseudonyms.lexicon import ABBREVIATED, LIKE, PREFIXES
from narrlit.text.pseudonyms.placeholders import PLACEHOLDER
from narrlit.text.sentences import sentences

_WORD = re.compile(
    rf"(?P<placeholder>{PLACEHOLDER.pattern})"
    r"|(?:[^\W\d_]\.){2,}"  # an acronym with its stops
    r"|[^\W\d_]\.(?=\s?[^\W\d_])"  # an initial
    rf"|(?i:{'|'.join(sorted(ABBREVIATED, key=len, reverse=True))})\."
    r"|\w+(?:['’&]\w+)*(?:-\w+(?:['’]\w+)*)*"
)
_POSSESSIVE = re.compile(r"['’][sS]\Z")
_OPENING = "\"“‘«'([{—–-*•"
_ELIDED = re.compile(r"(?:d|l|al|el|ar|as|ash|an|ad)['’-][^\W\d_]")
_LONGEST_SYLLABLES = 7  # of a Korean or Chinese given name, behind the hyphen
_QUOTES = "\"“‘«'"


@dataclass(frozen=True, slots=True)
class Token:
    """One word.

    Attributes:
        start: place of its first character.
        end: the place after its last, without a possessive 's.
        word: the characters between.
        low: these in lower case.
        gap: what stands between the word before and this one.
        capital: its first letter is one.
        first: it begins a sentence, a line or a quotation, and may owe its capital to that.
        owning: a possessive 's follows it, or the apostrophe of a plural.
    """

    start: int
    end: int
    word: str
    low: str
    gap: str
    capital: bool
    first: bool
    owning: bool


def tokens(text: str) -> list[Token]:
    """The words of a text, in order; a placeholder is no word, and counts as what stands between two.

    >>> [token.word for token in tokens("Dr. O'Brien's ex-wife met J. R. Lee, the U.S.-born Kang-soo's rival.")]
    ['Dr.', "O'Brien", 'ex', 'wife', 'met', 'J.', 'R.', 'Lee', 'the', 'U.S.', 'born', 'Kang-soo', 'rival']
    """
    starts = _sentence_starts(text)
    found: list[Token] = []
    before = 0
    for match in _WORD.finditer(text):
        if match["placeholder"]:
            continue
        for start, end, owning in _parts(text, *match.span()):
            word = text[start:end]
            gap = text[before:start]
            first = _begins(text, gap, start, end, starts) or before == 0
            found.append(Token(start, end, word, word.lower(), gap, _capitalised(word), first, owning))
            before = match.end() if owning else end
    return found


def _capitalised(word: str) -> bool:
    """Whether a word is written with a capital: "Anna", "d'Artagnan", "al-Rashid"."""
    elided = _ELIDED.match(word)
    return word[elided.end() - 1 if elided else 0].isupper()


def _sentence_starts(text: str) -> set[int]:
    starts, place = set(), 0
    for sentence in sentences(text):
        place = text.index(sentence, place)
        starts.add(place)
        place += len(sentence)
    return starts


def _begins(text: str, gap: str, start: int, end: int, starts: set[int]) -> bool:
    """Whether a sentence, a line or a quotation begins at `start`; a quotation of one word begins none."""
    opening = start
    while opening > 0 and text[opening - 1] in _OPENING:
        opening -= 1
    if opening in starts or start in starts or "\n" in gap:
        return True
    quoted = any(mark in _QUOTES for mark in text[opening:start])
    if quoted and start - opening == len(gap.lstrip()):
        return not re.match(r"(?:\s[A-Z]\w*)*[,.]?[\"”’»']", text[end:])
    return ":" in gap


def _parts(text: str, start: int, end: int) -> list[tuple[int, int, bool]]:
    """Start, end and whether it owns, of each part of a word: "ex-Marine" and "Texas-based" are two, "Kang-soo" one."""
    pieces = re.split("(-)", text[start:end])
    cuts = [start]
    place = start
    for number, piece in enumerate(pieces):
        if piece == "-":
            before, after = pieces[number - 1], pieces[number + 1]
            if _apart(before, after):
                cuts.append(place + 1)
        place += len(piece)
    parts = []
    for number, cut in enumerate(cuts):
        last = cuts[number + 1] - 1 if number + 1 < len(cuts) else end
        possessive = _POSSESSIVE.search(text, cut, last)
        plural = text[last - 1] == "s" and text[last : last + 2].rstrip("\n") in ("' ", "’ ", "'", "’")
        parts.append((cut, possessive.start() if possessive else last, bool(possessive) or plural))
    return [part for part in parts if part[0] < part[1]]


def _apart(before: str, after: str) -> bool:
    """Whether a hyphen between these parts two words of which one may be a name."""
    if before.lower() in PREFIXES:
        return True
    if not before[:1].isupper() or not after[:1].islower():
        return False
    return after in LIKE or after.endswith(("ed", "ing")) or len(after) > _LONGEST_SYLLABLES
