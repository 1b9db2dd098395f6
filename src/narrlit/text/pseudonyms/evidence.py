"""What the words around a capitalised word at the beginning of a sentence say: is it a name?"""

from collections.abc import Sequence

from narrlit.text.pseudonyms.gazetteer import GIVEN
from narrlit.text.pseudonyms.lexicon import COMMON, FUNCTION, NAMES_TOO, word_set
from narrlit.text.pseudonyms.placeholders import PLACEHOLDER
from narrlit.text.pseudonyms.roles import HANDLED, PERSONS, VERBS
from narrlit.text.pseudonyms.tokens import Token

_DETERMINERS = word_set("a an any each every her his its my no our some the their these this those your")
_APPOSITIONS = word_set(
    "a aged along also an called formerly known nicknamed now once or played portrayed which while who whom whose with"
)
_AUXILIARIES = word_set("also can could did does had has is may might must now should then was will would")
_ADVERBS = word_set("again also always eventually finally however later never now often once soon still then")
_PEOPLES = ("ian", "ean", "ese", "ish", "ite", "yz")
_PLURALS = ("ers", "ors", "ists", "ians", "ments", "ions", "ies", "men", "women", "ings", "ees", "ants", "ents", "ices")
_DERIVED = tuple(
    word_set(
        "able ance dom ed ence ess esty ety ful hood ible ical ice ing ism ity ive less ly ment ness ous ship sion "
        "tion ure"
    )
)


def determined(tokens: Sequence[Token], number: int) -> bool:
    """Whether an article or the like stands before the word: "the Nautilus"."""
    return number > 0 and not tokens[number].gap.strip(" \n\"“'‘") and tokens[number - 1].low in _DETERMINERS


def shows_a_name(tokens: Sequence[Token], number: int) -> bool:
    """Whether what follows the word follows names: a verb of one person, a possessed thing, "(", ", who"...

    Plural nouns and words formed like adjectives or like abstract nouns are none at the beginning of a sentence,
    whatever follows.
    """
    token = tokens[number]
    formed = token.low.endswith(_PLURALS + _DERIVED) and token.low not in NAMES_TOO
    if number + 1 >= len(tokens) or formed:
        return False
    after = tokens[number + 1]
    if token.owning:
        return token.low not in COMMON or after.low not in FUNCTION
    if has_actor(tokens, number) or (after.gap == ", " and _apposed(tokens, number + 1)):
        return True
    # "Drums sounded" are several drums, "Boris sounds" is one Boris.
    several = token.low.endswith("s") and not token.low.endswith(("ss", "us"))
    return after.gap == " " and (not several or after.low.endswith("s")) and _acts(tokens, number + 1)


def has_actor(tokens: Sequence[Token], number: int) -> bool:
    """Whether a name or the like follows the word in brackets: "Vishal (Dheer)", "Vishal (played by ...)"."""
    if number + 1 >= len(tokens) or tokens[number].owning:
        return False
    after = tokens[number + 1]
    if not after.gap.startswith(" ("):
        return False
    return after.capital or after.low in _APPOSITIONS or PLACEHOLDER.search(after.gap) is not None


def follows_a_noun(tokens: Sequence[Token], number: int) -> bool:
    """Whether the word before says that a person's name comes: "his wife Hope", "marries Hope"."""
    before = tokens[number - 1].low if number and tokens[number].gap == " " else ""
    return before in PERSONS or before in HANDLED


def is_adjective(tokens: Sequence[Token], number: int) -> bool:
    """Whether the word is formed like a people's name, and tells of what kind a thing is: "Thracian gold"."""
    token = tokens[number]
    if number + 1 >= len(tokens) or token.low in GIVEN or token.owning or not token.low.endswith(_PEOPLES):
        return False
    after = tokens[number + 1]
    plain = (
        not after.capital
        and after.low not in VERBS
        and after.low not in FUNCTION
        and not after.low.endswith(("ly", "ed"))
    )
    return after.gap == " " and plain


def _apposed(tokens: Sequence[Token], number: int) -> bool:
    """Whether the words behind a comma go on as they do behind a name: "Betty, a widow", "Sid, Russ and Jerry"."""
    after = tokens[number]
    if after.low in _APPOSITIONS or after.word.isdigit():
        return True
    rest = tokens[number + 1 : number + 3]
    return after.capital and after.low not in FUNCTION and any(t.low == "and" or t.gap == ", " for t in rest)


def _acts(tokens: Sequence[Token], number: int) -> bool:
    """Whether the words are what one person does, or join him or her with another."""
    after = tokens[number]
    beyond = tokens[number + 1] if number + 1 < len(tokens) else None
    if after.low == "and":
        return beyond is not None and beyond.gap == " " and _named(beyond)
    if after.low in VERBS or after.low in _AUXILIARIES:
        return True
    adverb = after.low.endswith("ly") or after.low in _ADVERBS
    return adverb and beyond is not None and (beyond.low in VERBS or beyond.low in _AUXILIARIES)


def _named(token: Token) -> bool:
    plain = token.low not in COMMON or token.low in NAMES_TOO
    return token.low in GIVEN or (token.capital and plain) or token.low in ("his", "her")
