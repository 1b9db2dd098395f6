"""Measures of similarity: by embeddings, sentences, passages or words.

Letters in shapes: N triples, D dimension.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike, fspath

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray, Role, Story, Triples, triple_cosines
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.encoding.story_texts import StoryTexts
from narrlit.errors import OptionError, did_you_mean
from narrlit.measures.matching import Matching, match_score
from narrlit.metrics.baselines import BASELINES
from narrlit.metrics.meanmax import MeanMax, sentence_scores
from narrlit.preprocessing.passages import split_passages

Scores = NDArray[np.float64]
MEANMAX = "meanmax:"
"""Prefix of a model's name: compare its embeddings of sentences."""
PASSAGES = "passages:"
"""Prefix of a model's name: match its embeddings of passages."""


class Similarity(ABC):
    """Measure of the similarity of two stories: larger scores mean more similar stories.

    Scores are comparable within a triple; each measure states whether they are comparable across triples.

    Attributes:
        name: name of the measure in reports.
        encoder: encoder of stories or their sentences; None for a lexical measure.
    """

    name: str
    encoder: StoryEncoder | None

    def fitted_for(self, stories: Sequence[Story]) -> "Similarity":
        """Return this measure, fitted on stories other than these, if it is fitted at all."""
        return self

    @abstractmethod
    def score(self, triples: Triples, progress: bool = False) -> Scores:
        """Score each of N triples: the anchor's similarity with A and with B, (N, 2).

        Args:
            triples: as they are in their file.
            progress: show a progress bar on stderr for long computations.
        """


@dataclass(frozen=True)
class Cosine(Similarity):
    """Cosine of two stories' vectors, -1 to 1, comparable across triples.

    Attributes:
        encoder: of the vectors.
    """

    encoder: StoryEncoder

    @property
    def name(self) -> str:  # type: ignore[override]  # computed, and read only
        """Name of the model."""
        return self.encoder.name

    def fitted_for(self, stories: Sequence[Story]) -> "Cosine":
        """Return this measure with the encoder's post-processing fitted on other stories than these."""
        fitted = self.encoder.fitted_for(stories)
        return self if fitted is self.encoder else Cosine(fitted)

    def score(self, triples: Triples, progress: bool = False) -> Scores:
        """Compute the cosines (N, 2)."""
        return triple_cosines(self.encoder.embed_triples(triples, progress))


@dataclass
class MeanMaxSimilarity(Similarity):
    """Mean-Max of two stories' sentences with structural alignment, comparable within a triple only.

    Attributes:
        encoder: of the sentences.
        settings: of the measure.
        aligned: number of the last triples whose windows decided.
    """

    encoder: StoryEncoder
    settings: MeanMax = MeanMax()
    aligned: int = field(default=0, init=False)

    @property
    def name(self) -> str:  # type: ignore[override]  # computed, and read only
        """Name of the model and of the measure."""
        return f"{self.encoder.name}, meanmax ({self.settings.reading})"

    def fitted_for(self, stories: Sequence[Story]) -> "MeanMaxSimilarity":
        """Return this measure with the encoder's post-processing fitted on other stories than these."""
        fitted = self.encoder.fitted_for(stories)
        return self if fitted is self.encoder else MeanMaxSimilarity(fitted, self.settings)

    def score(self, triples: Triples, progress: bool = False) -> Scores:
        """Compare sentence with sentence, (N, 2).

        Raises:
            ModelError: for a model that does not embed a sentence by itself.
        """
        encoder = self.encoder
        encoder.require_text()

        def embed(sentences: list[str], roles: list[Role]) -> FloatArray:
            """Embed sentences, each in its story's role."""
            return encoder.embed_prepared(sentences, roles, progress)

        texts = encoder.texts.prepare_triples(triples).texts()
        scores, self.aligned = sentence_scores(embed, texts, self.settings)
        return scores


@dataclass(frozen=True)
class PassageSimilarity(Similarity):
    """Mean weight of the best matches of two stories' passages, 0 to 1, comparable across triples.

    Unlike the measure `passages` of a collection, nothing is fitted on the compared stories.

    Attributes:
        encoder: of the passages.
        matching: how they are matched.

    >>> from narrlit.data.schema import StoryTable, Triple
    >>> stories = StoryTable()
    >>> texts = ["A fox wins a race. He rests.", "A hare loses a race. She weeps.", "A bank lowers its rates."]
    >>> triples = Triples(stories, [Triple(*map(stories.add, texts))])
    >>> first, second = PassageSimilarity(StoryEncoder("minilm")).score(triples)[0]
    >>> bool(first > second)
    True
    """

    encoder: StoryEncoder
    matching: Matching = Matching()

    @property
    def name(self) -> str:  # type: ignore[override]  # computed, and read only
        """Name of the model and of the measure."""
        return f"{self.encoder.name}, passages"

    def fitted_for(self, stories: Sequence[Story]) -> "PassageSimilarity":
        """Return this measure with the encoder's post-processing fitted on other stories than these."""
        fitted = self.encoder.fitted_for(stories)
        return self if fitted is self.encoder else PassageSimilarity(fitted, self.matching)

    def score(self, triples: Triples, progress: bool = False) -> Scores:
        """Match passage with passage, (N, 2).

        Raises:
            ModelError: for a model that does not embed a passage by itself.
        """
        self.encoder.require_text()
        texts = self.encoder.texts.prepare_triples(triples).texts()
        anchors = self._passages([anchor for anchor, _, _ in texts], "anchor", progress)
        candidate_texts = list(chain.from_iterable((a, b) for _, a, b in texts))
        candidates = self._passages(candidate_texts, "candidate", progress)
        scores = np.zeros((len(texts), 2))
        for row, (anchor, *others) in enumerate(texts):
            scores[row] = [match_score(anchors[anchor], candidates[text], self.matching) for text in others]
        return scores

    def _passages(self, texts: Sequence[str], role: Role, progress: bool) -> dict[str, FloatArray]:
        """Embed the passages (S, D) of each text."""
        pieces = {text: split_passages(text) for text in texts}
        passages = list(chain.from_iterable(pieces.values()))
        vectors = unit_vectors(self.encoder.embed_prepared(passages, [role] * len(passages), progress))
        ends = np.cumsum([len(piece) for piece in pieces.values()])
        return dict(zip(pieces, np.split(vectors, ends[:-1]), strict=True))


@dataclass(frozen=True)
class Lexical(Similarity):
    """Baseline without an encoder: random, jaccard, tfidf or longer.

    Attributes:
        name: of the baseline.
        texts: what is read of a story.

    Raises:
        OptionError: for another name.
    """

    name: str
    texts: StoryTexts = StoryTexts()
    encoder: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.name not in BASELINES:
            near = did_you_mean(self.name, BASELINES)
            raise OptionError(f"no baseline {self.name!r}{near}; give one of {', '.join(BASELINES)}")

    def score(self, triples: Triples, progress: bool = False) -> Scores:
        """Compare the words of the stories, (N, 2)."""
        return np.asarray(BASELINES[self.name](self.texts.prepare_triples(triples).texts()))


def open_measure(
    name: str,
    load_encoder: Callable[[str], StoryEncoder] = load,
    meanmax: MeanMax = MeanMax(),
    texts: StoryTexts = StoryTexts(),
) -> Similarity:
    """Return the measure with the given name.

    Args:
        name: a baseline (`random`, `jaccard`, `tfidf`, `longer`), a model (run, folder, checkpoint, hub id, `minilm`),
            `meanmax:MODEL` or `passages:MODEL`.
        load_encoder: function that loads a model by its name.
        meanmax: settings of Mean-Max.
        texts: settings of how baselines read stories.

    Raises:
        ModelError: if there is no such model.
    """
    if name in BASELINES:
        return Lexical(name, texts)
    prefix = next((each for each in (MEANMAX, PASSAGES) if name.startswith(each)), "")
    model = name.removeprefix(prefix)
    if not model:
        raise OptionError(f"{prefix} needs a model behind it, such as {prefix}minilm")
    encoder = load_encoder(model)
    if prefix == PASSAGES:
        return PassageSimilarity(encoder)
    return MeanMaxSimilarity(encoder, meanmax) if prefix == MEANMAX else Cosine(encoder)


def measure_of(system: Similarity | StoryEncoder | str | PathLike[str]) -> Similarity:
    """Return the measure that a name stands for, the cosine of an encoder's vectors, or a measure itself."""
    if isinstance(system, str | PathLike):
        return open_measure(fspath(system))
    return Cosine(system) if isinstance(system, StoryEncoder) else system
