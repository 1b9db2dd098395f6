"""Mean-Max with sequential structural alignment: stories compared sentence by sentence, without training.

Source: Mendel292 at SemEval-2026 Task 4, section 4.1.4 and appendix B, item 6. The paper says: a first score is a
"Mean-Max cosine similarity" of sentences; if the candidates' difference exceeds gamma, the more similar one is chosen;
else texts are cut into n windows, and the diagonal of their cosine matrix decides, the last window weighted by tau. It
gives gamma, n and tau as the best on the development set: its .615 there is a figure of tuning.

It leaves open, and here is taken:

- what Mean-Max is: see `max_similarity` and `pooled`; the first is the default, since the paper speaks of "the segments
  with the maximum similarity between the anchor and the query stories";
- its direction: from the anchor's sentences to the candidate's, so that both candidates are asked the same questions;
- a window's vector: the mean of its sentences' vectors, each of length 1; a sentence left over goes to a later window;
- how the diagonal becomes one number: its weighted mean; so the order of two candidates is that of the weighted sum.

Letters of shapes: P pairs, S and T sentences of the longest story, W windows, D dimension, N triples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from narrlit.data.records import Triple
from narrlit.data.table import StoryTable
from narrlit.errors import ModelError
from narrlit.metrics.scorers import MeanMax
from narrlit.models.config import Role
from narrlit.models.embedding import embed
from narrlit.models.encoder import Encoder, token_chunks
from narrlit.models.view_encoder import AnyEncoder
from narrlit.text.sentences import sentences

SENTENCES_A_PASS = 4096


@dataclass(frozen=True, eq=False)
class Stories:
    """P stories as vectors of their sentences, in order."""

    vectors: Tensor
    """(P, S, D), of length 1 where there is a sentence and 0 elsewhere."""
    counts: Tensor
    """(P,) whole numbers, sentences of each story, from 1 to S."""

    @property
    def mask(self) -> Tensor:
        """(P, S) bool, where there is a sentence."""
        return torch.arange(self.vectors.shape[1], device=self.counts.device) < self.counts[:, None]


def max_similarity(anchors: Stories, others: Stories) -> Tensor:
    """Mean over the anchor's sentences of the best cosine with a sentence of the other story: (P,), from -1 to 1.

    Not symmetric: a short anchor that is told within a long story is wholly like it, the long one is not like it.
    """
    cosines = anchors.vectors @ others.vectors.mT
    best = cosines.masked_fill(~others.mask[:, None, :], -torch.inf).amax(2)
    return best.masked_fill(~anchors.mask, 0).sum(1) / anchors.counts


def pooled(anchors: Stories, others: Stories) -> Tensor:
    """Cosine of stories' sentence vectors, pooled by mean and by maximum and set side by side: (P,), from -1 to 1."""
    return F.cosine_similarity(_pool(anchors), _pool(others), dim=1)


def _pool(stories: Stories) -> Tensor:
    mean = stories.vectors.sum(1) / stories.counts[:, None]
    highest = stories.vectors.masked_fill(~stories.mask[:, :, None], -torch.inf).amax(1)
    return torch.cat([mean, highest], dim=1)


def window_vectors(stories: Stories, windows: int) -> Tensor:
    """Means of the sentences of each of W windows of a story: (P, W, D).

    Window w of n sentences begins at sentence floor(w n / W) and ends before floor((w + 1) n / W), but holds at least
    the one it begins at: a story with fewer sentences than windows gives some of them to several.
    """
    edges = torch.arange(windows + 1, device=stories.counts.device) * stories.counts[:, None] // windows
    begin = edges[:, :-1]
    end = torch.maximum(edges[:, 1:], begin + 1)
    places = torch.arange(stories.vectors.shape[1], device=begin.device)
    inside = (places >= begin[:, :, None]) & (places < end[:, :, None])
    return inside.to(stories.vectors.dtype) @ stories.vectors / (end - begin)[:, :, None]


def alignment(anchors: Stories, others: Stories, windows: int, tau: float) -> Tensor:
    """Mean of the cosines of windows in the same place, the last weighing tau and others 1: (P,), from -1 to 1."""
    diagonal = F.cosine_similarity(window_vectors(anchors, windows), window_vectors(others, windows), dim=2)
    weights = torch.ones_like(diagonal[0])
    weights[-1] = tau
    return diagonal @ weights / weights.sum()


def decide(first: Tensor, aligned: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    """The scores that decide each triple.

    Args:
        first: (N, 2) Mean-Max scores of A and B.
        aligned: (N, 2) scores of A and B by windows.
        gamma: the first decide where they differ by more than this.

    Returns:
        (N, 2) scores of A and B, comparable within a row alone; (N,) bool, where windows decide.
    """
    near = (first[:, 0] - first[:, 1]).abs() <= gamma
    return torch.where(near[:, None], aligned, first), near


@dataclass(frozen=True)
class MeanMaxScores:
    """Scores of A and B for each triple, comparable within a triple alone, and how they came about."""

    scores: list[tuple[float, float]]
    aligned: int
    """Triples that the windows decided."""
    truncated: int
    """Different sentences that were longer than the encoder reads."""


def meanmax_scores(
    encoder: AnyEncoder, triples: Sequence[Triple], settings: MeanMax, progress: bool = True
) -> MeanMaxScores:
    """Judge triples by Mean-Max with structural alignment; a story is embedded once for each prompt that it needs.

    Raises:
        ValueError: if a text is white space alone.
        ModelError: for an encoder of sentences or of views, whose vectors are of whole stories alone.
    """
    if not isinstance(encoder, Encoder):
        raise ModelError(
            "meanmax compares sentences, but this model's vectors are of whole stories, made of several: "
            f"name the model inside, {encoder.config.model}"
        )
    anchors, others, cut = _tables(encoder, triples, progress)
    rows = [(anchors.row(t.anchor), others.row(t.a), others.row(t.b)) for t in triples]
    lengths = [max(anchors.counts[x], others.counts[a], others.counts[b], settings.windows) for x, a, b in rows]
    similarity = {"max_similarity": max_similarity, "pooled": pooled}[settings.reading]
    scores: list[tuple[float, float]] = [(0.0, 0.0)] * len(rows)
    aligned = 0
    # Triples of like length together, so that little is padding.
    for chunk in token_chunks(lengths, SENTENCES_A_PASS, padded=True):
        x, a, b = zip(*(rows[i] for i in chunk), strict=True)
        # A and B in one tensor: padded alike, the same story scores the same in either place.
        anchor, other = anchors.stories(x + x), others.stories(a + b)
        first, windows = similarity(anchor, other), alignment(anchor, other, settings.windows, settings.tau)
        found, near = decide(first.view(2, -1).T, windows.view(2, -1).T, settings.gamma)
        aligned += int(near.sum())
        for i, (of_a, of_b) in zip(chunk, found.tolist(), strict=True):
            scores[i] = (of_a, of_b)
    return MeanMaxScores(scores, aligned, cut)


class _SentenceTable:
    """Vectors of the sentences of different stories, each embedded once."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], role: Role, progress: bool) -> None:
        self._table = StoryTable(texts)
        pieces = [sentences(text) for text in self._table.texts]
        self.counts = [len(parts) for parts in pieces]
        if 0 in self.counts:
            raise ValueError(f"no sentence in {self._table[self.counts.index(0)]!r}")
        found, self.truncated = embed(encoder, [part for parts in pieces for part in parts], role, progress)
        self._vectors = torch.from_numpy(found)
        self._counts = torch.tensor(self.counts)
        self._begin = self._counts.cumsum(0) - self._counts

    def row(self, text: str) -> int:
        """Where a story's text stands in `counts`."""
        return self._table.add(text)

    def stories(self, rows: Sequence[int]) -> Stories:
        """These rows' stories, padded to the longest; in float64, so that rounding decides no margin."""
        counts = self._counts[list(rows)]
        places = torch.arange(int(counts.max()))
        inside = places < counts[:, None]
        taken = (self._begin[list(rows), None] + places).clamp(max=len(self._vectors) - 1)
        vectors = F.normalize(self._vectors[taken].double(), dim=2) * inside[:, :, None]
        return Stories(vectors, counts)


def _tables(encoder: Encoder, triples: Sequence[Triple], progress: bool) -> tuple[_SentenceTable, _SentenceTable, int]:
    """Sentences of anchors and of candidates, one table where they have the same prompt; and how many were cut."""
    first, second = [t.anchor for t in triples], [text for t in triples for text in (t.a, t.b)]
    if encoder.prompt("anchor") == encoder.prompt("candidate"):
        table = _SentenceTable(encoder, first + second, "anchor", progress)
        return table, table, table.truncated
    anchors = _SentenceTable(encoder, first, "anchor", progress)
    others = _SentenceTable(encoder, second, "candidate", progress)
    return anchors, others, anchors.truncated + others.truncated
