"""What a name found by rule names: a vote from its own words, or from the words around it."""

import re
from collections import Counter
from collections.abc import Sequence

from narrlit.text.pseudonyms.evidence import determined
from narrlit.text.pseudonyms.gazetteer import GIVEN, LOCATIONS
from narrlit.text.pseudonyms.lexicon import FUNCTION, TITLES, word_set
from narrlit.text.pseudonyms.mentions import Kind
from narrlit.text.pseudonyms.names import Name
from narrlit.text.pseudonyms.roles import (
    BODY_HEADS,
    CONFIDING,
    EVENTS,
    HANDLED,
    LONE_HEADS,
    MOVING,
    ORGANISATIONS,
    OWNED,
    PERSONS,
    PLACE_HEADS,
    PLACES,
    VERBS,
)
from narrlit.text.pseudonyms.tokens import Token

_ACRONYM = re.compile(r"(?:[A-Z]\.?){2,5}\Z")
_INSIDE = word_set("in into near across throughout within outside around at inside above toward towards")
_WAYS = word_set("to from for via through")
_SERVING = frozenset({"for", "at", "with"})
_REACHED = word_set("leave leaves left reach reaches reached visit visits visited enter enters entered")
_NAMING = word_set("named called nicknamed surnamed by as")
_SIDES = word_set("north south east west outskirts capital coast streets people city mayor citizens invasion")
_MEMBERS = word_set("member members employee employees soldiers branch")
_PLAYED = frozenset(["played", "portrayed", "voiced"])
_FEW = 5  # words of an apposition that are looked through for its noun


def own_vote(tokens: Sequence[Token], name: Name) -> Kind | None:
    """What the name's own words, or a title before them, say."""
    words = [token.low for token in tokens[name.start : name.stop]]
    several = len(words) > 1
    if " ".join(words).rstrip(".") in LOCATIONS:
        return "Location"
    if "of" in words or "for" in words:
        return _headed_vote(words[0], words)
    if name.titled or (words[0] in GIVEN and words[-1] not in ORGANISATIONS):
        return "Character"
    if words[0] in ("saint", "st.", "san") and words[-1] in GIVEN:
        return None
    if several and (words[-1] in PLACES or words[0] in LONE_HEADS):
        return "Location"
    if several and words[-1].rstrip(".") in ORGANISATIONS:
        return "Organization"
    if len(words) == 1 and _ACRONYM.match(tokens[name.start].word) and tokens[name.start].word.isupper():
        return "Organization"
    return None


def _headed_vote(head: str, words: Sequence[str]) -> Kind | None:
    if head in GIVEN:
        return "Character"
    if any(word in BODY_HEADS and word not in PLACE_HEADS for word in words):
        return "Organization"
    return "Location" if any(word in PLACE_HEADS for word in words) else None


def context_vote(tokens: Sequence[Token], name: Name) -> Kind | None:
    """What the words before and after the name say."""
    before = tokens[name.start - 1] if name.start else None
    near = tokens[name.start].gap if before else ""
    if before and not near.strip(" \"“'‘"):
        vote = _vote_before(tokens, name, before)
        if vote:
            return vote
    elif before and near == ", " and before.low in PERSONS:
        return "Character"
    elif before and near == " (" and before.capital and tokens[name.stop : name.stop + 1] and _closed(tokens, name):
        return "Character"  # an actor
    if name.stop < len(tokens):
        return _vote_after(tokens, name, tokens[name.stop])
    return None


def _closed(tokens: Sequence[Token], name: Name) -> bool:
    return tokens[name.stop].gap.startswith(")")


def _vote_before(tokens: Sequence[Token], name: Name, before: Token) -> Kind | None:
    earlier = tokens[name.start - 2] if name.start > 1 else None
    owning = tokens[name.stop - 1].owning
    if before.low in _NAMING and earlier is not None:
        noun = _noun_vote(earlier.low)
        return "Character" if before.low == "by" and earlier.low in _PLAYED else noun
    if before.low in _SERVING and earlier is not None and earlier.low in PERSONS and name.stop - name.start > 1:
        return "Organization"  # a doctor with Gryphon Estates
    if before.low == "of" and earlier is not None:
        return _of_vote(earlier)
    if before.low in _INSIDE and not owning:
        if before.low == "in" and earlier is not None and earlier.low in CONFIDING:
            return "Character"
        return "Location" if before.low != "at" or name.stop - name.start == 1 else None
    if before.low in _WAYS and not owning and earlier is not None:
        return _way_vote(before.low, earlier.low)
    if before.low in _REACHED and not owning:
        return None
    noun = _noun_vote(before.low)
    if noun and not before.owning:
        return noun
    return "Character" if before.low in HANDLED and not determined(tokens, name.start) else None


def _of_vote(earlier: Token) -> Kind | None:
    """What the noun in "NOUN of NAME" says: the Duke of Verona, a friend of Anna, the port of Varna."""
    if earlier.low in TITLES or earlier.low in (PLACES - OWNED) | PLACE_HEADS | _SIDES | EVENTS:
        return "Location"
    if earlier.low in _MEMBERS:
        return "Organization"
    return "Character" if earlier.low in PERSONS else None


def _way_vote(word: str, earlier: str) -> Kind | None:
    if word == "for" and earlier.startswith("work"):
        return "Organization"
    return "Location" if earlier in MOVING else None


def _noun_vote(noun: str) -> Kind | None:
    """What a noun beside a name says of it: "detective", "planet", "company"."""
    if noun in PERSONS:
        return "Character"
    if noun in PLACES:
        return "Location"
    return "Organization" if noun in ORGANISATIONS else None


def _vote_after(tokens: Sequence[Token], name: Name, after: Token) -> Kind | None:
    if tokens[name.stop - 1].owning:
        return None
    if after.gap == " (" and (after.capital or after.low in _PLAYED):
        return "Character"
    if after.gap == ", ":
        return _apposition_vote(tokens, name.stop)
    if after.gap == " " and not after.capital and after.low in PLACES:
        return "Location"  # "the Barbagia region"
    if after.gap != " " or determined(tokens, name.start):
        return None
    return "Character" if after.low in VERBS and after.low not in ("is", "was", "has", "had") else None


def _apposition_vote(tokens: Sequence[Token], number: int) -> Kind | None:
    """What stands between commas behind a name: who ..., a widow, a town in the south."""
    after = tokens[number]
    if after.low in ("who", "whose", "whom"):
        return "Character"
    if after.low == "where":
        return "Location"
    if after.capital and after.low in LOCATIONS:
        return "Location"  # "Austin, Texas"
    if after.low not in ("a", "an", "the", "his", "her", "their", "once", "now", "played", "portrayed"):
        return None
    if after.low in _PLAYED:
        return "Character"
    vote = None
    for token in tokens[number + 1 : number + 1 + _FEW]:
        if token.gap.strip() or token.low in FUNCTION:
            break
        vote = _noun_vote(token.low) or vote  # the last is the head: "a camp doctor", "a doctor's house"
    return vote


def votes(tokens: Sequence[Token], names: Sequence[Name]) -> list[Kind | None]:
    """A vote for each name of a text.

    A name that gets none anywhere in the text is taken for a person's if it looks like one: most that have no mark are.
    """
    given = [own_vote(tokens, name) or context_vote(tokens, name) for name in names]
    words = [tuple(token.low for token in tokens[name.start : name.stop]) for name in names]
    heard: Counter[str] = Counter()
    for name_words, vote in zip(words, given, strict=True):
        if vote:
            heard.update(set(name_words))
    return [
        vote or ("Character" if _looks_human(tokens, name, name_words, heard) else None)
        for name, name_words, vote in zip(names, words, given, strict=True)
    ]


def _looks_human(tokens: Sequence[Token], name: Name, words: Sequence[str], heard: Counter[str]) -> bool:
    if any(heard[word] for word in words) or determined(tokens, name.start):
        return False
    plain = all(
        token.word.replace("-", "").isalpha() and not token.word.isupper() for token in tokens[name.start : name.stop]
    )
    return plain and len(words) <= 3 and not any(word in TITLES for word in words)
