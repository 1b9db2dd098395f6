"""What a name found by rule names: a vote from its own words, or from the words around it."""

from collections.abc import Collection, Sequence

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

_INSIDE = word_set("above across around at enters in inside into near outside reaches throughout toward towards within")
_WAYS = word_set("for from through to via")
_SERVING = frozenset({"for", "at", "with"})
_NAMING = word_set("as by called named nicknamed surnamed")
_SIDES = word_set("capital citizens city coast east invasion mayor north outskirts people south streets west")
_MEMBERS = word_set("branch employee employees member members soldiers")
_PLAYED = frozenset(["played", "portrayed", "voiced"])
_FAMILIES = word_set("family brothers sisters siblings couple twins clan")
_PERSONAL = word_set("who whose whom played portrayed")
_BEFORE_NOUNS = word_set("a an the his her their once now")
_COPULAS = word_set("is was has had")
_SURROUNDINGS = PLACES - VERBS
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
        (before.low == "of" and tokens[name.start - 2].capital, "Location"),  # Isaura of Tamsel
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
    if after.gap == ", ":
        return _apposition_vote(tokens, name.stop)
    beside = after.gap == " "
    numbered = any(token.word.isdigit() for token in tokens[name.start : name.stop])
    acting = after.low in VERBS and after.low not in _COPULAS and not determined(tokens, name.start) and not numbered
    said: tuple[tuple[bool, Kind | None], ...] = (
        (after.gap == " (" and after.low in _PLAYED, "Character"),
        (beside and after.low in _FAMILIES, "Character"),
        (beside and not after.capital and after.low in _SURROUNDINGS, "Location"),  # "the Barbagia region"
        (beside and acting, "Character"),
    )
    return next((vote for holds, vote in said if holds), None)


def _apposition_vote(tokens: Sequence[Token], number: int) -> Kind | None:
    """What stands between commas behind a name: who ..., a widow, a town in the south."""
    after = tokens[number]
    if after.low in _PERSONAL:
        return "Character"
    if after.low == "where" or (after.capital and after.low in LOCATIONS):  # "Austin, Texas"
        return "Location"
    vote = None
    if after.low not in _BEFORE_NOUNS:
        return vote
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
    heard = {word for name_words, vote in zip(words, given, strict=True) if vote for word in name_words}
    all_words = {word for name_words in words for word in name_words}
    return [
        vote or (None if heard.intersection(name_words) else _guess(tokens, name, name_words, all_words))
        for name, name_words, vote in zip(names, words, given, strict=True)
    ]


def _guess(tokens: Sequence[Token], name: Name, words: Sequence[str], all_words: Collection[str]) -> Kind | None:
    """What a name looks like, of whose words none has got a vote."""
    if determined(tokens, name.start):
        family = words[-1].endswith("s") and words[-1][:-1] in all_words and words[-1][:-1] not in ORGANISATIONS
        return "Character" if family and len(words) == 1 else None  # the Haddons, where there is a Haddon
    if words[0] in MOSTLY_PLACES:
        return "Location"
    own = tokens[name.start : name.stop]
    plain = all(token.word.replace("-", "").isalpha() and not token.word.isupper() for token in own)
    return "Character" if plain and len(words) <= _LONGEST and not any(word in TITLES for word in words) else None
