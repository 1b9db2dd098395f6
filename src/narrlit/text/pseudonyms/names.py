"""Names in a text, by rule: runs of capitalised words that don't owe their capitals to where they stand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from narrlit.text.pseudonyms.evidence import determined, follows_a_noun, has_actor, is_adjective, shows_a_name
from narrlit.text.pseudonyms.gazetteer import EITHER, GIVEN, LOCATIONS, PEOPLES
from narrlit.text.pseudonyms.lexicon import (
    ABBREVIATED,
    COMMON,
    FUNCTION,
    NAMES_TOO,
    PARTICLES,
    STAYING,
    TITLES,
    WEAK_TITLES,
    word_set,
)
from narrlit.text.pseudonyms.roles import BODY_HEADS, EVENTS, ORGANISATIONS, PERSONS, PLACE_HEADS, PLACES
from narrlit.text.pseudonyms.tokens import Token

ROMAN = re.compile(r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})\Z")
_NICKNAME = (re.compile(r"\s[\"“'‘]\Z"), re.compile(r"[\"”'’]\s\Z"))
_ADDRESSES = (ABBREVIATED | {"madame", "monsieur", "sir"}) - {"st", "mt", "ft", "jr", "sr"}
_PARTNERS = word_set("co sons company brothers daughters partners associates")
_GENERIC = (PERSONS | PLACES | ORGANISATIONS | EVENTS) - GIVEN
_ARTICLES = word_set("la le el il lo los las les de du der die das den van von")
_KNOWN = GIVEN | LOCATIONS | EITHER
_DERIVED = ("ing", "ly", "ed", "ful", "ous", "less", "-old")
_ROLE_ENDINGS = ("er", "or", "ist", "man", "woman", "ess")


@dataclass(frozen=True, slots=True)
class Name:
    """A name: the tokens from `start` to before `stop`; `titled` if a title stands before it."""

    start: int
    stop: int
    titled: bool


class Names:
    """Finds the names of one text."""

    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = found
        self._lower = {token.low for token in found if not token.capital}
        self._capital = [self._is_capital(number) for number in range(len(found))]
        runs = self._runs()
        self._known = self._seen_within_sentences(runs)
        names = [(run, self._name(*run)) for run in runs]
        surnames = {found[run[0]].low for run, name in names if name and has_actor(found, run[0])}
        surnames |= {found[name.stop - 1].low for _, name in names if name and name.stop - name.start > 1}
        # A surname may be a word that is no name by itself: "King" of Rufus King.
        lone = [Name(*run, titled=False) for run, name in names if name is None and self._is_surname(run, surnames)]
        self.found = sorted([name for _, name in names if name] + lone, key=lambda name: name.start)

    def _is_capital(self, number: int) -> bool:
        token = self._tokens[number]
        if not token.capital or re.split("['’]", token.low)[0] in FUNCTION:
            return False
        if len(token.word) > 1 and token.word.isupper() and "." not in token.word:
            beside = self._tokens[max(0, number - 1) : number] + self._tokens[number + 1 : number + 2]
            shouted = any(len(other.word) > 1 and other.word.isupper() for other in beside) or len(token.word) > 5
            # Where all is in capitals they say nothing.
            return not shouted or token.low in _KNOWN or self._is_named_elsewhere(token.low)
        return True

    def _is_named_elsewhere(self, low: str) -> bool:
        if low in self._lower or low in COMMON or low in _GENERIC:
            return False
        return any(t.low == low and t.capital and not t.first and not t.word.isupper() for t in self._tokens)

    def _runs(self) -> list[tuple[int, int]]:
        runs = []
        number = 0
        while number < len(self._tokens):
            if not self._capital[number]:
                number += 1
                continue
            stop = number + 1
            while (longer := self._extended(number, stop)) > stop:
                stop = longer
            runs.append((number, stop))
            number = stop
        return runs

    def _extended(self, start: int, stop: int) -> int:
        """Where the run goes on to if the words behind `stop` belong to it, `stop` if they don't."""
        last = self._tokens[stop - 1]
        after = stop
        while after < len(self._tokens) and self._links(start, stop, after):
            after += 1
        if after >= len(self._tokens) or after - stop > 3:
            return stop
        token = self._tokens[after]
        if after == stop and token.gap == " " and (token.word.isdigit() and len(token.word) < 4):
            return after + 1
        if token.first or not self._capital[after] or (last.owning and after > stop):
            return stop
        if last.owning and token.low not in PLACES and token.low not in ORGANISATIONS:
            return stop
        if token.low.rstrip(".") in _ADDRESSES or self._ends_an_event(stop - 1, token):
            return stop
        together = token.gap in (" ", "\n", "") or (after == stop and self._nicknames(after, start))
        partners = token.gap == " & " and token.low in _PARTNERS
        return after + 1 if together or partners else stop

    def _links(self, start: int, stop: int, number: int) -> bool:
        """Whether the word is one that may stand inside a name: "de", or the "of the" of a body or a place."""
        token = self._tokens[number]
        if token.gap != " " or token.capital:
            return False
        if token.low in PARTICLES:
            return True
        head = self._tokens[stop - 1].low
        if token.low in ("of", "for"):
            heads = BODY_HEADS | (PLACE_HEADS if token.low == "of" else frozenset())
            person = stop - start == 1 and head in GIVEN and token.low == "of"
            return number == stop and (head in heads or person)
        return token.low == "the" and number == stop + 1 and head in BODY_HEADS | PLACE_HEADS

    def _nicknames(self, number: int, start: int) -> bool:
        """Whether the word is the one in quotes, or the one behind it, of a name such as Diana "Sugar" Hill."""
        opening, closing = _NICKNAME
        gaps = [token.gap for token in self._tokens[number - 1 : number + 2]]
        if opening.fullmatch(gaps[1]):
            return len(gaps) == 3 and closing.fullmatch(gaps[2]) is not None and self._capital[number + 1]
        return number - 1 > start and opening.fullmatch(gaps[0]) is not None and closing.fullmatch(gaps[1]) is not None

    def _ends_an_event(self, number: int, after: Token) -> bool:
        """Whether a war's name ends before the word that comes after: "After World War Two Anna"."""
        if self._tokens[number].low not in EVENTS or number == 0 or not self._capital[number - 1]:
            return False
        return not ROMAN.match(after.word) and after.low not in ORGANISATIONS and after.low not in PLACES

    def _seen_within_sentences(self, runs: list[tuple[int, int]]) -> set[str]:
        known = set()
        for start, stop in runs:
            for number in range(start, stop):
                token = self._tokens[number]
                plain = token.low not in COMMON and token.low not in _GENERIC
                if not token.first and (plain or (not determined(self._tokens, start) and number in (start, stop - 1))):
                    known.add(token.low)
        return known

    def _name(self, start: int, stop: int) -> Name | None:
        """The name in a run of capitalised words, without what stands before it; None if there is none."""
        found = self._tokens
        last = found[stop - 1].low
        if (
            last in EVENTS
            or all(t.low in STAYING or t.word.isdigit() for t in found[start:stop])
            or (ROMAN.match(found[stop - 1].word) and found[stop - 2].low in EVENTS and stop - start > 1)
        ):
            return None
        begin = self._after_titles(start, stop)
        titled = begin > start and found[begin - 1].low.rstrip(".") in TITLES
        while stop - begin > 1 and found[stop - 1].low in PERSONS and self._joined(begin, stop - 1) in LOCATIONS:
            stop -= 1  # the United States Ambassador
        if last in PEOPLES and not titled and found[begin].low not in GIVEN:
            return None
        if stop - begin == 1 and not self._stands_alone(begin, titled):
            return None
        return Name(begin, stop, titled)

    def _joined(self, start: int, stop: int) -> str:
        return " ".join(token.low for token in self._tokens[start:stop])

    def _after_titles(self, start: int, stop: int) -> int:
        """Where the name begins behind titles, peoples and words that are capitalised for their place."""
        found = self._tokens
        heading = found[stop - 1].low in PLACES | ORGANISATIONS or any(t.low == "of" for t in found[start:stop])
        while start < stop:
            token = found[start]
            low = token.low.rstrip(".")
            alone = stop - start == 1
            title = low in TITLES and not (heading and low in WEAK_TITLES)
            people = (low in PEOPLES or low.endswith(("ian", "ese"))) and not heading and low not in GIVEN
            if (not alone and (title or people)) or (token.first and not alone and self._owes_its_capital(start, stop)):
                start += 1
            else:
                break
        return start

    def _owes_its_capital(self, start: int, stop: int) -> bool:
        """Whether the word that begins a sentence is no part of the name that goes on behind it."""
        low = self._tokens[start].low
        if low in _KNOWN:
            return False
        if (
            low in COMMON
            or low in PERSONS
            or low.removesuffix("s") in PERSONS
            or low in self._lower
            or low.endswith(_DERIVED)
        ):
            return low not in self._known
        following = self._tokens[start + 1].low
        return low.endswith(_ROLE_ENDINGS) and (following in GIVEN or stop - start > 2) and low not in self._known

    def _stands_alone(self, number: int, titled: bool) -> bool:
        """Whether a single capitalised word is a name."""
        token = self._tokens[number]
        low = token.low.rstrip(".")
        if titled:
            return not ROMAN.match(token.word) and low not in PEOPLES and low not in TITLES
        if has_actor(self._tokens, number) and low not in PEOPLES and not determined(self._tokens, number):
            return True
        if (
            low in _ARTICLES
            or low in STAYING
            or low in PEOPLES
            or (low in _GENERIC and low not in LOCATIONS)
            or len(low) < 2
        ):
            return False
        if ROMAN.match(token.word) or any(part in PEOPLES for part in low.split("-")):
            return False
        if token.first:
            if low in COMMON or low in self._lower:
                return low in self._known and shows_a_name(self._tokens, number)
            return low in _KNOWN or low in self._known or shows_a_name(self._tokens, number)
        if is_adjective(self._tokens, number) or low.endswith("ism"):
            return False
        if determined(self._tokens, number):
            return low not in COMMON and low not in self._lower
        if low not in COMMON or low in NAMES_TOO:
            return True
        return follows_a_noun(self._tokens, number) or shows_a_name(self._tokens, number)

    def _is_surname(self, run: tuple[int, int], surnames: set[str]) -> bool:
        start, stop = run
        token = self._tokens[start]
        if stop - start > 1 or token.low not in surnames or determined(self._tokens, start):
            return False
        return token.low not in STAYING and (not token.first or shows_a_name(self._tokens, start))
