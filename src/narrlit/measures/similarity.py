"""Measures of similarity for triples: by embeddings, sentences, passages or words.

Letters in shapes: N triples, D dimension.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from os import PathLike, fspath
from typing import ClassVar, Self

import numpy as np

from narrlit.data.schema import DoubleArray, FloatArray, Story, TripleRole, Triples, triple_cosines
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import OptionError, nearest
from narrlit.measures.matching import Matching, match_score
from narrlit.measures.meanmax import MeanMax, sentence_scores, vectors_by_story
from narrlit.measures.names import ScorerName
from narrlit.preprocessing.passages import split_passages
from narrlit.statistics.baselines import BASELINES
from narrlit.statistics.words import WEIGHTED, StopWords, stop_words_of


class Similarity(ABC):
    """Measure of the similarity of two stories: larger scores mean more similar stories.

    Scores are comparable within a triple; each measure states if they are comparable across triples.

    Attributes:
        name: name of the measure in reports.
        encoder: encoder of stories or their sentences; None for a lexical measure.
    """

    name: str
    encoder: StoryEncoder | None

    def fitted_for(self, stories: Sequence[Story]) -> "Similarity":
        """Return this measure fitted on stories other than these; unchanged if it is not fitted."""
        return self

    @abstractmethod
    def score(self, triples: Triples, progress: bool = False) -> DoubleArray:
        """Compute the similarity of the anchor with A and with B for N triples, (N, 2).

        Args:
            triples: triples, before any preparation of their texts.
            progress: show a progress bar on stderr for long computations.
        """


@dataclass
class EncoderSimilarity(Similarity):
    """Measure of the embeddings of two stories, or of the embeddings of their sentences or passages.

    Attributes:
        scorer: name of the measure in options.
        units: name of one and of several embedded texts; None: stories, as the encoder embeds them.
        encoder: encoder of these texts.
    """

    scorer: ClassVar[ScorerName]
    units: ClassVar[tuple[str, str] | None] = None
    encoder: StoryEncoder

    @property
    def name(self) -> str:  # type: ignore[override]  # a read-only property
        """Name of the model and of the measure."""
        return f"{self.encoder.name}, {self.scorer}"

    @property
    def record(self) -> dict[str, object]:
        """Settings of the measure, as plain data for reports."""
        return {}

    def fitted_for(self, stories: Sequence[Story]) -> Self:
        """Return this measure with the encoder's post-processing fitted on stories other than these."""
        fitted = self.encoder.fitted_for(stories)
        return self if fitted is self.encoder else replace(self, encoder=fitted)


@dataclass
class Cosine(EncoderSimilarity):
    """Cosine of two stories' embeddings, -1 to 1, comparable across triples."""

    scorer = "cosine"

    @property
    def name(self) -> str:  # type: ignore[override]  # a read-only property
        """Name of the model."""
        return self.encoder.name

    def score(self, triples: Triples, progress: bool = False) -> DoubleArray:
        """Compute the cosines (N, 2)."""
        return triple_cosines(self.encoder.embed_triples(triples, progress))


@dataclass
class MeanMaxSimilarity(EncoderSimilarity):
    """Mean-Max over the sentences of two stories, with structural alignment; comparable within a triple only.

    Attributes:
        settings: settings of the measure.
        aligned: number of triples that were decided by structural alignment when `score` was last called.
    """

    scorer = "meanmax"
    units = ("sentence", "sentences")
    settings: MeanMax = MeanMax()
    aligned: int = field(default=0, init=False)

    @property
    def name(self) -> str:  # type: ignore[override]  # a read-only property
        """Name of the model and of the measure."""
        return f"{super().name} ({self.settings.reading})"

    @property
    def record(self) -> dict[str, object]:
        """Settings of the measure, as plain data for reports."""
        return asdict(self.settings) | {"aligned": self.aligned}

    def score(self, triples: Triples, progress: bool = False) -> DoubleArray:
        """Compare the sentences of the stories, (N, 2).

        Raises:
            ModelError: for a model that can't embed single sentences.
        """
        encoder = self.encoder
        encoder.require_text()

        def embed(sentences: list[str], roles: list[TripleRole]) -> FloatArray:
            """Embed sentences, each in the role of its story."""
            return encoder.embed_prepared(sentences, roles, progress)

        texts = encoder.texts.prepare_triples(triples).texts()
        scores, self.aligned = sentence_scores(embed, texts, self.settings)
        return scores


@dataclass
class PassageSimilarity(EncoderSimilarity):
    """Mean weight of the best matches of two stories' passages, 0 to 1, comparable across triples.

    In contrast to the measure `passages` of a collection, it is not fitted on the stories.

    Attributes:
        matching: settings of matching.

    >>> from narrlit.data.schema import StoryTable, Triple
    >>> stories = StoryTable()
    >>> texts = ["A fox wins a race. He rests.", "A hare loses a race. She weeps.", "A bank lowers its rates."]
    >>> triples = Triples(stories, [Triple(*map(stories.add, texts))])
    >>> first, second = PassageSimilarity(StoryEncoder("minilm")).score(triples)[0]
    >>> bool(first > second)
    True
    """

    scorer = "passages"
    units = ("passage", "passages")
    matching: Matching = Matching()

    @property
    def record(self) -> dict[str, object]:
        """Settings of the measure, as plain data for reports."""
        return asdict(self.matching)

    def score(self, triples: Triples, progress: bool = False) -> DoubleArray:
        """Match the passages of the stories, (N, 2).

        Raises:
            ModelError: for a model that can't embed single passages.
        """
        self.encoder.require_text()
        texts = self.encoder.texts.prepare_triples(triples).texts()
        anchor_texts: list[str] = []
        candidate_texts: list[str] = []
        for anchor, a, b in texts:
            anchor_texts.append(anchor)
            candidate_texts += [a, b]
        anchors = self._passages(anchor_texts, "anchor", progress)
        candidates = self._passages(candidate_texts, "candidate", progress)
        scores = np.zeros((len(texts), 2))
        for row, (anchor, a, b) in enumerate(texts):
            score_a = match_score(anchors[anchor], candidates[a], self.matching)
            score_b = match_score(anchors[anchor], candidates[b], self.matching)
            scores[row] = score_a, score_b
        return scores

    def _passages(self, texts: Sequence[str], role: TripleRole, progress: bool) -> dict[str, FloatArray]:
        """Embed the passages (S, D) of each text."""
        passages_of = {text: split_passages(text) for text in texts}
        passages = list(chain.from_iterable(passages_of.values()))
        vectors = unit_vectors(self.encoder.embed_prepared(passages, [role] * len(passages), progress))
        return vectors_by_story(vectors, passages_of)


@dataclass(frozen=True)
class Lexical(Similarity):
    """Baseline without an encoder: random, jaccard, tfidf, bm25 or longer.

    Attributes:
        name: name of the baseline.
        texts: settings for preparing stories.

    Raises:
        OptionError: for an unknown name.
    """

    name: str
    texts: StoryTexts = StoryTexts()
    encoder: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.name not in BASELINES:
            raise OptionError(
                "unknown_baseline", baseline=self.name, near=nearest(self.name, BASELINES), known=list(BASELINES)
            )

    def score(self, triples: Triples, progress: bool = False) -> DoubleArray:
        """Compare the words of the stories, (N, 2)."""
        return np.asarray(BASELINES[self.name](self.texts.prepare_triples(triples).texts()))

    def settings(self, triples: Triples) -> dict[str, StopWords | None]:
        """Return the stop words of `tfidf` and `bm25` for N triples, as plain data for reports."""
        if self.name not in WEIGHTED:
            return {}
        return {"stop_words": stop_words_of(list(chain.from_iterable(triples.texts())))}


SCORERS: dict[str, type[EncoderSimilarity]] = {
    each.scorer: each for each in (Cosine, MeanMaxSimilarity, PassageSimilarity)
}
"""Measures of embeddings by name, which is also the prefix of a model's name in `open_measure`."""


def scored_by(scorer: str, encoder: StoryEncoder, meanmax: MeanMax = MeanMax()) -> EncoderSimilarity:
    """Return the measure of embeddings with the given name; `meanmax` are the settings of that measure."""
    return MeanMaxSimilarity(encoder, meanmax) if scorer == "meanmax" else SCORERS[scorer](encoder)


def open_measure(
    name: str,
    load_encoder: Callable[[str], StoryEncoder] = load,
    meanmax: MeanMax = MeanMax(),
    texts: StoryTexts = StoryTexts(),
) -> Similarity:
    """Return the measure with the given name.

    Args:
        name: a baseline (`random`, `jaccard`, `tfidf`, `bm25`, `longer`), a model (run, folder, checkpoint, hub id,
            `minilm`), `meanmax:MODEL` or `passages:MODEL`.
        load_encoder: function that loads a model by its name.
        meanmax: settings of Mean-Max.
        texts: settings for preparing stories, for baselines.

    Raises:
        ModelError: if the model does not exist.
        OptionError: if the model is missing after a prefix.
    """
    if name in BASELINES:
        return Lexical(name, texts)
    scorer, colon, model = name.partition(":")
    if scorer not in SCORERS or not colon:
        scorer, model = "cosine", name
    if not model:
        raise OptionError("model_after_prefix", prefix=name)
    return scored_by(scorer, load_encoder(model), meanmax)


def measure_of(system: Similarity | StoryEncoder | str | PathLike[str]) -> Similarity:
    """Return the measure with the given name, the cosine measure of an encoder, or a measure unchanged."""
    if isinstance(system, str | PathLike):
        return open_measure(fspath(system))
    return Cosine(system) if isinstance(system, StoryEncoder) else system
