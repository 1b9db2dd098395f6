"""Coverage: the share of the stories' words that an encoder reads; no torch."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEXTS, LEAST = 2, 4
"""Columns `texts` and `least` in a row of coverage; the columns are the attributes of `Coverage`, in order."""


@dataclass(frozen=True)
class Coverage:
    """Share of distinct texts that was read; for encoders of sentences or views, the texts are these.

    Attributes:
        words: number of words of all texts.
        read: number of words that were read, for a truncated text estimated from its tokens.
        texts: number of texts.
        long: number of texts longer than `max_length`.
        least: smallest share of a single text that was read, 0 to 1.
    """

    words: int = 0
    read: float = 0
    texts: int = 0
    long: int = 0
    least: float = 1

    def __add__(self, other: "Coverage") -> "Coverage":
        """Combine the coverage of two collections."""
        return Coverage(
            self.words + other.words,
            self.read + other.read,
            self.texts + other.texts,
            self.long + other.long,
            min(self.least, other.least),
        )

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64]) -> "Coverage":
        """Combine the coverage (N, 5) of N stories: each row has the attributes of one story, in order."""
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
        """Number of truncated texts, and share of words read, as plain data."""
        return {"truncated": self.long if self.least < 1 else 0, "words_read": round(self.share, 4)}

    def summary(self, limit: int, one: str = "story", several: str = "stories") -> str:
        """Describe how texts longer than `limit` tokens were read, in one line.

        >>> Coverage(1000, 963.5, 479, 12, 0.41).summary(256)
        '96.3 % of words read: 12 of 479 stories were cut at 256 tokens, the longest after 41 %'
        """
        name = one if self.texts == 1 else several
        present, past = ("is", "was") if self.long == 1 else ("are", "were")
        count = f"{self.long} of {self.texts} {name}"
        if self.least == 1:
            return f"{count} {present} longer than {limit} tokens: read in windows"
        percentage = math.floor(1000 * self.share) / 10
        return (
            f"{percentage} % of words read: {count} {past} cut at {limit} tokens, "
            f"the longest after {100 * self.least:.0f} %"
        )


MULTILINGUAL = 60_000
"""Vocabulary size from which a model is assumed to be multilingual; BERT's English vocabulary has 30,522 tokens."""
MIXED_SHARE = 0.05
"""Share of texts in other languages than the most frequent one, from which a collection is mixed."""


def language_warning(vocabulary: int, languages: Mapping[str, int]) -> str | None:
    """Warn about texts in languages that an encoder can't read, and of texts in several.

    A small vocabulary is assumed to be English only.

    Args:
        vocabulary: number of tokens in the encoder's vocabulary.
        languages: number of texts in each language, as counted by `detect_languages`.

    Returns:
        One line, or None if there is nothing to warn about.
    """
    total = sum(languages.values())
    not_english = Counter({language: count for language, count in languages.items() if language != "en"})
    if not_english and vocabulary < MULTILINGUAL:
        most_frequent = ", ".join(language for language, _ in not_english.most_common(5))
        return (
            f"warning: {100 * not_english.total() / total:.0f} % of the stories are not in English "
            f"({most_frequent}), and the model has a vocabulary of one language ({vocabulary:,} tokens): use a "
            "multilingual model, such as sentence-transformers/paraphrase-multilingual-mpnet-base-v2"
        )
    shares = ", ".join(f"{100 * count / total:.0f} % {name}" for name, count in Counter(languages).most_common(5))
    if total - max(languages.values(), default=0) < MIXED_SHARE * max(total, 1):
        return None
    return (
        f"warning: the stories are in several languages ({shares}): versions in two of them are found if the model "
        "was trained on translations, but not by their words (measures fused and lexical)"
    )
