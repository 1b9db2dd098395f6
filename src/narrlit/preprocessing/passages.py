"""Passages of a story: sequences of whole sentences with about a given number of words."""

from collections.abc import Sequence

from narrlit.preprocessing.sentences import split_sentences
from narrlit.preprocessing.words import joined_text, num_words

PASSAGE_WORDS = 25
"""Default number of words of a passage."""


def split_passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """Split a text into passages of whole sentences.

    Sentences are added to a passage as long as its length comes closer to the target number of words. A longer sentence
    is a passage by itself. In scripts without spaces, words are estimated by `num_words`.

    Args:
        text: text of a story; a paragraph ends a sentence.
        words: target number of words of a passage, at least 1.

    Returns:
        The passages in order, at least one.

    >>> split_passages("A king fell ill. His sons rode out. They met a fox who spoke. All came home.", words=8)
    ['A king fell ill. His sons rode out.', 'They met a fox who spoke. All came home.']
    """
    passages: list[str] = []
    length = 0
    for sentence in split_sentences(text):
        length_of_sentence = num_words(sentence)
        if not passages or abs(length + length_of_sentence - words) > abs(length - words):
            passages.append(sentence)
            length = length_of_sentence
        else:
            passages[-1] = joined_text([passages[-1], sentence])
            length += length_of_sentence
    return passages or [text]


def positions(passages: Sequence[object]) -> list[float]:
    """Compute the relative position of the middle of each passage in its story, between 0 and 1.

    >>> positions(["The beginning.", "The end."])
    [0.25, 0.75]
    """
    return [(number + 0.5) / len(passages) for number in range(len(passages))]
