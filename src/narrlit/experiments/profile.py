"""`narrlit.profile`: how much a model's similarity depends on plot, world, length and single aspects.

Letters in shapes: N stories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrlit.api import encoder_of
from narrlit.data.readers import read_triples
from narrlit.data.schema import Floats, IntArray, Triples
from narrlit.data.splits import story_numbers
from narrlit.data.twice_told import Changed, Split, Telling, TwiceTold
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.choices import Choices, read_choices
from narrlit.experiments.facets import read_facets
from narrlit.experiments.profile_report import ASPECTS, ModelProfile, Profile
from narrlit.experiments.retrieval_report import Estimate
from narrlit.explore.collection import Collection, measure_for
from narrlit.measures.similarity import Cosine, Lexical, Similarity
from narrlit.metrics.factorial import FEWEST, Design, variance_shares
from narrlit.metrics.names import MeasureName
from narrlit.metrics.significance import AccuracySummary, group_intervals
from narrlit.metrics.words import lexical_vectors

TFIDF: Literal["tfidf"] = "tfidf"
CELL, PLOT = "cell", "plot"
"""Columns of a file of triples: the cell of a triple, and the plot of its anchor."""


def profile(
    models: "str | Path | StoryEncoder | Mapping[str, StoryEncoder | str | Path] | Sequence[str | Path]",
    *,
    measure: MeasureName = "cosine",
    split: Split | None = None,
    sets: Sequence[str | Path] = (),
    choices: Sequence[str | Path] = (),
    progress: bool = False,
) -> Profile:
    """Measure how much a model's similarity depends on plot, world and length, and compare it with TF-IDF.

    The stories are those of Twice Told: each plot is told in each world, and some tellings have variants in which one
    aspect is changed.

    Args:
        models: a model, several models, or encoders from `narrlit.load` by name.
        measure: measure of similarity; `cosine` is that of Track B.
        split: part of the plots and worlds: `train`, `validation` or `test`, which have none in common; None: all.
        sets: files of labeled triples with a column `cell`, on which accuracy is measured as well, by cell; intervals
            account for the values of a column `plot` or, without this column, for stories that triples share.
        choices: files of multiple-choice questions (`read_choices`), on which accuracy is measured as well.
        progress: show progress bars on stderr.

    Returns:
        A `Profile`: `.models`, `.table()`, `.plot()`, `.write(folder)`.

    Raises:
        DataError: if a file can't be read.
        ModelError: if a model can't be loaded.
        OptionError: if there is no such split or measure.

    >>> result = profile("minilm", split="validation")
    >>> [model.name for model in result.models]
    ['minilm', 'tfidf']
    """
    corpus = TwiceTold.read() if split is None else TwiceTold.read().split(split)
    other_sets = _OtherSets.read(sets, choices)
    texts = [telling.text for telling in _stories(corpus)]
    profiles = []
    for name, encoder in _encoders(models).items():
        collection = Collection.of(texts, encoder, measure=measure_for(encoder, measure), progress=progress)
        similarities = _similarities(collection)
        profiles.append(_profile(name, similarities, corpus, other_sets.accuracies(encoder, progress)))
    vectors, _ = lexical_vectors(TFIDF, texts, texts)
    similarities = (vectors @ vectors.T).toarray()
    profiles.append(_profile(TFIDF, similarities, corpus, other_sets.accuracies_on_triples(Lexical(TFIDF))))
    return Profile(profiles, measure, split, len(corpus.plots), len(corpus.worlds))


@dataclass(frozen=True)
class _OtherSets:
    """Other files on which accuracy is measured.

    Attributes:
        triples: labeled triples by the name of their file.
        questions: multiple-choice questions by the name of their file.
    """

    triples: Mapping[str, Triples]
    questions: Mapping[str, Choices]

    @classmethod
    def read(cls, sets: Sequence[str | Path], choices: Sequence[str | Path]) -> "_OtherSets":
        """Read files of labeled triples and files of questions."""
        triples = {Path(path).stem: read_triples(str(path)) for path in sets}
        questions = {Path(path).stem: read_choices(path) for path in choices}
        return cls(triples, questions)

    def accuracies(self, encoder: StoryEncoder, progress: bool) -> dict[str, Estimate]:
        """Compute the accuracies of an encoder by file and, for triples, by cell."""
        accuracies = self.accuracies_on_triples(Cosine(encoder), progress)
        for name, questions in self.questions.items():
            accuracies[name] = _estimate_of(questions.accuracy(encoder, progress))
        return accuracies

    def accuracies_on_triples(self, measure: Similarity, progress: bool = False) -> dict[str, Estimate]:
        """Compute the accuracy of a measure on each cell of each file of triples."""
        accuracies = {}
        for name, triples in self.triples.items():
            scores = measure.score(triples, progress)
            correct = (scores[:, 0] > scores[:, 1]) == (triples.labels == 1)
            plots = _plots(triples)
            stories = story_numbers(triples)
            cells = np.array(_read_column(CELL, triples))
            for cell in dict.fromkeys(cells.tolist()):
                in_cell = cells == cell
                if plots is None:
                    estimate = _estimate_of(AccuracySummary.of(correct[in_cell], stories[in_cell]))
                else:
                    estimate = _estimate_by_group(correct[in_cell], plots[in_cell])
                accuracies[f"{name}: {cell}"] = estimate
        return accuracies


def _encoders(
    models: "str | Path | StoryEncoder | Mapping[str, StoryEncoder | str | Path] | Sequence[str | Path]",
) -> dict[str, StoryEncoder]:
    """Load models; return encoders by name."""
    if isinstance(models, Mapping):
        return {name: encoder_of(model) for name, model in models.items()}
    encoders: dict[str, StoryEncoder] = {}
    for model in [models] if isinstance(models, str | Path | StoryEncoder) else models:
        encoder = encoder_of(model)
        encoders[encoder.name] = encoder
    if not encoders:
        raise OptionError("`models`: name at least one")
    return encoders


def _similarities(collection: Collection) -> Floats:
    """Compute the similarities (N, N) of stories, with those of each story with itself."""
    similarities = collection.similarities.matrix().astype(np.float64)
    np.fill_diagonal(similarities, collection.similarities.with_themselves())
    return similarities


def _profile(
    name: str, similarities: Floats, corpus: TwiceTold, others: Mapping[str, Estimate] = MappingProxyType({})
) -> ModelProfile:
    """Compute the profile of similarities (N, N) of the tellings and changes of a corpus, in this order."""
    count = len(corpus.tellings)
    of_tellings = similarities[:count, :count]
    design = design_of(corpus.tellings)
    shares = variance_shares(of_tellings, design)
    other_plot = design.plots[:, None] != design.plots
    other_world = design.worlds[:, None] != design.worlds
    standardized = similarities / float(of_tellings[other_plot & other_world].std())
    falls: dict[str, Estimate] = {}
    for aspect in ASPECTS:
        falls[aspect] = _fall(aspect, standardized, corpus)
    return ModelProfile(name, shares, falls, _cells(similarities, corpus), others)


def design_of(tellings: Sequence[Telling]) -> Design:
    """Number the plots and worlds of tellings, and count their words."""
    plots, worlds, lengths = [], [], []
    for telling in tellings:
        plots.append(telling.plot)
        worlds.append(telling.world)
        lengths.append(len(telling.text.split()))
    return Design(_numbers(plots), _numbers(worlds), np.array(lengths))


def _numbers(names: Sequence[str]) -> IntArray:
    """Number names (N,) from 0, in alphabetical order."""
    _, numbers = np.unique(names, return_inverse=True)
    return numbers


def _stories(corpus: TwiceTold) -> list[Telling]:
    """List the tellings and changes of a corpus, in the order of the rows of similarities."""
    return [*corpus.tellings, *corpus.changes]


def _fall(aspect: Changed, similarities: Floats, corpus: TwiceTold) -> Estimate:
    """Compute how much the similarity with the other tellings of a plot falls if an aspect is changed."""
    row_of = {telling.id: row for row, telling in enumerate(_stories(corpus))}
    falls, plots = [], []
    for change in corpus.changes:
        if change.changed != aspect:
            continue
        others = []
        for telling in corpus.tellings:
            if telling.plot == change.plot and telling.world != change.world:
                others.append(row_of[telling.id])
        original = corpus.by_plot_and_world[change.plot, change.world]
        before = similarities[row_of[original.id], others]
        after = similarities[row_of[change.id], others]
        falls.append(float((before - after).mean()))
        plots.append(change.plot)
    return _estimate_by_group(np.array(falls), plots, bounds=(-np.inf, np.inf))


def _cells(similarities: Floats, corpus: TwiceTold) -> dict[str, Estimate]:
    """Compute the accuracy on each cell of triples."""
    row_of = {telling.text: row for row, telling in enumerate(_stories(corpus))}
    accuracies: dict[str, Estimate] = {}
    for cell in corpus.cells():
        rows = np.array([row_of[text] for text in cell.triples.stories.texts])
        anchors, a, b = rows[cell.triples.indices].T
        answers_a = similarities[anchors, a] > similarities[anchors, b]
        correct = answers_a == (cell.triples.labels == 1)
        accuracies[cell.cell] = _estimate_by_group(correct, cell.plots)
    return accuracies


def _plots(triples: Triples) -> NDArray[np.str_] | None:
    """Return the plot of each triple; None if the file has no such column."""
    try:
        return np.array(_read_column(PLOT, triples))
    except OptionError:
        return None


def _read_column(name: str, triples: Triples) -> list[str]:
    """Read a column of the file of the triples."""
    values = read_facets([name], triples)[name]
    return [] if values is None else list(map(str, values))


def _estimate_by_group(
    values: NDArray[np.float64], groups: ArrayLike, bounds: tuple[float, float] = (0.0, 1.0)
) -> Estimate:
    """Compute the mean of values (N,), with an interval over the groups (N,); with few groups there is no interval."""
    mean = float(np.mean(values))
    if len(np.unique(groups)) < FEWEST:
        return Estimate(mean, None, None, len(values))
    [(low, high)] = group_intervals(values[:, None].astype(float), groups, bounds=bounds)
    if np.isinf(low):  # all values are equal, and nothing bounds them
        return Estimate(mean, None, None, len(values))
    return Estimate(mean, low, high, len(values))


def _estimate_of(accuracy: AccuracySummary) -> Estimate:
    """Convert an accuracy and its interval."""
    return Estimate(accuracy.accuracy, *accuracy.interval, accuracy.n)
