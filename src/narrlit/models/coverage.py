"""Coverage: the share of stories that an encoder reads; no torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEXTS, LEAST = 2, 4
"""Columns of `texts` and `least` in a row of coverage, which has the attributes of `Coverage` in their order."""


@dataclass(frozen=True)
class Coverage:
    """Share of different texts that was read; the texts are sentences or views where the encoder reads those.

    Attributes:
        words: words of all texts.
        read: words that were read; those of a truncated text are estimated by the share of its tokens.
        texts: number of texts.
        long: texts longer than the encoder's limit.
        least: smallest share that was read of a text.
    """

    words: int = 0
    read: float = 0
    texts: int = 0
    long: int = 0
    least: float = 1

    def __add__(self, other: "Coverage") -> "Coverage":
        """Join the coverage of two collections."""
        return Coverage(
            self.words + other.words,
            self.read + other.read,
            self.texts + other.texts,
            self.long + other.long,
            min(self.least, other.least),
        )

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64]) -> "Coverage":
        """Join the coverage of N stories, (N, 5): each row has the attributes of one story, in their order."""
        rows = rows[rows[:, TEXTS] > 0]
        if not len(rows):
            return cls()
        words, read, texts, long = rows[:, :LEAST].sum(axis=0).tolist()
        return cls(int(words), read, int(texts), int(long), float(rows[:, LEAST].min()))

    @property
    def share(self) -> float:
        """Share of all words that was read, 0 to 1."""
        return self.read / self.words if self.words else 1.0

    @property
    def record(self) -> dict[str, object]:
        """Number of texts that were cut, and the share of words that was read, as plain data."""
        return {"truncated": self.long if self.least < 1 else 0, "words_read": round(self.share, 4)}

    def summary(self, limit: int, one: str = "story", several: str = "stories") -> str:
        """Describe how texts longer than `limit` tokens were read, in one line.

        >>> Coverage(1000, 963.5, 479, 12, 0.41).summary(256)
        '96.3 % of words read: 12 of 479 stories were cut at 256 tokens, the longest after 41 %'
        """
        is_one = self.long == 1
        count = f"{self.long} of {self.texts} {one if self.texts == 1 else several}"
        if self.least == 1:
            return f"{count} {'is' if is_one else 'are'} longer than {limit} tokens: read in windows"
        percentage = math.floor(1000 * self.share) / 10
        return (
            f"{percentage} % of words read: {count} {'was' if is_one else 'were'} cut at {limit} tokens, "
            f"the longest after {100 * self.least:.0f} %"
        )


MULTILINGUAL = 60_000
"""Tokens of a vocabulary from which a model is taken to read several languages; BERT's English one has 30,522."""


def language_warning(vocabulary: int, languages: Mapping[str, int]) -> str | None:
    """Describe texts that an encoder can't read; one with a small vocabulary is taken to read English alone.

    Args:
        vocabulary: number of tokens in the encoder's vocabulary.
        languages: number of texts in each language, as `detect_languages` counts them.

    Returns:
        One line, or None if the encoder reads the languages.
    """
    foreign = {language: count for language, count in languages.items() if language != "en"}
    if not foreign or vocabulary >= MULTILINGUAL:
        return None
    percentage = 100 * sum(foreign.values()) / sum(languages.values())
    most_frequent = sorted(foreign, key=lambda language: -foreign[language])[:5]
    return (
        f"warning: {percentage:.0f} % of the stories are not in English ({', '.join(most_frequent)}), and the model "
        f"has a vocabulary of one language ({vocabulary:,} tokens): use a multilingual model, such as "
        "sentence-transformers/paraphrase-multilingual-mpnet-base-v2"
    )
