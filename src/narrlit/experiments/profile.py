"""`narrlit.profile`: how much a model's similarity depends on plot, world, length and single aspects.

Letters in shapes: N stories, the tellings and then the changes of a corpus; Q questions of multiple choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isinf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field

from narrlit.api import encoder_of
from narrlit.data.readers import read_triples
from narrlit.data.rows import read_rows
from narrlit.data.schema import ASPECTS, BoolArray, Floats, Triples
from narrlit.data.splits import story_numbers
from narrlit.data.twice_told import Split, Telling, TwiceTold
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, OptionError, reading
from narrlit.experiments.facets import read_facets
from narrlit.library.collection import Collection, measure_for
from narrlit.measures.names import MeasureName
from narrlit.measures.similarity import Cosine, Lexical, Similarity
from narrlit.optional import require
from narrlit.results import Estimate, Note, Result, Row, estimate
from narrlit.results.plots import COLORS, GRAY
from narrlit.statistics.factorial import FEWEST_GROUPS, VARIANCE_COMPONENTS, Design, variance_shares
from narrlit.statistics.words import lexical_vectors, stop_words_of, stop_words_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
) -> "Profile":
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
        A `Result` with TF-IDF as the last system. Its subsets are `share: plot` (`world`, `length`, `rest`), the share
        of similarity; `fall: theme` (`action`, `outcome`), the fall of similarity, in standard deviations, when this
        aspect is changed; `triples: CELL`, the accuracy on Twice Told's triples; and `set: FILE: CELL`, that on files.

    Raises:
        DataError: if a file can't be read.
        ModelError: if a model can't be loaded.
        OptionError: if there is no such split or measure.

    >>> result = profile("minilm", split="validation")
    >>> result.estimate("minilm", "accuracy", "triples: far, weak").n
    16
    """
    corpus = TwiceTold.read() if split is None else TwiceTold.read().split(split)
    triples = {Path(path).stem: read_triples(str(path)) for path in sets}
    questions = {Path(path).stem: read_choices(path) for path in choices}
    texts = [telling.text for telling in (*corpus.tellings, *corpus.changes)]
    figures: list[Row] = []
    for name, encoder in _encoders(models).items():
        collection = Collection.of(texts, encoder, measure=measure_for(encoder, measure), progress=progress)
        similarities = collection.similarities.matrix().astype(np.float64)
        np.fill_diagonal(similarities, collection.similarities.with_themselves())
        figures += profile_figures(name, similarities, corpus)
        figures += _triple_figures(name, Cosine(encoder), triples, progress)
        for file, asked in questions.items():
            right = answer_choices(asked, encoder, progress)
            figures.append(estimate(right).row(name, subset=f"set: {file}"))
    vectors, _ = lexical_vectors(TFIDF, texts, texts)
    figures += profile_figures(TFIDF, (vectors @ vectors.T).toarray(), corpus)
    figures += _triple_figures(TFIDF, Lexical(TFIDF), triples)

    counts = {"plots": len(corpus.plots), "worlds": len(corpus.worlds)}
    name = "Twice Told" if split is None else f"The {split} part of Twice Told"
    notes = [Note.of("twice_told", corpus=name, measure=measure, **counts)]
    if counts["plots"] < FEWEST_GROUPS:
        notes.append(Note.of("few_plots", fewest=FEWEST_GROUPS))
    elif counts["worlds"] < FEWEST_GROUPS:
        notes.append(Note.of("few_worlds", fewest=FEWEST_GROUPS))
    words = stop_words_text(stop_words_of(texts))
    notes += [Note.of("shares"), Note.of("falls"), Note.of("cells"), Note.of("stop_words", words=words)]
    return Profile.of("profile", figures, settings={"measure": measure, "split": split, **counts}, notes=notes)


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
        raise OptionError("empty_list", option="models")
    return encoders


def profile_figures(name: str, similarities: Floats, corpus: TwiceTold) -> Iterator[Row]:
    """Compute shares, falls, and accuracies on triples, from similarities (N, N), with those of each story with itself.

    A fall is the mean decrease of a story's similarity with the other tellings of its plot when an aspect of the story
    is changed, in standard deviations of the similarities of tellings that share neither plot nor world.
    """
    design = design_of(corpus.tellings)
    of_tellings = similarities[: len(design), : len(design)]
    for component, share in variance_shares(of_tellings, design).items():
        yield share.row(name, "share of similarity", f"share: {component}")

    stories = [*corpus.tellings, *corpus.changes]
    is_unrelated = (design.plots[:, None] != design.plots) & (design.worlds[:, None] != design.worlds)
    deviation = float(of_tellings[is_unrelated].std())
    row_of = {telling.id: row for row, telling in enumerate(stories)}
    for aspect in ASPECTS:
        falls, plots = [], []
        for change in corpus.changes:
            if change.changed != aspect:
                continue
            others = [
                row_of[telling.id]
                for telling in corpus.tellings
                if telling.plot == change.plot and telling.world != change.world
            ]
            original = corpus.by_plot_and_world[change.plot, change.world]
            decrease = similarities[row_of[original.id], others] - similarities[row_of[change.id], others]
            falls.append(float(decrease.mean()) / deviation)
            plots.append(change.plot)
        fall = estimate_by_plot(falls, plots, bounds=(-np.inf, np.inf))
        yield fall.row(name, "fall of similarity", f"fall: {aspect}")

    row_of = {telling.text: row for row, telling in enumerate(stories)}
    for cell in corpus.cells():
        rows = np.array([row_of[text] for text in cell.triples.stories.texts])
        anchors, a, b = rows[cell.triples.indices].T
        right = (similarities[anchors, a] > similarities[anchors, b]) == (cell.triples.labels == 1)
        yield estimate_by_plot(right, cell.plots).row(name, subset=f"triples: {cell.cell}")


def design_of(tellings: Sequence[Telling]) -> Design:
    """Number the plots and worlds of tellings from 0, in alphabetical order, and count their words."""
    _, plots = np.unique([telling.plot for telling in tellings], return_inverse=True)
    _, worlds = np.unique([telling.world for telling in tellings], return_inverse=True)
    return Design(plots, worlds, np.array([len(telling.text.split()) for telling in tellings]))


def _triple_figures(
    name: str, measure: Similarity, sets: Mapping[str, Triples], progress: bool = False
) -> Iterator[Row]:
    """Compute the accuracy of a measure on each cell of each file of triples."""
    for file, triples in sets.items():
        scores = measure.score(triples, progress)
        right = (scores[:, 0] > scores[:, 1]) == (triples.labels == 1)
        stories = story_numbers(triples)
        cells = np.array(_read_column(CELL, triples))
        try:
            plots = np.array(_read_column(PLOT, triples))
        except OptionError:  # there is no such column
            plots = None
        for cell in dict.fromkeys(cells.tolist()):
            rows = cells == cell
            if plots is None:
                accuracy = estimate(right[rows], stories[rows])
            else:
                accuracy = estimate_by_plot(right[rows], plots[rows])
            yield accuracy.row(name, subset=f"set: {file}: {cell}")


def _read_column(name: str, triples: Triples) -> list[str]:
    """Read a column of the file of the triples."""
    values = read_facets([name], triples)[name]
    return [] if values is None else list(map(str, values))


def estimate_by_plot(values: ArrayLike, plots: ArrayLike, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Compute the mean of values (N,), with an interval over their plots (N,); there is none with few plots."""
    found = estimate(values, plots, bounds)
    if len(np.unique(plots)) < FEWEST_GROUPS or isinf(
        found.low
    ):  # infinite: all values are equal, and nothing bounds them
        return found._replace(low=nan, high=nan, method="none")
    return found._replace(method="by_group")  # also if each plot has one value


class Profile(Result):
    """Result of `narrlit.profile`, whose picture has three parts."""

    def plot(self, metric: str | None = None, subset: str | None = None) -> "Axes":
        """Plot shares, falls and accuracies on triples side by side, and return the matplotlib axes of the shares.

        With a metric or a subset, plot these figures alone, as other results do.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        if metric is not None or subset is not None:
            return super().plot(metric, subset)
        require("matplotlib", "plots")
        from matplotlib.figure import Figure

        systems = list(dict.fromkeys(self.figures["system"]))
        figure = Figure(figsize=(11, 1.6 + 0.4 * len(systems)), layout="constrained")
        shares: Axes
        shares, falls, triples = figure.subplots(1, 3)
        self._draw_shares(shares)
        self._draw_points(falls, "fall")
        self._draw_points(triples, "triples")
        triples.axvline(0.5, color=GRAY, linewidth=0.8, zorder=0)
        labels = ("share of the variance of stories", "fall when changed (sd)", "accuracy of triples")
        for axes, label, columns in zip((shares, falls, triples), labels, (4, 2, 2), strict=True):
            axes.set_yticks(range(len(systems)), systems if axes is shares else [""] * len(systems))
            axes.invert_yaxis()
            axes.set_xlabel(label)
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=columns, frameon=False, fontsize=8)
        return shares

    def _draw_shares(self, axes: "Axes") -> None:
        """Draw one bar for each system, divided into shares."""
        start: Floats = np.zeros(self.figures["system"].nunique())
        for component, color in zip(VARIANCE_COMPONENTS, (COLORS[2], COLORS[1], COLORS[4], "#d0d7de"), strict=True):
            shares = self.figures[self.figures["subset"] == f"share: {component}"]["value"].to_numpy(float)
            widths = np.maximum(shares, 0.0)
            axes.barh(range(len(widths)), widths, left=start, color=color, label=component)
            start = start + widths

    def _draw_points(self, axes: "Axes", facet: str) -> None:
        """Draw the figures of a facet, with their intervals, below each other for each system."""
        figures = self.figures[self.figures["subset"].str.startswith(f"{facet}: ")]
        height = 0.8 / figures["subset"].nunique()
        for number, (subset, of_subset) in enumerate(figures.groupby("subset", sort=False)):
            values = of_subset["value"].to_numpy(float)
            ends = np.nan_to_num(np.abs(of_subset[["low", "high"]].to_numpy(float).T - values))
            places = np.arange(len(values)) - 0.4 + height * (number + 0.5)
            name, color = str(subset).removeprefix(f"{facet}: "), COLORS[number]
            axes.errorbar(values, places, xerr=ends, label=name, color=color, fmt="o", markersize=4, capsize=2)


class ChoiceRow(BaseModel):
    """Question: a story, candidates, and the number of the right candidate."""

    anchor_text: str = Field(min_length=1)
    choices: list[str] = Field(min_length=2)
    answer: int = Field(ge=0)


def answer_choices(questions: Sequence[ChoiceRow], encoder: StoryEncoder, progress: bool = False) -> BoolArray:
    """Choose the candidate with the largest cosine to the anchor of each question; return the right answers, (Q,)."""
    texts: list[str] = []
    for question in questions:
        texts += [question.anchor_text, *question.choices]
    vectors = unit_vectors(encoder.embed(texts, progress=progress))
    right = []
    start = 0
    for question in questions:
        end = start + 1 + len(question.choices)
        cosines = vectors[start + 1 : end] @ vectors[start]
        right.append(cosines.argmax() == question.answer)
        start = end
    return np.array(right)


def read_choices(path: str | Path) -> list[ChoiceRow]:
    """Read questions from JSON Lines: anchor_text, choices (a list of texts) and answer (from 0).

    Raises:
        DataError: if a row is invalid; the message names the line and the field.
    """
    file = read_rows(path)
    questions = []
    for row in file.rows:
        with reading("broken_question", file.place(row)):
            question = ChoiceRow.model_validate(row.value)
        count = len(question.choices)
        if question.answer >= count:
            raise DataError("no_such_choice", place=file.place(row), answer=question.answer, choices=count)
        questions.append(question)
    return questions
