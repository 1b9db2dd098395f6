"""Passages of a story: whole sentences, joined until they have about as many words as wanted."""

from collections.abc import Sequence

from narrlit.preprocessing.sentences import split_sentences

WORDS = 25
"""Words of a passage."""


def split_passages(text: str, words: int = WORDS) -> list[str]:
    """Split a text into passages of whole sentences.

    Sentences are joined as long as this brings the passage nearer to the wanted number of words; a longer sentence is
    a passage by itself.

    Args:
        text: a story; its paragraphs end sentences.
        words: of a passage, 1 or more.

    Returns:
        The passages in order, one at least.

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
