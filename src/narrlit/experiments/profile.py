"""`narrlit.profile`: what a model's similarity follows, measured on Twice Told: plots, worlds, length, single aspects.

Letters of the shapes: N stories.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.api import encoder_of
from narrlit.data.readers import read_triples
from narrlit.data.schema import Triples
from narrlit.data.twice_told import Changed, Split, Telling, TwiceTold
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.choices import read_choices
from narrlit.experiments.comparison import read_facets
from narrlit.experiments.profile_report import ASPECTS, ModelProfile, Profile
from narrlit.experiments.retrieval_report import Estimate
from narrlit.explore.collection import Collection, measure_for
from narrlit.measures.collection import MeasureName
from narrlit.measures.similarity import Cosine, Lexical, Similarity
from narrlit.metrics.factorial import Design, variance_shares
from narrlit.metrics.retrieval import lexical_vectors
from narrlit.metrics.significance import AccuracySummary, group_bootstrap_intervals

Floats = NDArray[np.floating[Any]]
TFIDF: Literal["tfidf"] = "tfidf"
CELL, PLOT = "cell", "plot"
"""Columns of a file of triples: the cell of each, and the plot of its anchor."""


def profile(
    models: "str | Path | StoryEncoder | Mapping[str, StoryEncoder | str | Path] | Sequence[str | Path]",
    *,
    measure: MeasureName = "cosine",
    split: Split | None = None,
    sets: Sequence[str | Path] = (),
    choices: Sequence[str | Path] = (),
    progress: bool = False,
) -> Profile:
    """Measure how much of a model's similarity is plot, world, length and the rest, beside that of words (TF-IDF).

    The stories are those of Twice Told: each plot is told in each world, and some again with one aspect changed.

    Args:
        models: a model, several, or encoders from `narrlit.load` by name.
        measure: by which stories are compared; `cosine` of vectors is what Track B compares.
        split: `test`, `validation` or `train`, of which neither plots nor worlds occur in another; None: all stories.
        sets: files of labeled triples with a column `cell`, whose accuracies are added; intervals are from samples of
            the values of a column `plot`, or of the anchors if there is none.
        choices: files of questions with several candidates (`read_choices`), whose accuracies are added.
        progress: show progress bars on stderr.

    Returns:
        A `Profile`: `.models`, `.table()`, `.plot()`, `.write(folder)`.

    Raises:
        DataError: if a file can't be read.
        ModelError: if a model can't be loaded.
        OptionError: for a split or measure that there is not.

    >>> result = profile("minilm", split="validation")
    >>> [model.name for model in result.models]
    ['minilm', 'tfidf']
    """
    corpus = TwiceTold.read() if split is None else TwiceTold.read().split(split)
    labeled = {Path(path).stem: read_triples(str(path)) for path in sets}
    questions = {Path(path).stem: read_choices(path) for path in choices}
    tellings = [*corpus.tellings, *corpus.changes]
    texts = [telling.text for telling in tellings]
    profiles = []
    for name, encoder in _encoders(models).items():
        collection = Collection.of(texts, encoder, measure=measure_for(encoder, measure), progress=progress)
        similarities = collection.similarities.matrix().astype(np.float64)
        np.fill_diagonal(similarities, collection.similarities.with_themselves())
        others = _accuracies(labeled, Cosine(encoder), progress)
        for place, asked in questions.items():
            others[place] = _estimate_of(asked.accuracy(encoder, progress))
        profiles.append(_profile(name, similarities, corpus, others))
    words, _ = lexical_vectors(TFIDF, texts, texts)
    profiles.append(_profile(TFIDF, (words @ words.T).toarray(), corpus, _accuracies(labeled, Lexical(TFIDF))))
    return Profile(profiles, measure, split, len(corpus.plots), len(corpus.worlds))


def _encoders(
    models: "str | Path | StoryEncoder | Mapping[str, StoryEncoder | str | Path] | Sequence[str | Path]",
) -> dict[str, StoryEncoder]:
    """Load models, by their names."""
    if isinstance(models, Mapping):
        return {name: encoder_of(model) for name, model in models.items()}
    if isinstance(models, str | Path | StoryEncoder):
        models = [models]  # type: ignore[list-item]
    encoders = [encoder_of(model) for model in models]
    if not encoders:
        raise OptionError("`models`: name at least one")
    return {encoder.name: encoder for encoder in encoders}


def _profile(
    name: str, similarities: Floats, corpus: TwiceTold, others: Mapping[str, Estimate] = MappingProxyType({})
) -> ModelProfile:
    """Describe similarities (N, N) of a corpus's tellings and changes, in this order."""
    count = len(corpus.tellings)
    design = design_of(corpus.tellings)
    shares = variance_shares(similarities[:count, :count], design)
    unlike = (design.plots[:, None] != design.plots) & (design.worlds[:, None] != design.worlds)
    deviation = float(similarities[:count, :count][unlike].std())
    falls: dict[str, Estimate] = {aspect: _fall(aspect, similarities / deviation, corpus) for aspect in ASPECTS}
    return ModelProfile(name, shares, falls, _cells(similarities, corpus), others)


def design_of(tellings: Sequence[Telling]) -> Design:
    """Number plots and worlds, and count words."""
    plots = np.unique([telling.plot for telling in tellings], return_inverse=True)[1]
    worlds = np.unique([telling.world for telling in tellings], return_inverse=True)[1]
    return Design(plots, worlds, np.array([len(telling.text.split()) for telling in tellings]))


def _fall(aspect: Changed, similarities: Floats, corpus: TwiceTold) -> Estimate:
    """Compute how far the similarity with the other tellings of a plot falls if an aspect is changed."""
    place_of = {telling.id: place for place, telling in enumerate([*corpus.tellings, *corpus.changes])}
    falls, plots = [], []
    for change in corpus.changes:
        if change.changed != aspect:
            continue
        others = [
            place_of[telling.id]
            for telling in corpus.tellings
            if telling.plot == change.plot and telling.world != change.world
        ]
        original = place_of[corpus.by_plot_and_world[change.plot, change.world].id]
        falls.append(float((similarities[original, others] - similarities[place_of[change.id], others]).mean()))
        plots.append(change.plot)
    [(low, high)] = group_bootstrap_intervals(np.array(falls)[:, None], plots)
    return Estimate(float(np.mean(falls)), low, high, len(falls))


def _cells(similarities: Floats, corpus: TwiceTold) -> dict[str, Estimate]:
    """Compute the accuracy of each cell of triples."""
    place_of = {telling.text: place for place, telling in enumerate([*corpus.tellings, *corpus.changes])}
    accuracies: dict[str, Estimate] = {}
    for cell in corpus.cells():
        texts = np.array([[place_of[text] for text in row] for row in cell.triples.texts()])
        chooses_a = similarities[texts[:, 0], texts[:, 1]] > similarities[texts[:, 0], texts[:, 2]]
        right = chooses_a == (cell.triples.labels == 1)
        [(low, high)] = group_bootstrap_intervals(right[:, None].astype(float), cell.plots)
        accuracies[cell.cell] = Estimate(float(right.mean()), low, high, len(right))
    return accuracies


def _accuracies(labeled: Mapping[str, Triples], measure: Similarity, progress: bool = False) -> dict[str, Estimate]:
    """Compute the accuracy of each cell of each file of triples."""
    accuracies = {}
    for name, triples in labeled.items():
        scores = measure.score(triples, progress)
        right = (scores[:, 0] > scores[:, 1]) == (triples.labels == 1)
        groups = np.array(_groups(triples))
        cells = np.array([str(value) for value in read_facets([CELL], triples)[CELL] or ()])
        for cell in dict.fromkeys(cells.tolist()):
            chosen = cells == cell
            [(low, high)] = group_bootstrap_intervals(right[chosen, None].astype(float), groups[chosen])
            accuracies[f"{name}: {cell}"] = Estimate(float(right[chosen].mean()), low, high, int(chosen.sum()))
    return accuracies


def _groups(triples: Triples) -> list[str]:
    """Read which triples belong together: those of a plot, if the file has such a column, or else of an anchor."""
    try:
        return [str(value) for value in read_facets([PLOT], triples)[PLOT] or ()]
    except OptionError:
        return [anchor for anchor, _, _ in triples.texts()]


def _estimate_of(accuracy: AccuracySummary) -> Estimate:
    """Take an accuracy with Wilson's interval."""
    return Estimate(accuracy.accuracy, *accuracy.interval, accuracy.n)
