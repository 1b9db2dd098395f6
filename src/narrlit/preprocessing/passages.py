"""Passages of a story: whole sentences that together have about a wanted number of words."""

from collections.abc import Sequence

from narrlit.preprocessing.sentences import split_sentences

WORDS = 25
"""Default number of words of a passage."""


def split_passages(text: str, words: int = WORDS) -> list[str]:
    """Split a text into passages of whole sentences.

    Sentences are added to a passage as long as this brings it nearer to the wanted number of words. A longer sentence
    is a passage by itself.

    Args:
        text: text of a story; the end of a paragraph ends a sentence.
        words: wanted number of words of a passage, at least 1.

    Returns:
        The passages in order, at least one.

    >>> split_passages("A king fell ill. His sons rode out. They met a fox who spoke. All came home.", words=8)
    ['A king fell ill. His sons rode out.', 'They met a fox who spoke. All came home.']
    """
    passages: list[str] = []
    current: list[str] = []
    length = 0
    for sentence in split_sentences(text):
        more = len(sentence.split())
        if current and abs(length + more - words) > abs(length - words):
            passages.append(" ".join(current))
            current, length = [], 0
        current.append(sentence)
        length += more
    if current:
        passages.append(" ".join(current))
    return passages or [text]


def positions(passages: Sequence[object]) -> list[float]:
    """Return the relative position of each passage's middle in its story, between 0 and 1.

    >>> positions(["The beginning.", "The end."])
    [0.25, 0.75]
    """
    return [(number + 0.5) / len(passages) for number in range(len(passages))]
