"""`narrlit.profile`: how much a model's similarity depends on plot, world, length and single aspects.

Letters in shapes: N stories.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrlit.api import encoder_of
from narrlit.data.readers import read_triples
from narrlit.data.schema import Floats, Triples
from narrlit.data.twice_told import Changed, Split, Telling, TwiceTold
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.choices import read_choices
from narrlit.experiments.comparison import read_facets
from narrlit.experiments.profile_report import ASPECTS, ModelProfile, Profile
from narrlit.experiments.retrieval_report import Estimate
from narrlit.explore.collection import Collection, measure_for
from narrlit.measures.similarity import Cosine, Lexical, Similarity
from narrlit.metrics.factorial import Design, variance_shares
from narrlit.metrics.names import MeasureName
from narrlit.metrics.retrieval import lexical_vectors
from narrlit.metrics.significance import AccuracySummary, group_bootstrap_intervals

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
            come from resampling the values of a column `plot` or, without this column, the anchors.
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
    labeled = {Path(path).stem: read_triples(str(path)) for path in sets}
    questions = {Path(path).stem: read_choices(path) for path in choices}
    texts = [telling.text for telling in _stories(corpus)]
    profiles = []
    for name, encoder in _encoders(models).items():
        collection = Collection.of(texts, encoder, measure=measure_for(encoder, measure), progress=progress)
        similarities = collection.similarities.matrix().astype(np.float64)
        np.fill_diagonal(similarities, collection.similarities.with_themselves())
        others = _accuracies(labeled, Cosine(encoder), progress)
        for file_name, of_file in questions.items():
            others[file_name] = _estimate_of(of_file.accuracy(encoder, progress))
        profiles.append(_profile(name, similarities, corpus, others))
    vectors, _ = lexical_vectors(TFIDF, texts, texts)
    similarities = (vectors @ vectors.T).toarray()
    profiles.append(_profile(TFIDF, similarities, corpus, _accuracies(labeled, Lexical(TFIDF))))
    return Profile(profiles, measure, split, len(corpus.plots), len(corpus.worlds))


def _encoders(
    models: "str | Path | StoryEncoder | Mapping[str, StoryEncoder | str | Path] | Sequence[str | Path]",
) -> dict[str, StoryEncoder]:
    """Load models; return encoders by name."""
    if isinstance(models, Mapping):
        return {name: encoder_of(model) for name, model in models.items()}
    if isinstance(models, str | Path | StoryEncoder):
        encoders = [encoder_of(models)]
    else:
        encoders = [encoder_of(model) for model in models]
    if not encoders:
        raise OptionError("`models`: name at least one")
    return {encoder.name: encoder for encoder in encoders}


def _profile(
    name: str, similarities: Floats, corpus: TwiceTold, others: Mapping[str, Estimate] = MappingProxyType({})
) -> ModelProfile:
    """Compute the profile of similarities (N, N) of the tellings and changes of a corpus, in this order."""
    count = len(corpus.tellings)
    of_tellings = similarities[:count, :count]
    design = design_of(corpus.tellings)
    shares = variance_shares(of_tellings, design)
    unrelated = (design.plots[:, None] != design.plots) & (design.worlds[:, None] != design.worlds)
    deviation = float(of_tellings[unrelated].std())
    falls: dict[str, Estimate] = {aspect: _fall(aspect, similarities / deviation, corpus) for aspect in ASPECTS}
    return ModelProfile(name, shares, falls, _cells(similarities, corpus), others)


def design_of(tellings: Sequence[Telling]) -> Design:
    """Number plots and worlds, and count words."""
    plots = np.unique([telling.plot for telling in tellings], return_inverse=True)[1]
    worlds = np.unique([telling.world for telling in tellings], return_inverse=True)[1]
    return Design(plots, worlds, np.array([len(telling.text.split()) for telling in tellings]))


def _stories(corpus: TwiceTold) -> list[Telling]:
    """List the tellings and changes of a corpus, in the order of the rows of similarities."""
    return [*corpus.tellings, *corpus.changes]


def _fall(aspect: Changed, similarities: Floats, corpus: TwiceTold) -> Estimate:
    """Compute how much the similarity with the other tellings of a plot falls if an aspect is changed."""
    index_of = {telling.id: index for index, telling in enumerate(_stories(corpus))}
    falls, plots = [], []
    for change in corpus.changes:
        if change.changed != aspect:
            continue
        others = []
        for telling in corpus.tellings:
            if telling.plot == change.plot and telling.world != change.world:
                others.append(index_of[telling.id])
        original = corpus.by_plot_and_world[change.plot, change.world]
        before = similarities[index_of[original.id], others]
        after = similarities[index_of[change.id], others]
        falls.append(float((before - after).mean()))
        plots.append(change.plot)
    return _estimate_by_group(np.array(falls), plots)


def _cells(similarities: Floats, corpus: TwiceTold) -> dict[str, Estimate]:
    """Compute the accuracy on each cell of triples."""
    index_of = {telling.text: index for index, telling in enumerate(_stories(corpus))}
    accuracies: dict[str, Estimate] = {}
    for cell in corpus.cells():
        indices = []
        for texts in cell.triples.texts():
            indices.append([index_of[text] for text in texts])
        anchors, a, b = np.array(indices).T
        answers_a = similarities[anchors, a] > similarities[anchors, b]
        correct = answers_a == (cell.triples.labels == 1)
        accuracies[cell.cell] = _estimate_by_group(correct, cell.plots)
    return accuracies


def _accuracies(labeled: Mapping[str, Triples], measure: Similarity, progress: bool = False) -> dict[str, Estimate]:
    """Compute the accuracy on each cell of each file of triples."""
    accuracies = {}
    for name, triples in labeled.items():
        scores = measure.score(triples, progress)
        correct = (scores[:, 0] > scores[:, 1]) == (triples.labels == 1)
        groups = np.array(_groups(triples))
        cells = np.array(_read_column(CELL, triples))
        for cell in dict.fromkeys(cells.tolist()):
            in_cell = cells == cell
            accuracies[f"{name}: {cell}"] = _estimate_by_group(correct[in_cell], groups[in_cell])
    return accuracies


def _groups(triples: Triples) -> list[str]:
    """Return the group of each triple: its plot, if the file has this column, else its anchor."""
    try:
        return _read_column(PLOT, triples)
    except OptionError:
        return [anchor for anchor, _, _ in triples.texts()]


def _read_column(name: str, triples: Triples) -> list[str]:
    """Read a column of the file of the triples."""
    values = read_facets([name], triples)[name]
    return [] if values is None else [str(value) for value in values]


def _estimate_by_group(values: NDArray[np.float64], groups: ArrayLike) -> Estimate:
    """Compute the mean of values (N,), with an interval from resampling the groups (N,)."""
    [(low, high)] = group_bootstrap_intervals(values[:, None].astype(float), groups)
    return Estimate(float(np.mean(values)), low, high, len(values))


def _estimate_of(accuracy: AccuracySummary) -> Estimate:
    """Convert an accuracy and its Wilson interval."""
    return Estimate(accuracy.accuracy, *accuracy.interval, accuracy.n)
