"""Passages of a story: sequences of whole sentences with about a given number of words."""

from collections.abc import Sequence

from narrlit.preprocessing.sentences import split_sentences

PASSAGE_WORDS = 25
"""Default number of words of a passage."""


def split_passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """Split a text into passages of whole sentences.

    Sentences are added to a passage as long as its length comes closer to the target number of words. A longer sentence
    is a passage by itself.

    Args:
        text: text of a story; a paragraph ends a sentence.
        words: target number of words of a passage, at least 1.

    Returns:
        The passages in order, at least one.

    >>> split_passages("A king fell ill. His sons rode out. They met a fox who spoke. All came home.", words=8)
    ['A king fell ill. His sons rode out.', 'They met a fox who spoke. All came home.']
    """
    passages: list[str] = []
    current: list[str] = []
    length = 0
    for sentence in split_sentences(text):
        num_words = len(sentence.split())
        if current and abs(length + num_words - words) > abs(length - words):
            passages.append(" ".join(current))
            current, length = [], 0
        current.append(sentence)
        length += num_words
    if current:
        passages.append(" ".join(current))
    return passages or [text]


def positions(passages: Sequence[object]) -> list[float]:
    """Compute the relative position of the middle of each passage in its story, between 0 and 1.

    >>> positions(["The beginning.", "The end."])
    [0.25, 0.75]
    """
    return [(number + 0.5) / len(passages) for number in range(len(passages))]
