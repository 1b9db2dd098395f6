"""What a name found by rule names: a vote from its own words, or from the words around it."""

from collections import Counter
from collections.abc import Sequence

from narrlit.text.pseudonyms.evidence import determined, has_actor
from narrlit.text.pseudonyms.gazetteer import GIVEN, LOCATIONS, MOSTLY_PLACES
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
from narrlit.text.pseudonyms.runs import is_acronym
from narrlit.text.pseudonyms.tokens import Token

_INSIDE = word_set("above across around at in inside into near outside throughout toward towards within")
_WAYS = word_set("for from through to via")
_SERVING = frozenset({"for", "at", "with"})
_NAMING = word_set("as by called named nicknamed surnamed")
_SIDES = word_set("capital citizens city coast east invasion mayor north outskirts people south streets west")
_MEMBERS = word_set("branch employee employees member members soldiers")
_PLAYED = frozenset(["played", "portrayed", "voiced"])
_LONGEST = 3  # words of a name that looks like a person's
_FEW = 5  # words of an apposition that are looked through for its noun


def own_vote(tokens: Sequence[Token], name: Name) -> Kind | None:
    """What the name's own words, a title before them or an actor's name behind them say."""
    words = [token.low for token in tokens[name.start : name.stop]]
    first, last = words[0], words[-1].rstrip(".")
    several = len(words) > 1
    actor = has_actor(tokens, name.stop - 1) and tokens[name.stop].low not in LOCATIONS
    saint = first in ("saint", "st.", "san") and last in GIVEN
    said: tuple[tuple[bool, Kind | None], ...] = (
        (actor, "Character"),
        (" ".join(words).rstrip(".") in LOCATIONS, "Location"),
        ("of" in words or "for" in words, _headed_vote(first, words)),
        (name.titled or (first in GIVEN and last not in ORGANISATIONS), "Character"),
        (several and not saint and (last in PLACES or first in LONE_HEADS), "Location"),
        (several and last in ORGANISATIONS, "Organization"),
        (several and last in LOCATIONS, "Location"),  # Weimar Germany
        (not several and is_acronym(tokens[name.start].word), "Organization"),
    )
    return next((vote for holds, vote in said if holds), None)


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
    earlier = tokens[name.start - 2].low if name.start > 1 else ""
    several = name.stop - name.start > 1
    there = not tokens[name.stop - 1].owning  # "in London", and not "in London's"
    said: tuple[tuple[bool, Kind | None], ...] = (
        (before.low == "by" and earlier in _PLAYED, "Character"),
        (before.low == "in" and earlier in CONFIDING, "Character"),
        (before.low in _NAMING, _noun_vote(earlier)),
        (before.low in _SERVING and earlier in PERSONS and several, "Organization"),
        (before.low == "of", _of_vote(earlier)),
        (there and before.low in _INSIDE and not (several and before.low == "at"), "Location"),
        (there and before.low in _WAYS, _way_vote(before.low, earlier)),
        (not before.owning, _noun_vote(before.low)),
        (before.low in HANDLED and not determined(tokens, name.start), "Character"),
    )
    return next((vote for holds, vote in said if holds and vote is not None), None)


def _of_vote(earlier: str) -> Kind | None:
    """What the noun in "NOUN of NAME" says: the Duke of Verona, a friend of Anna, the port of Varna."""
    if earlier in TITLES or earlier in (PLACES - OWNED) | PLACE_HEADS | _SIDES | EVENTS:
        return "Location"
    if earlier in _MEMBERS:
        return "Organization"
    return "Character" if earlier in PERSONS else None


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

    A name that gets none anywhere in the text is taken for a person's if it looks like one: most without a mark are.
    """
    given = [own_vote(tokens, name) or context_vote(tokens, name) for name in names]
    words = [tuple(token.low for token in tokens[name.start : name.stop]) for name in names]
    heard: Counter[str] = Counter()
    for name_words, vote in zip(words, given, strict=True):
        if vote:
            heard.update(set(name_words))
    return [
        vote or _guess(tokens, name, name_words, heard)
        for name, name_words, vote in zip(names, words, given, strict=True)
    ]


def _guess(tokens: Sequence[Token], name: Name, words: Sequence[str], heard: Counter[str]) -> Kind | None:
    """What a name without a vote looks like, where no word of it has got a vote elsewhere."""
    if any(heard[word] for word in words) or determined(tokens, name.start):
        return None
    if words[0] in MOSTLY_PLACES:
        return "Location"
    own = tokens[name.start : name.stop]
    plain = all(token.word.replace("-", "").isalpha() and not token.word.isupper() for token in own)
    return "Character" if plain and len(words) <= _LONGEST and not any(word in TITLES for word in words) else None
