"""Names in a text, by rule: runs of capitalised words that don't owe their capitals to where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass

from narrlit.text.pseudonyms.evidence import determined, follows_a_noun, has_actor, is_adjective, shows_a_name
from narrlit.text.pseudonyms.gazetteer import GIVEN, LOCATIONS, PEOPLES
from narrlit.text.pseudonyms.lexicon import (
    COMMON,
    NAMES_TOO,
    STAYING,
    TITLES,
    WEAK_TITLES,
    word_set,
)
from narrlit.text.pseudonyms.placeholders import PLACEHOLDER
from narrlit.text.pseudonyms.roles import EVENTS, GENERIC, ORGANISATIONS, PERSONS, PLACES
from narrlit.text.pseudonyms.runs import FEASTS, KNOWN, ROMAN, Run, is_acronym, joined, runs
from narrlit.text.pseudonyms.tokens import Token

_ARTICLES = word_set("das de den der die du el il la las le les lo los van von")
_TIMES = word_set("may spring summer autumn winter")
_WHEN = word_set("in on of since until by during last next this that early late mid every")
_DERIVED = ("ing", "ly", "ed", "ful", "ous", "less", "-old")
_ROLES = ("er", "or", "ist", "man", "woman", "ess")


@dataclass(frozen=True, slots=True)
class Name:
    """A name: the tokens from `start` to before `stop`; `titled` if a title stands before it."""

    start: int
    stop: int
    titled: bool


def names(tokens: Sequence[Token]) -> list[Name]:
    """The names of one text, in order."""
    judge = _Judge(tokens, runs(tokens))
    return judge.names()


class _Judge:
    """Tells names from other capitalised words, by the word lists, the words around them and the whole text."""

    def __init__(self, tokens: Sequence[Token], found: Sequence[Run]) -> None:
        self._tokens = tokens
        self._runs = found
        self._lower = {token.low for token in tokens if not token.capital}
        self._known = self._seen_within_sentences()

    def names(self) -> list[Name]:
        judged = [(run, self._name(run)) for run in self._runs]
        surnames = {self._tokens[run.start].low for run, name in judged if name and has_actor(self._tokens, run.start)}
        surnames |= {self._tokens[name.stop - 1].low for _, name in judged if name and name.stop - name.start > 1}
        # A surname may be a word that is no name by itself: "King" of Rufus King.
        lone = [Name(run.start, run.stop, False) for run, name in judged if not name and self._is_one_of(run, surnames)]
        return sorted([name for _, name in judged if name] + lone, key=lambda name: name.start)

    def _seen_within_sentences(self) -> set[str]:
        """The words that have a capital elsewhere than where something begins."""
        known = set()
        for run in self._runs:
            for number in range(run.start, run.stop):
                token = self._tokens[number]
                plain = token.low not in COMMON and token.low not in GENERIC
                edge = number in (run.start, run.stop - 1) and not determined(self._tokens, run.start)
                if not token.first and (plain or edge):
                    known.add(token.low)
        return known

    def _name(self, run: Run) -> Name | None:
        """The name in a run of capitalised words, without what stands before it; None if there is none."""
        if self._is_a_time(run):
            return None
        start = self._after_titles(run)
        stop = run.stop
        titled = start > run.start and self._low(start - 1) in TITLES
        while (
            stop - start > 1 and self._low(stop - 1) in PERSONS and joined(self._tokens, start, stop - 1) in LOCATIONS
        ):
            stop -= 1  # the United States Ambassador
        if self._low(stop - 1) in PEOPLES and not titled and self._low(start) not in GIVEN:
            return None
        if stop - start == 1 and not self._stands_alone(start, titled):
            return None
        return Name(start, stop, titled)

    def _low(self, number: int) -> str:
        return self._tokens[number].low.rstrip(".")

    def _is_a_time(self, run: Run) -> bool:
        """Whether the run tells when: World War II, Christmas Eve, October 1."""
        found = self._tokens[run.start : run.stop]
        if found[-1].low in EVENTS or (len(found) > 1 and ROMAN.match(found[-1].word) and found[-2].low in EVENTS):
            return True
        if len(found) > 1 and found[-1].low in FEASTS and found[0].low not in GIVEN:
            return True
        when = STAYING | _TIMES if len(found) > 1 else STAYING
        return all(token.low in when or token.word.isdigit() for token in found)

    def _after_titles(self, run: Run) -> int:
        """Where the name begins behind titles, peoples and words that owe their capital to their place."""
        start = run.start
        words = [self._low(number) for number in range(run.start, run.stop)]
        heading = words[-1] in PLACES or words[-1] in ORGANISATIONS or "of" in words
        while start < run.stop - 1:
            low = self._low(start)
            title = low in TITLES and not (heading and low in WEAK_TITLES)
            people = low in PEOPLES and not heading and low not in GIVEN
            if joined(self._tokens, start, run.stop) in LOCATIONS:
                break
            if not title and not people and not self._owes_its_capital(start, run.stop):
                break
            start += 1
        return start

    def _owes_its_capital(self, number: int, stop: int) -> bool:
        """Whether the word only begins a sentence, and is no part of the name that goes on behind it."""
        low = self._tokens[number].low
        if not self._tokens[number].first or low in KNOWN or low in self._known:
            return False
        if low in COMMON or low in PERSONS or low.removesuffix("s") in PERSONS or low in self._lower:
            return True
        following = self._tokens[number + 1].low
        return low.endswith(_DERIVED) or (low.endswith(_ROLES) and (following in GIVEN or stop - number > 2))

    def _stands_alone(self, number: int, titled: bool) -> bool:
        """Whether a single capitalised word is a name."""
        token = self._tokens[number]
        low = self._low(number)
        people = any(part in PEOPLES for part in low.split("-"))
        if people or ROMAN.match(token.word) or (low not in KNOWN and self._touches_a_placeholder(number)):
            return False
        if titled:
            return low not in TITLES
        if has_actor(self._tokens, number) and not determined(self._tokens, number):
            return True
        if low in _ARTICLES or low in STAYING or (low in GENERIC and low not in LOCATIONS) or len(low) < 2:
            return False
        return self._begins_as_a_name(number) if token.first else self._is_a_name_inside(number)

    def _begins_as_a_name(self, number: int) -> bool:
        """Whether a word at the beginning of a sentence is a name."""
        low = self._low(number)
        if low in COMMON or low in self._lower:
            return low in self._known and shows_a_name(self._tokens, number)
        known = low in KNOWN or low in self._known or is_acronym(self._tokens[number].word)
        return known or shows_a_name(self._tokens, number)

    def _is_a_name_inside(self, number: int) -> bool:
        """Whether a capitalised word within a sentence is a name."""
        low = self._low(number)
        before = self._tokens[number - 1].low if number else ""
        if low in _TIMES and before in _WHEN:
            return False
        if is_adjective(self._tokens, number) or low.endswith("ism"):
            return False
        if determined(self._tokens, number):
            return low not in COMMON and low not in self._lower
        if low not in COMMON or low in NAMES_TOO:
            return True
        return follows_a_noun(self._tokens, number) or shows_a_name(self._tokens, number)

    def _touches_a_placeholder(self, number: int) -> bool:
        """Whether a placeholder follows: what stands before a name that was found is no part of it."""
        after = self._tokens[number + 1].gap if number + 1 < len(self._tokens) else ""
        return after.startswith(" ") and PLACEHOLDER.match(after, 1) is not None

    def _is_one_of(self, run: Run, surnames: set[str]) -> bool:
        token = self._tokens[run.start]
        if run.stop - run.start > 1 or token.low not in surnames or determined(self._tokens, run.start):
            return False
        return token.low not in STAYING and (not token.first or shows_a_name(self._tokens, run.start))
