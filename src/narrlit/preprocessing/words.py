"""Words of texts in any script, by Unicode's properties of characters."""

import math
from collections.abc import Iterable
from itertools import zip_longest

import regex

_EAST_ASIAN = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}ー"
_SOUTH_EAST_ASIAN = r"\p{Line_Break=SA}\p{Tibetan}"
UNSPACED = rf"[{_EAST_ASIAN}{_SOUTH_EAST_ASIAN}]"
"""Pattern of a character of the scripts that put no spaces between words."""
CHARACTERS_PER_WORD = {_EAST_ASIAN: 2, _SOUTH_EAST_ASIAN: 4}
"""Letters that count as a word in scripts without spaces."""
# Letters with their combining marks and joiners, digits, numbers such as ½ and the underscore.
_CHARACTER = r"[\w\p{No}]"
WORD = regex.compile(rf"{_CHARACTER}+(?:['’]{_CHARACTER}+)*")
"""Word; inner apostrophes belong to it: "don't" is one word."""
_RUN = regex.compile(rf"{_CHARACTER}+")
_UNSPACED = regex.compile(UNSPACED)
_UNSPACED_RUN = regex.compile(rf"({UNSPACED}+)")
_EAST_ASIAN_TEXT = rf"[{_EAST_ASIAN}\u3001-\u3020\u3030-\u303f\uff01-\uff60]"
_BEGINNING, _END = regex.compile(rf"[“‘]?{_EAST_ASIAN_TEXT}"), regex.compile(rf"{_EAST_ASIAN_TEXT}[”’]?\Z")
_LETTERS = {regex.compile(rf"(?V1)[[{script}]&&\p{{L}}]"): n for script, n in CHARACTERS_PER_WORD.items()}


def num_words(text: str) -> int:
    """Count the words of a text, as white space divides them.

    In scripts without spaces, two letters count as a word (Chinese, Japanese), or four (Thai, Lao, Khmer, Burmese,
    Tibetan); combining marks are no letters.

    >>> num_words("A king fell ill."), num_words("国王病了。"), num_words("王様はTokyoへ行った。")
    (4, 2, 5)
    """
    if text.isascii() or _UNSPACED.search(text) is None:
        return len(text.split())
    spaced = len(WORD.findall(_UNSPACED.sub(" ", text)))
    return spaced + sum(math.ceil(len(letter.findall(text)) / n) for letter, n in _LETTERS.items())


def num_characters(text: str) -> int | None:
    """Count the characters of a text that is mostly in scripts without spaces; None for others.

    >>> num_characters("国王 病了。"), num_characters("A king fell ill.")
    (5, None)
    """
    if text.isascii() or _UNSPACED.search(text) is None:
        return None
    characters = regex.findall(r"\X", "".join(text.split()))
    unspaced = sum(_UNSPACED.match(character) is not None for character in characters)
    return len(characters) if 2 * unspaced > len(characters) else None


def index_words(text: str, shortest: int = 1) -> list[str]:
    """List the words of a text by which texts are compared: runs of letters, marks and digits.

    In scripts without spaces, each character is a word, and so are each two neighbors.

    Args:
        text: text in Unicode's form NFC.
        shortest: characters of a word at least, in scripts with spaces.

    >>> index_words("Don't stop: नमस्ते", shortest=2), index_words("国王病了。")
    (['Don', 'stop', 'नमस्ते'], ['国', '国王', '王', '王病', '病', '病了', '了'])
    """
    words: list[str] = []
    for run in _RUN.findall(text):
        for part in [run] if run.isascii() else filter(None, _UNSPACED_RUN.split(run)):
            if _UNSPACED.match(part) is None:
                words += [part] if len(part) >= shortest else []
                continue
            characters = regex.findall(r"\X", part)
            for first, second in zip_longest(characters, characters[1:]):
                words += [first] if second is None else [first, first + second]
    return words


def joined_text(parts: Iterable[str]) -> str:
    """Join parts of a text by spaces, but not between characters of East Asian scripts without spaces.

    >>> joined_text(["A king fell ill.", "He died."]), joined_text(["国王病了。", "他死了。"])
    ('A king fell ill. He died.', '国王病了。他死了。')
    """
    pieces: list[str] = []
    for part in parts:
        is_joined = not pieces or (_BEGINNING.match(part) and _END.search(pieces[-1][-2:]))
        pieces += [part] if is_joined else [" ", part]
    return "".join(pieces)
