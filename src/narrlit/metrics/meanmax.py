"""Mean-Max with sequential structural alignment: stories compared sentence by sentence, without training.

Source: Mendel292 at SemEval-2026 Task 4, section 4.1.4 and appendix B, item 6. The paper: a first score is a "Mean-Max
cosine similarity" of sentences; if the candidates differ by more than gamma, the more similar one is chosen; otherwise
texts are cut into n windows, and the diagonal of their cosine matrix decides, the last window weighted by tau. Its
gamma, n and tau are the best on the development set: its .615 there is a figure of tuning. Decisions of ours:

- Mean-Max: `max_similarity` (default: the paper mentions "the segments with the maximum similarity") or `pooled`;
- direction: from the anchor's sentences to the candidate's;
- vector of a window: the mean of its sentences' unit vectors; a sentence left over goes to a later window;
- score of the diagonal: its weighted mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import Role
from narrlit.errors import OptionError
from narrlit.preprocessing.sentences import split_sentences

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MeanMax:
    """Settings of Mean-Max with structural alignment; defaults as in Mendel292, appendix B.

    Attributes:
        reading: definition of Mean-Max: the mean of an anchor's best cosines (max_similarity), or the cosine of vectors
            pooled by mean and by maximum (pooled).
        gamma: largest difference of the candidates' scores at which windows decide, 0 to 2.
        windows: number of windows of a story, 1 to 1000.
        tau: weight of the last window, above 0; the others weigh 1.
    """

    reading: Literal["max_similarity", "pooled"] = "max_similarity"
    gamma: float = 0.0183
    windows: int = 2
    tau: float = 1.0168

    def __post_init__(self) -> None:
        # Written so that NaN is rejected, too.
        if not 0 <= self.gamma <= 2:
            raise OptionError(f"`gamma={self.gamma}`: must be between 0 and 2")
        if not 1 <= self.windows <= 1000:
            raise OptionError(f"`windows={self.windows}`: must be between 1 and 1000")
        if not 0 < self.tau < float("inf"):
            raise OptionError(f"`tau={self.tau}`: must be above 0")


def max_similarity(anchor: FloatArray, other: FloatArray) -> float:
    """Compute the mean over the anchor's sentences (S, D) of the best cosine with the other's (T, D); not symmetric."""
    return float((anchor @ other.T).max(axis=1).mean())


def pooled(anchor: FloatArray, other: FloatArray) -> float:
    """Compute the cosine of stories' sentence vectors, pooled by mean and by maximum and concatenated."""
    first, second = (np.concatenate([story.mean(axis=0), story.max(axis=0)]) for story in (anchor, other))
    return _cosine(first, second)


def window_vectors(story: FloatArray, windows: int) -> FloatArray:
    """Average a story's sentences (S, D) within each of W windows, (W, D).

    Window w of n sentences spans sentences floor(w n / W) to floor((w + 1) n / W), the latter excluded, but holds at
    least the one it begins at: a story with fewer sentences than windows gives some of them to several.
    """
    edges = [w * len(story) // windows for w in range(windows + 1)]
    return np.stack([story[a : max(b, a + 1)].mean(axis=0) for a, b in pairwise(edges)])


def alignment(anchor: FloatArray, other: FloatArray, windows: int, tau: float) -> float:
    """Compute the mean cosine of windows in the same position, the last weighted by tau, from -1 to 1."""
    first, second = window_vectors(anchor, windows), window_vectors(other, windows)
    diagonal = [_cosine(x, y) for x, y in zip(first, second, strict=True)]
    return float(np.average(diagonal, weights=[1.0] * (windows - 1) + [tau]))


def sentence_scores(
    embed: Callable[[list[str], list[Role]], NDArray[np.float32]],
    triples: Sequence[tuple[str, str, str]],
    settings: MeanMax,
) -> tuple[FloatArray, int]:
    """Score N triples of texts by Mean-Max with structural alignment, (N, 2); also count those that windows decided.

    Args:
        embed: embeds sentences (S, D), each in its story's role.
        triples: texts of anchor, A and B.
        settings: of the measure.
    """
    items: list[tuple[str, Role]] = [(anchor, "anchor") for anchor, _, _ in triples]
    items += [(text, "candidate") for _, *candidates in triples for text in candidates]
    pieces = {item: split_sentences(item[0]) for item in dict.fromkeys(items)}
    empty = next((text for (text, _), own in pieces.items() if not own), None)
    if empty is not None:
        raise ValueError(f"no sentence in {empty!r}")
    if not triples:
        return np.zeros((0, 2)), 0
    sentences = [sentence for own in pieces.values() for sentence in own]
    roles = [role for (_, role), own in pieces.items() for _ in own]
    vectors = np.asarray(embed(sentences, roles), dtype=np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    stories = dict(zip(pieces, np.split(vectors, np.cumsum([len(own) for own in pieces.values()])[:-1]), strict=True))
    similarity = {"max_similarity": max_similarity, "pooled": pooled}[settings.reading]
    scores, aligned = np.zeros((len(triples), 2)), 0
    for row, (anchor, *candidates) in enumerate(triples):
        pairs = [(stories[anchor, "anchor"], stories[text, "candidate"]) for text in candidates]
        scores[row] = [similarity(*pair) for pair in pairs]
        if abs(scores[row, 0] - scores[row, 1]) <= settings.gamma:
            scores[row] = [alignment(*pair, settings.windows, settings.tau) for pair in pairs]
            aligned += 1
    return scores, aligned


def _cosine(first: FloatArray, second: FloatArray) -> float:
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second / max(lengths, 1e-12))
