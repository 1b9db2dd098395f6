"""Mean-Max with sequential structural alignment: stories compared sentence by sentence, without training.

Source: Mendel292 at SemEval-2026 Task 4, section 4.1.4 and appendix B, item 6. The paper: a first score is a "Mean-Max
cosine similarity" of sentences; if the candidates differ by more than gamma, the more similar one is chosen; otherwise
texts are cut into n windows, and the diagonal of their cosine matrix decides, the last window weighted by tau. Its
gamma, n and tau are the best on the development set, so that its .615 there is a result of tuning. Where the paper is
open, narrlit takes these:

- Mean-Max: `max_similarity` (default: the paper mentions "the segments with the maximum similarity") or `pooled`;
- direction: from the anchor's sentences to the candidate's;
- vector of a window: the mean of its sentences' unit vectors; a sentence left over goes to a later window;
- score of the diagonal: its weighted mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import Role
from narrlit.errors import OptionError
from narrlit.preprocessing.sentences import split_sentences

FloatArray = NDArray[np.float64]
TextInRole = tuple[str, Role]
"""Text of a story that is an anchor or a candidate; encoders may embed these differently."""
EmbedSentences = Callable[[list[str], list[Role]], NDArray[np.float32]]
"""Function from S sentences and their stories' roles to vectors (S, D)."""


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
    return _cosine(_mean_and_max(anchor), _mean_and_max(other))


def _mean_and_max(story: FloatArray) -> FloatArray:
    """Concatenate mean and maximum of a story's sentences (S, D), (2 D,)."""
    return np.concatenate([story.mean(axis=0), story.max(axis=0)])


def window_vectors(story: FloatArray, windows: int) -> FloatArray:
    """Average a story's sentences (S, D) within each of W windows, (W, D).

    Window w of n sentences spans sentences floor(w n / W) to floor((w + 1) n / W), the latter excluded, but holds at
    least the one it begins at: a story with fewer sentences than windows gives some of them to several.
    """
    edges = [window * len(story) // windows for window in range(windows + 1)]
    means = []
    for start, end in pairwise(edges):
        sentences = story[start : max(end, start + 1)]
        means.append(sentences.mean(axis=0))
    return np.stack(means)


def alignment(anchor: FloatArray, other: FloatArray, windows: int, tau: float) -> float:
    """Compute the mean cosine of windows in the same position, the last weighted by tau, from -1 to 1."""
    diagonal = list(map(_cosine, window_vectors(anchor, windows), window_vectors(other, windows)))
    weights = [1.0] * (windows - 1) + [tau]
    return float(np.average(diagonal, weights=weights))


def sentence_scores(
    embed: EmbedSentences, triples: Sequence[tuple[str, str, str]], settings: MeanMax
) -> tuple[FloatArray, int]:
    """Score N triples of texts by Mean-Max with structural alignment, (N, 2); also count those that windows decided.

    Args:
        embed: embeds sentences (S, D), each in its story's role.
        triples: texts of anchor, A and B.
        settings: settings of the measure.

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
    """Split each different anchor, then each different candidate, into sentences."""
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


def _sentence_vectors(embed: EmbedSentences, stories: Mapping[TextInRole, list[str]]) -> dict[TextInRole, FloatArray]:
    """Embed the sentences of all stories at once; returns the unit vectors (S, D) of each story's sentences."""
    sentences: list[str] = []
    roles: list[Role] = []
    for (_, role), of_story in stories.items():
        sentences += of_story
        roles += [role] * len(of_story)
    vectors = np.asarray(embed(sentences, roles), dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(lengths, 1e-12)
    ends = np.cumsum([len(of_story) for of_story in stories.values()])
    return dict(zip(stories, np.split(vectors, ends[:-1]), strict=True))


def _cosine(first: FloatArray, second: FloatArray) -> float:
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second / max(lengths, 1e-12))
