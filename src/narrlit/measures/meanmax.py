"""Mean-Max with sequential structural alignment: a comparison of stories by their sentences, without training.

Source: Mendel292 at SemEval-2026 Task 4, section 4.1.4 and appendix B, item 6. In the paper, the first score is a
"Mean-Max cosine similarity" of sentences. If the scores of the candidates differ by more than gamma, the higher one
decides. Otherwise the texts are divided into n windows, and the diagonal of their cosine matrix decides, with weight
tau for the last window. The paper selected gamma, n and tau on the development set, so that its .615 there is a result
of tuning. Details that the paper leaves open are defined as follows:

- Mean-Max: `max_similarity` (default; the paper mentions "the segments with the maximum similarity") or `pooled`;
- direction: from the anchor's sentences to the candidate's;
- vector of a window: mean of the unit vectors of its sentences; remaining sentences go to later windows;
- score of the diagonal: weighted mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import DoubleArray, TripleRole
from narrlit.errors import OptionError
from narrlit.preprocessing.sentences import split_sentences

TextInRole = tuple[str, TripleRole]
"""Text of a story and its role, anchor or candidate; encoders may embed the roles differently."""
K = TypeVar("K")
"""Key of a story."""
Array = TypeVar("Array", NDArray[np.float32], NDArray[np.float64])
"""Array of vectors."""
EmbedSentences = Callable[[list[str], list[TripleRole]], NDArray[np.float32]]
"""Function from S sentences and the roles of their stories to vectors (S, D)."""


@dataclass(frozen=True)
class MeanMax:
    """Settings of Mean-Max with structural alignment; defaults as in Mendel292, appendix B.

    Attributes:
        reading: definition of Mean-Max: the mean of the best cosines of the anchor's sentences (max_similarity), or the
            cosine of vectors pooled by mean and by maximum (pooled).
        gamma: largest difference between the candidates' scores for which windows decide, 0 to 2.
        windows: number of windows of a story, 1 to 1000.
        tau: weight of the last window, above 0; the other weights are 1.
    """

    reading: Literal["max_similarity", "pooled"] = "max_similarity"
    gamma: float = 0.0183
    windows: int = 2
    tau: float = 1.0168

    def __post_init__(self) -> None:
        # In this form the conditions also reject NaN.
        if not 0 <= self.gamma <= 2:
            raise OptionError("between", option="gamma", found=self.gamma, least=0, most=2)
        if not 1 <= self.windows <= 1000:
            raise OptionError("between", option="windows", found=self.windows, least=1, most=1000)
        if not 0 < self.tau < float("inf"):
            raise OptionError("above_zero", option="tau", found=self.tau)


def max_similarity(anchor: DoubleArray, other: DoubleArray) -> float:
    """Average the best cosines of the anchor's sentences (S, D) with the other story's (T, D); not symmetric."""
    return float((anchor @ other.T).max(axis=1).mean())


def pooled(anchor: DoubleArray, other: DoubleArray) -> float:
    """Compute the cosine of two stories, whose sentence vectors are pooled by mean and by maximum and concatenated."""
    return _cosine(_mean_and_max(anchor), _mean_and_max(other))


def _mean_and_max(story: DoubleArray) -> DoubleArray:
    """Concatenate the mean and the maximum of a story's sentences (S, D), (2 D,)."""
    return np.concatenate([story.mean(axis=0), story.max(axis=0)])


def window_vectors(story: DoubleArray, windows: int) -> DoubleArray:
    """Average a story's sentences (S, D) within each of W windows, (W, D).

    Window w of n sentences extends from sentence floor(w n / W) to floor((w + 1) n / W), exclusive, and has at least
    one sentence: in a story with fewer sentences than windows, several windows contain the same sentence.
    """
    edges = np.arange(windows + 1) * len(story) // windows
    means = []
    for start, end in pairwise(edges.tolist()):
        sentences = story[start : max(end, start + 1)]
        means.append(sentences.mean(axis=0))
    return np.stack(means)


def alignment(anchor: DoubleArray, other: DoubleArray, windows: int, tau: float) -> float:
    """Compute the mean cosine of windows at the same position, with weight tau for the last, from -1 to 1."""
    diagonal = list(map(_cosine, window_vectors(anchor, windows), window_vectors(other, windows)))
    weights = [1.0] * (windows - 1) + [tau]
    return float(np.average(diagonal, weights=weights))


def sentence_scores(
    embed: EmbedSentences, triples: Sequence[tuple[str, str, str]], settings: MeanMax
) -> tuple[DoubleArray, int]:
    """Score N triples of texts by Mean-Max with structural alignment.

    Args:
        embed: function that embeds sentences (S, D), each in the role of its story.
        triples: texts of anchor, A and B.
        settings: settings of the measure.

    Returns:
        Scores (N, 2), and the number of triples that were decided by windows.

    Raises:
        ValueError: if a text has no sentence.
    """
    scores = np.zeros((len(triples), 2))
    num_aligned = 0
    if not triples:
        return scores, num_aligned
    vectors = _sentence_vectors(embed, _split_stories(triples))
    similarity = max_similarity if settings.reading == "max_similarity" else pooled
    for row, (anchor_text, text_a, text_b) in enumerate(triples):
        anchor = vectors[anchor_text, "anchor"]
        a, b = vectors[text_a, "candidate"], vectors[text_b, "candidate"]
        score_a, score_b = similarity(anchor, a), similarity(anchor, b)
        if abs(score_a - score_b) <= settings.gamma:
            score_a = alignment(anchor, a, settings.windows, settings.tau)
            score_b = alignment(anchor, b, settings.windows, settings.tau)
            num_aligned += 1
        scores[row] = score_a, score_b
    return scores, num_aligned


def _split_stories(triples: Sequence[tuple[str, str, str]]) -> dict[TextInRole, list[str]]:
    """Split each distinct anchor, then each distinct candidate, into sentences."""
    stories: list[TextInRole] = [(anchor, "anchor") for anchor, _, _ in triples]
    for _, a, b in triples:
        stories += [(a, "candidate"), (b, "candidate")]
    sentences = {}
    for story in dict.fromkeys(stories):
        text, _ = story
        sentences[story] = split_sentences(text)
        if not sentences[story]:
            raise ValueError(f"no sentence in {text!r}")
    return sentences


def _sentence_vectors(embed: EmbedSentences, stories: Mapping[TextInRole, list[str]]) -> dict[TextInRole, DoubleArray]:
    """Embed the sentences of all stories in one call; return the unit vectors (S, D) of each story's sentences."""
    sentences: list[str] = []
    roles: list[TripleRole] = []
    for (_, role), story_sentences in stories.items():
        sentences += story_sentences
        roles += [role] * len(story_sentences)
    vectors = np.asarray(embed(sentences, roles), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(lengths, 1e-12)
    return vectors_by_story(vectors, stories)


def vectors_by_story(vectors: Array, pieces: Mapping[K, Sequence[str]]) -> dict[K, Array]:
    """Divide vectors by the stories to which they belong.

    Args:
        vectors: vectors of the sentences or passages of all stories, in the order of the stories.
        pieces: sentences or passages of each story.

    Returns:
        Vectors (S, D) of each story.
    """
    ends = np.cumsum([len(story_pieces) for story_pieces in pieces.values()])
    return dict(zip(pieces, np.split(vectors, ends[:-1]), strict=True))


def _cosine(first: DoubleArray, second: DoubleArray) -> float:
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second / max(lengths, 1e-12))
