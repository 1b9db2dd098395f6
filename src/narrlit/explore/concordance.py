"""`narrlit.explore.concordance`: exact words and phrases in context (KWIC), as concordancers list them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from narrlit.data.schema import normal_form
from narrlit.errors import OptionError

CONTEXT = 60
"""Most characters before and after a match."""
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Beginnings of the Unicode names of characters whose scripts put no spaces between words."""


class Occurrence(NamedTuple):
    """Match of a phrase in a text.

    Attributes:
        row: row of the text.
        start: its first character.
        end: the character after it.
        before: characters before it, on one line.
        match: the matched words.
        after: characters after it.
    """

    row: int
    start: int
    end: int
    before: str
    match: str
    after: str


def occurrences(texts: Sequence[str], phrase: str) -> Iterator[Occurrence]:
    r"""Find whole words, one after the other, in texts, whatever their case and the characters between them.

    Args:
        texts: N texts.
        phrase: words; `*` stands for any letters, also none: `slipper*`, and `|` for or: `wolf | fox`.

    Yields:
        The matches, by text and place.

    Raises:
        OptionError: if the phrase has no word.

    >>> texts = ["She lost a slipper. Glass slippers!", "No shoe at all."]
    >>> [found.match for found in occurrences(texts, "slipper*")]
    ['slipper', 'slippers']
    >>> [found.match for found in occurrences(texts, "lost a")], list(occurrences(texts, "hoe"))
    (['lost a'], [])
    """
    pattern = phrase_pattern(phrase)
    for row, text in enumerate(texts):
        for match in pattern.finditer(text):
            start, end = match.span()
            before, after = _line(text[max(0, start - CONTEXT) : start]), _line(text[end : end + CONTEXT])
            if start > CONTEXT:  # without a word that is cut
                before = before.partition(" ")[2] or before
            if end + CONTEXT < len(text):
                after = after.rpartition(" ")[0] or after
            yield Occurrence(row, start, end, before, _line(match[0]), after)


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Write a phrase, or several with `|` between them, as a pattern.

    Words are whole in scripts with spaces; between them stand any characters but letters.

    Raises:
        OptionError: if the phrase has no word.
    """
    patterns = [_pattern(words) for words in map(_words, normal_form(phrase).split("|")) if words]
    if not patterns:
        raise OptionError("empty_query")
    return re.compile("|".join(patterns), re.IGNORECASE)


def _words(phrase: str) -> list[str]:
    return [word for word in phrase.split() if any(map(str.isalnum, word))]


def _pattern(words: Sequence[str]) -> str:
    parts = []
    for word in words:
        body = r"\w*".join(map(re.escape, re.split(r"\*+", word)))
        first, last = word[0], word[-1]
        start = r"(?<!\w)" if _is_spaced(first) else ""
        end = r"(?!\w)" if _is_spaced(last) else ""
        parts.append(f"{start}{body}{end}")
    return r"[\W_]+?".join(parts)


def _is_spaced(character: str) -> bool:
    """Return True for a letter or digit of a script that puts spaces between words."""
    return character.isalnum() and not unicodedata.name(character, "").startswith(UNSPACED)


def _line(text: str) -> str:
    """Write a text on one line, of the same length."""
    return re.sub(r"\s", " ", text)
