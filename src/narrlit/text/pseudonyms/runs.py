"""Capitalised words that stand together as one name would: Ludwig van Beethoven, Tower of London, Apollo 13."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from narrlit.text.pseudonyms.gazetteer import EITHER, GIVEN, LOCATIONS
from narrlit.text.pseudonyms.lexicon import ABBREVIATED, COMMON, FUNCTION, PARTICLES, word_set
from narrlit.text.pseudonyms.roles import (
    BODY_HEADS,
    EVENTS,
    GENERIC,
    ORGANISATIONS,
    PLACE_HEADS,
    PLACES,
)
from narrlit.text.pseudonyms.tokens import Token

ROMAN = re.compile(r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})\Z")
FEASTS = word_set("day eve")
"""End the name of a day: Christmas Eve, Mother's Day."""

KNOWN = GIVEN | LOCATIONS | EITHER

_ACRONYM = re.compile(r"(?:[^\W\d_a-z]\.?){2,5}\Z")
_OPENING = re.compile(r"\s[\"“'‘]\Z")
_CLOSING = re.compile(r"[\"”'’]\s\Z")
_ADDRESSES = {f"{word}." for word in ABBREVIATED - {"st", "mt", "ft", "jr", "sr"}} | {
    "mr",
    "mrs",
    "dr",
    "madame",
    "sir",
}
_OWNED = PLACES | ORGANISATIONS | FEASTS
_INSIDE = word_set("at from in near to")
_PARTNERS = word_set("associates brothers co company daughters partners sons")
_SURNAME_PARTICLES = word_set("van von de der den du di della ter ten zu")
_ARTICLES = word_set("a the his her their this that")
_MOST_LINKS = 3
_LONGEST_ACRONYM = 5


@dataclass(frozen=True, slots=True)
class Run:
    """The tokens from `start` to before `stop`."""

    start: int
    stop: int


def runs(tokens: Sequence[Token]) -> list[Run]:
    """All runs of a text, in order, words that begin a sentence among them."""
    found = []
    finder = _Finder(tokens)
    number = 0
    while number < len(tokens):
        stop = finder.end(number)
        if stop > number:
            found.append(Run(_with_particles(tokens, number), stop))
        number = max(stop, number + 1)
    return found


def _with_particles(tokens: Sequence[Token], start: int) -> int:
    """Where a surname begins that stands by itself: "but van der Meer"; in "a van Meer drove" it is a car."""
    begin = start
    while begin > 0 and tokens[begin].gap == " " and tokens[begin - 1].word in _SURNAME_PARTICLES:
        begin -= 1
    car = begin + 1 == start and tokens[begin].word == "van" and begin > 0 and tokens[begin - 1].low in _ARTICLES
    return start if car else begin


class _Finder:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._lower = {token.low for token in tokens if not token.capital}
        self._named = {t.low for t in tokens if t.capital and not t.first and not t.word.isupper()}
        self._capital = [self._is_capital(number) for number in range(len(tokens))]

    def end(self, start: int) -> int:
        """Where the run that begins at `start` ends; `start` itself if none does."""
        if not self._capital[start]:
            return start
        stop = start + 1
        while (longer := self._extended(start, stop)) > stop:
            stop = longer
        return stop

    def _is_capital(self, number: int) -> bool:
        token = self._tokens[number]
        if not token.capital or re.split("['’]", token.low)[0] in FUNCTION:
            return False
        if len(token.word) < 2 or not token.word.isupper() or "." in token.word:
            return True
        beside = [*self._tokens[max(0, number - 1) : number], *self._tokens[number + 1 : number + 2]]
        shouted = any(len(other.word) > 1 and other.word.isupper() for other in beside)
        if not shouted and len(token.word) <= _LONGEST_ACRONYM:
            return True
        # Where all is in capitals they say nothing: such a word is a name if it is one elsewhere.
        plain = token.low not in self._lower and token.low not in COMMON and token.low not in GENERIC
        return token.low in KNOWN or (plain and token.low in self._named)

    def _extended(self, start: int, stop: int) -> int:
        """Where the run goes on to if the words behind `stop` belong to it, `stop` if they don't."""
        last = self._tokens[stop - 1]
        after = stop
        while after < len(self._tokens) and self._links(start, stop, after):
            after += 1
        if after >= len(self._tokens) or after - stop > _MOST_LINKS:
            return stop
        token = self._tokens[after]
        if after == stop and token.gap == " " and token.word.isdigit() and len(token.word) < 4:
            return after + 1
        if token.first or not self._capital[after] or self._ends(start, stop, token):
            return stop
        if last.owning and (after > stop or token.low not in _OWNED):
            return stop
        beside = token.gap in (" ", "\n", "") or (last.owning and token.gap in ("' ", "’ "))
        partners = token.gap == " & " and token.low in _PARTNERS
        return after + 1 if beside or partners or (after == stop and self._nicknames(start, after)) else stop

    def _links(self, start: int, stop: int, number: int) -> bool:
        """Whether the word is one that may stand inside a name: "de", or the "of the" of a body or a place."""
        token = self._tokens[number]
        if token.gap != " " or token.capital:
            return False
        if token.low in PARTICLES:
            return True
        head = self._tokens[stop - 1].low
        if token.low == "the":
            return number == stop + 1 and head in BODY_HEADS | PLACE_HEADS
        if token.low == "for":
            return number == stop and head in BODY_HEADS
        person = stop - start == 1 and head in GIVEN
        return token.low == "of" and number == stop and (head in BODY_HEADS | PLACE_HEADS or person)

    def _ends(self, start: int, stop: int, after: Token) -> bool:
        """Whether another name begins: "World War Two Anna", "In London Anna", "Paris Mr. Lee"."""
        if after.low in _ADDRESSES:
            return True
        event = stop - 1
        while event > start and ROMAN.match(self._tokens[event].word):
            event -= 1
        if self._tokens[event].low in EVENTS and event > start:
            return not ROMAN.match(after.word) and after.low not in ORGANISATIONS and after.low not in PLACES
        if (
            start == 0
            or self._tokens[start - 1].low not in _INSIDE
            or joined(self._tokens, start, stop) not in LOCATIONS
        ):
            return False
        subject = self._tokens[start - 1].first and after.low not in PLACES and after.low not in ORGANISATIONS
        return subject or after.low in GIVEN

    def _nicknames(self, start: int, number: int) -> bool:
        """Whether the word is the one in quotes, or the one behind it, of a name such as Diana "Sugar" Hill."""
        gaps = [token.gap for token in self._tokens[number - 1 : number + 2]]
        if _OPENING.fullmatch(gaps[1]):
            return len(gaps) == 3 and _CLOSING.fullmatch(gaps[2]) is not None and self._capital[number + 1]
        return (
            number - 1 > start and _OPENING.fullmatch(gaps[0]) is not None and _CLOSING.fullmatch(gaps[1]) is not None
        )


def is_acronym(word: str) -> bool:
    """Whether a word is written like FBI or C.I.A."""
    return _ACRONYM.match(word) is not None


def joined(tokens: Sequence[Token], start: int, stop: int) -> str:
    """The words from `start` to before `stop` in lower case."""
    return " ".join(token.low for token in tokens[start:stop])
