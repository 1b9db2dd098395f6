"""Languages of texts, as ISO 639-1 codes."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from py3langid import langid

from narrlit.preprocessing.words import num_words

UNSPACED_LANGUAGES = ("zh", "ja", "th", "lo", "km", "my", "bo", "dz")
"""Languages that put no spaces between words."""
LARGEST_SAMPLE, BEGINNING = 200, 2000
"""Maximum number of texts whose language is detected, evenly spaced, and number of characters of each."""
FEWEST_WORDS, LEAST_PROBABILITY = 8, 0.95
"""Minimum number of words, and minimum probability, for a language to be detected."""


@lru_cache(maxsize=1)
def _identifier() -> Any:
    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    # Stories are hardly ever written in these, but they would take probability from Chinese and Arabic.
    spoken = ("wuu", "yue", "ary", "arz")
    identifier.set_languages([code for code in identifier.nb_classes if code not in spoken])
    return identifier


@lru_cache(maxsize=4096)
def detect_language(text: str) -> str | None:
    """Detect the language of a text; None if the text is too short or ambiguous."""
    if num_words(text) < FEWEST_WORDS:
        return None
    language, probability = _identifier().classify(text)
    return str(language) if probability > LEAST_PROBABILITY else None


def detect_languages(texts: Sequence[str]) -> Counter[str]:
    """Count the languages of texts, or of a sample if there are many; texts without a clear language do not count."""
    step = max(1, math.ceil(len(texts) / LARGEST_SAMPLE))
    languages = Counter[str]()
    for text in texts[::step]:
        language = detect_language(text[:BEGINNING])
        if language is not None:
            languages[language] += 1
    return languages
