"""What a model writes where a text is due: a refusal, broken characters, or a placeholder."""

import re
from functools import lru_cache

from narrlit.data.fields import has_mojibake, text_fault

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IN_BRACKETS = re.compile(r"\s*(?:<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\})\s*")
_SLOT = re.compile(
    r"<[A-Za-z][^<>\n]{0,60}>|\{[A-Za-z_ ]{1,40}\}|\[(?:insert|your|name|city|place|town|date)\b[^\]\n]{0,60}\]"
    r"|lorem ipsum",
    re.IGNORECASE,
)
_LITERALS = re.compile(
    r"(?:the |new |your |english |story )*(?:story|text|summary)(?: here)?|string|str|value|placeholder|example|none"
    r"|null|todo|(?:neg )?(?:theme|structure|outcome)|plot events?|(?:event|step|item|sentence|string)(?: \w+)?"
)
_DEED = r"(?:help|assist|provide|create|write|generate|fulfil|fulfill|comply|continue|do that|produce|share|complete)"
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]m|i am) (?:very |so |really )?sorry,? (?:but|i\b)|sorry,? (?:but )?i (?:can|am|won)|as an ai\b"
    rf"|(?:i['’]m|i am) (?:unable|not able|not allowed|not permitted) to {_DEED}"
    rf"|i (?:can['’]t|cannot|can not|won['’]t|will not|must decline to) {_DEED}|i['’]m an ai\b|i am an ai\b)",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Whether a text declines what was asked, instead of a story.

    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("I can't forget that summer.")
    (True, False)
    """
    return _REFUSAL.match(text) is not None


def is_broken(text: str) -> bool:
    """Whether a text has half surrogate pairs, control characters, or what a wrong decoding leaves."""
    return (
        (bool(text.strip()) and text_fault(text, "") is not None) or bool(_CONTROL.search(text)) or has_mojibake(text)
    )


def is_placeholder(text: str, prompt: str) -> bool:
    """Whether a text stands for one that was not written: a template's own words, slots not filled, lorem ipsum.

    >>> [is_placeholder(text, "Write.") for text in ("...", "<English story summary>", "He told a story.")]
    [True, True, False]
    """
    words = _words(text)
    if not words:
        return bool(text.strip())
    literal = _LITERALS.fullmatch(words) is not None or words in _literals_of(prompt)
    return literal or _IN_BRACKETS.fullmatch(text) is not None or _SLOT.search(text) is not None


@lru_cache
def _literals_of(prompt: str) -> frozenset[str]:
    """What stands in brackets in a prompt, and so may stand for a value in its template; as words."""
    return frozenset(_words(found) for found in re.findall(r"<[^<>\n]{2,60}>|\[[^\[\]\n]{2,60}\]", prompt))


def _words(text: str) -> str:
    r"""A text's words alone.

    >>> _words("<Neg_theme: the Story>")
    'neg theme the story'
    """
    return " ".join(_WORD.findall(text.casefold()))
