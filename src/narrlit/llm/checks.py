"""Checks that compare generated texts with their source, keyed by the reason of a rejection."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from narrlit.data.schema import normal_form, normal_text
from narrlit.preprocessing.languages import detect_language
from narrlit.preprocessing.sentences import STARTERS

GRAM = 5
MAX_OVERLAP = 0.2
"""Maximum share of word 5-grams that a negative may have in common with its anchor or another candidate."""

MAX_VIEW_OVERLAP = 0.8
"""Maximum share of a story's word 5-grams that a view may repeat."""

SHORT_STORY = 500
"""Length in characters below which views may be as long as those of a story of this length: they have five events."""

NAMES_CAPITALIZED = ("de", "lb")
"""Languages that capitalize every noun, so that proper names can't be recognized."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffd]")
_SLOT = re.compile(
    r"\s*(?:<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\})\s*\Z|.*(?:<[A-Za-z][^<>\n]{0,60}>|\{[A-Za-z_ ]{1,40}\}"
    r"|\[(?:insert|your|name|city|place|town|date)\b[^\]\n]{0,60}\]|lorem ipsum)",
    re.IGNORECASE | re.DOTALL,
)
_LITERAL = re.compile(
    r"(?:the |new |your |english |story )*(?:story|text|summary)(?: here)?|string|str|value|placeholder|example|none"
    r"|null|todo|(?:neg )?(?:theme|structure|action|outcome)|plot events?|(?:event|step|item|sentence)(?: \w+)?|"
)
_DEED = r"(?:help|assist|provide|create|write|generate|fulfil|fulfill|comply|continue|do that|produce|share|complete)"
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]m|i am) (?:very |so |really )?sorry,? (?:but|i\b)|sorry,? (?:but )?i (?:can|am|won)|as an ai\b"
    rf"|(?:i['’]m|i am) (?:unable|not able|not allowed|not permitted) to {_DEED}"
    rf"|i (?:can['’]t|cannot|can not|won['’]t|will not|must decline to) {_DEED}|(?:i['’]m|i am) an ai\b)",
    re.IGNORECASE,
)
_CALENDAR = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december christmas easter english"
)
_TITLES = "mr mrs ms dr sir lord lady god king queen prince princess father mother captain doctor professor uncle aunt"
_NO_NAMES = frozenset([*map(str.lower, STARTERS), *_CALENDAR.split(), *_TITLES.split()])
"""Capitalized words that are not names, in lower case."""


@dataclass
class SourceStory:
    """Story from which texts are generated, and the limits of the checks.

    A new text must not repeat `others`: the other stories of the row, and accepted texts.
    """

    text: str
    others: list[str] = field(default_factory=list)
    length_ratio: float = 2.0
    allow_names: bool = False


Check = Callable[[Sequence[str], SourceStory], bool]
"""Function from a reply's texts and their source to True if the reply has the fault."""


@lru_cache(maxsize=4096)
def ngrams(text: str) -> frozenset[tuple[str, ...]]:
    """Collect the word 5-grams of a text; all words of a shorter text form one n-gram."""
    words = _WORD.findall(normal_text(text))
    starts = range(max(1, len(words) - GRAM + 1))
    return frozenset(tuple(words[start : start + GRAM]) for start in starts)


def ngram_overlap(one: str, other: str) -> float:
    """Compute the number of common word 5-grams as a share of those of the text that has fewer."""
    grams, other_grams = ngrams(one), ngrams(other)
    return len(grams & other_grams) / min(len(grams), len(other_grams))


def repeats(one: str, other: str) -> bool:
    """Test for texts that are equal, or have too many word 5-grams in common."""
    return normal_text(one) == normal_text(other) or ngram_overlap(one, other) > MAX_OVERLAP


@lru_cache(maxsize=4096)
def _long_sentences(text: str) -> frozenset[str]:
    """Collect the normalized sentences of at least five words."""
    sentences = map(normal_text, _SENTENCE_END.split(text))
    return frozenset(sentence for sentence in sentences if len(_WORD.findall(sentence)) >= GRAM)


@lru_cache(maxsize=4096)
def proper_names(text: str) -> frozenset[str]:
    """Find capitalized words that never occur in lower case; the first word of a sentence only before another one.

    >>> sorted(proper_names("The old man met Anna in Oslo. Then the man left."))
    ['Anna', 'Oslo']
    """
    capitalized: set[str] = set()
    no_names = set(_NO_NAMES)
    for sentence in _SENTENCE_END.split(normal_form(text)):
        words = _WORD.findall(sentence)
        no_names.update(word for word in words if word[0].islower())
        begins_with_name = all(word[0].isupper() for word in words[:2])
        if not begins_with_name:
            words = words[1:]
        capitalized.update(word for word in words if word[0].isupper())
    names = {re.sub("['’]s$", "", word) for word in capitalized}
    return frozenset(name for name in names if len(name) > 1 and name.lower() not in no_names)


def is_refusal(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for a text that declines the task: "I'm sorry, but I can't ..."."""
    return any(map(_REFUSAL.match, texts))


def is_placeholder(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for a placeholder instead of a text: "...", "<story>", "your story here", "[name]"."""
    for text in filter(str.strip, texts):
        words = _WORD.findall(text.casefold().replace("_", " "))
        if _LITERAL.fullmatch(" ".join(words)) or _SLOT.match(text):
            return True
    return False


def is_near_copy(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for a text that repeats the anchor's wording or one of its sentences."""
    sentences = _long_sentences(source.text)
    return any(repeats(text, source.text) or _long_sentences(text) & sentences for text in texts)


def shares_names(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for proper names that text and anchor share, except in languages that capitalize every noun."""
    if source.allow_names or detect_language(source.text) in NAMES_CAPITALIZED:
        return False
    text = " ".join(texts)
    names, anchor_names = proper_names(text), proper_names(source.text)
    words, anchor_words = _WORD.findall(text), _WORD.findall(source.text)
    return not (names.isdisjoint(anchor_words) and anchor_names.isdisjoint(words))


def has_other_length(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for a story that is much longer or shorter than its anchor."""
    length, anchor_length = len(normal_text(" ".join(texts))), len(normal_text(source.text))
    shorter, longer = sorted((length, anchor_length))
    return longer > source.length_ratio * max(1, shorter)


def has_other_language(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for another language, or for more than 2 % letters of a script that the story does not use."""
    text = " ".join(texts)
    languages = {detect_language(text), detect_language(source.text)} - {None}
    scripts, known = _scripts(text), _scripts(source.text)
    foreign = sum(count for script, count in scripts.items() if script not in known)
    return len(languages) > 1 or foreign > 0.02 * scripts.total()


def _scripts(text: str) -> Counter[str]:
    """Count the letters of a text by their script."""
    scripts = Counter[str]()
    for letter in filter(str.isalpha, text):
        script, _, _ = unicodedata.name(letter, "?").partition(" ")
        scripts[script] += 1
    return scripts


def copies_story(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for views that repeat the story instead of summarizing it."""
    story_grams = ngrams(source.text)
    limit = MAX_VIEW_OVERLAP * len(story_grams)
    plot_events = " ".join(texts[1:-1])
    return any(len(ngrams(text) & story_grams) > limit for text in [*texts, plot_events])


def is_longer_than_story(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for views that together are much longer than the story."""
    length, story_length = len(normal_text(" ".join(texts))), len(normal_text(source.text))
    return length > source.length_ratio * max(SHORT_STORY, story_length)


def is_duplicate(texts: Sequence[str], source: SourceStory) -> bool:
    """Test for a text that repeats another story of the row, or an accepted text."""
    return any(repeats(text, other) for text, other in product(texts, source.others))


# Checks in the order in which they run
_COMMON: dict[str, Check] = {
    "empty": lambda texts, _: not all(map(str.strip, texts)),
    "broken characters": lambda texts, _: any(map(_CONTROL.search, texts)),
    "refusal": is_refusal,
    "placeholder": is_placeholder,
}
NEGATIVE_CHECKS: dict[str, Check] = {
    **_COMMON,
    "near-copy of the anchor": is_near_copy,
    "names of the anchor": shares_names,
    "length": has_other_length,
    "language": has_other_language,
    "duplicate": is_duplicate,
}
VIEW_CHECKS: dict[str, Check] = {
    **_COMMON,
    "copy of the story": copies_story,
    "length": is_longer_than_story,
    "repetition": lambda texts, _: len(set(map(normal_text, texts))) < len(texts),
    "language": has_other_language,
}
