"""Scorers that need no training: what a trained embedding has to beat, and what gives a data set away.

Each takes triples and returns, for each, the scores of A and of B against the anchor; more is closer.
"""

import json
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

from narrlit.data.records import Triple

Scores = list[tuple[float, float]]

# A word keeps the apostrophe inside it: "don't" is one word, not "don" and "t".
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words(text: str) -> list[str]:
    """Lower-case words of a text, in order, with repeats.

    >>> words("Don't go, 'Anna' said. Don't.")
    ["don't", 'go', 'anna', 'said', "don't"]
    """
    return _WORD.findall(text.lower())


def random_scores(triples: Sequence[Triple]) -> Scores:
    """A fair coin for each triple, thrown by a digest of its texts: the same in any order, process and release.

    The two scores add up to 1 and are never equal, in float32 either.

    >>> [(a, b)] = random_scores([Triple("x", "y", "z")])
    >>> a + b, a == b
    (1.0, False)
    """
    scores = []
    for triple in triples:
        # JSON escapes, so no text can run into the next, and half a surrogate pair can be digested too.
        digest = blake2b(json.dumps(triple.texts).encode(), digest_size=4).digest()
        # An odd number over 2^21 is never one half, and float32 holds it exactly.
        a = (2 * (int.from_bytes(digest, "big") >> 12) + 1) / 2**21
        scores.append((a, 1 - a))
    return scores


def jaccard_scores(triples: Sequence[Triple]) -> Scores:
    """Overlap of the two texts' sets of words: shared over all, from 0 to 1; 0 if neither has a word.

    >>> jaccard_scores([Triple("a cat sat", "the cat sat", "a dog")])
    [(0.5, 0.25)]
    """
    scores = []
    for triple in triples:
        anchor, a, b = (set(words(text)) for text in triple.texts)
        scores.append((_overlap(anchor, a), _overlap(anchor, b)))
    return scores


def tfidf_scores(triples: Sequence[Triple]) -> Scores:
    """Cosine of TF-IDF vectors, from 0 to 1, over the same words as `jaccard_scores`.

    Document frequencies come from the file's texts as they stand there, repeats counted: the scores depend on the whole
    file, but on no label.

    >>> [(a, b)] = tfidf_scores([Triple("a cat sat", "the cat sat", "a dog")])
    >>> a > b
    True
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [text for triple in triples for text in triple.texts]
    if not any(map(words, texts)):
        return [(0.0, 0.0) for _ in triples]  # scikit-learn refuses an empty vocabulary
    vectors = TfidfVectorizer(analyzer=words).fit_transform(texts)
    anchors, a, b = (vectors[role::3] for role in range(3))
    to_a, to_b = (np.asarray(anchors.multiply(candidates).sum(axis=1)).ravel().tolist() for candidates in (a, b))
    return list(zip(to_a, to_b, strict=True))


def length_scores(triples: Sequence[Triple]) -> Scores:
    """Characters of each candidate, whatever the anchor: the longer one wins.

    >>> length_scores([Triple("x", "long", "short")])
    [(4.0, 5.0)]
    """
    return [(float(len(triple.a)), float(len(triple.b))) for triple in triples]


BASELINES: dict[str, Callable[[Sequence[Triple]], Scores]] = {
    "random": random_scores,
    "jaccard": jaccard_scores,
    "tfidf": tfidf_scores,
    "longer": length_scores,
}
"""The scorers by the name they are reported under."""


def _overlap(first: set[str], second: set[str]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 0.0
