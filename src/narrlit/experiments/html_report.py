"""Report on systems and their answers to labeled triples as one HTML file; texts and layout are in html_report.html."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from narrlit.console import counted
from narrlit.data.schema import FloatArray, Floats, IntArray, Triples
from narrlit.errors import printable
from narrlit.experiments.options import ProjectionMethod
from narrlit.experiments.run import Run
from narrlit.experiments.systems import Flags, SystemAnswers
from narrlit.models.run_file import Evaluation, RunFile
from narrlit.optional import require
from narrlit.pages import COLORS, GRAY, bokeh_parts, render_page
from narrlit.results import Difference, Estimate, Result
from narrlit.results.formatting import Cells
from narrlit.results.notes import NOTE_SENTENCES
from narrlit.results.plots import CHANCE
from narrlit.statistics.evaluations import estimate_of
from narrlit.statistics.set_checks import check_tables

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex")
"""Marker of each color, for readers who can't tell the colors apart."""
RIGHT, WRONG = "#1b7837", "#762a83"
MOST_SYSTEMS = 6
"""Maximum number of systems in figures."""
MAPPED = 200
"""Maximum number of triples in a map."""
FEWEST_FOR_UMAP = 60
"""Minimum number of stories for a map by UMAP, if it is installed."""
ERRORS = 5
"""Maximum number of errors that are shown per system."""
SHORT_TEXT, LONG_TEXT = 180, 1500
"""Maximum number of characters of a story in the tooltips of a map, and among the errors."""
TRIANGLE_ALPHAS = {
    "line_alpha": 0.2,
    "fill_alpha": 0,
    "hover_line_alpha": 1,
    "hover_fill_alpha": 0.3,
    "selection_line_alpha": 1,
    "selection_fill_alpha": 0.3,
    "nonselection_line_alpha": 0.05,
    "nonselection_fill_alpha": 0,
}
"""Opacities of a map's triangles, which are faint until one is pointed at or selected."""
WORD = re.compile(r"\w{4,}")
FLAGS = {
    "trained_on_validation": "trained on its own validation triples: its accuracy on them is not a valid result",
    "transductive": "read unlabeled stories of the evaluation in training",
    "mined_validation": "mined hard examples from its validation triples",
}
TOOLTIP = """<div style="width: min(320px, 60vw); white-space: normal; font: 12px/1.4 system-ui, sans-serif">
<b>@answer</b><br><b>Anchor</b> @anchor<br><b>Closer</b> @closer<br><b>Other</b> @other</div>"""


CONCLUSIONS = ("against_no_result", "better", "worse", "undecided", "undecidable", "no_result")
"""Codes of notes that are findings."""
METHODS = ("interval_", "test_", "adjusted_p", "shared_stories", "too_many_shared_stories")
"""Beginnings of codes of notes on intervals and tests."""
BinAccuracies = dict[str, dict[str, Estimate]]
"""Accuracies by bin and system."""
HighlightedPiece = tuple[str, bool]
"""Piece of a text, and True if it is highlighted."""


@dataclass(frozen=True)
class WrongAnswer:
    """Wrong answer of a system: number of the triple from 1, and pieces of its stories by heading."""

    row: int
    stories: Mapping[str, Sequence[HighlightedPiece]]


@dataclass(frozen=True)
class Section:
    """Section of the report; the template has a fixed text for each title.

    Attributes:
        title: heading.
        note: text after the fixed text.
        key: colors with their meaning.
        figures: figures by caption.
        tables: rows of cells by title.
        lines: sentences.
        errors: wrong answers by system.
    """

    title: str
    note: str = ""
    key: Sequence[tuple[str, str]] = ()
    figures: Mapping[str, object] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    lines: Sequence[str] = ()
    errors: Mapping[str, Sequence[WrongAnswer]] = field(default_factory=dict)


def html_report(
    systems: Sequence[SystemAnswers],
    comparison: Result,
    runs: Mapping[str, Run],
    labeled: Triples,
    source: str,
    checks: Mapping[str, dict[str, Any]],
    projection: ProjectionMethod = "auto",
    margin: float | None = None,
) -> str:
    """Render a report on systems that answered the same N triples.

    Args:
        systems: one or more systems; each is compared with the first.
        comparison: comparison of the systems by `compare_answers`, with the facet `margin` and optionally others.
        runs: runs of the systems that have a record, by the name of the system.
        labeled: the triples, with their original texts.
        source: name of the triples.
        checks: checks of data, by the name of the checked data.
        projection: projection of embeddings to two dimensions; auto is UMAP if it is installed and there are enough
            stories.
        margin: difference of the cosines above which a triple is right on the map; None: as its answer is.

    Returns:
        HTML that makes no requests and runs only its own scripts.

    Raises:
        MissingExtraError: if Bokeh is not installed.
    """
    require("bokeh", "report")
    shown = systems[:MOST_SYSTEMS]
    with_vectors = [system for system in shown if system.vectors is not None]
    no_baselines = [system for system in shown if system.kind != "baseline"]
    facets = _facets(comparison.figures)
    quartiles = facets.pop("margin", {})
    sections = [
        _summary(systems, comparison, runs),
        *_training(runs),
        *_maps(with_vectors, labeled, projection, margin),
        *_distances(with_vectors),
        *_subsets(shown, facets),
        *_margins(shown, quartiles),
        *_errors(no_baselines or shown, labeled),
        *_data(checks, runs, source, len(labeled)),
    ]
    scripts, divisions = bokeh_parts(_plots(sections))
    return render_page(
        Path(__file__).with_suffix(".html"),
        [*scripts, Path(__file__).with_suffix(".js").read_text(encoding="utf-8")],
        title=f"{', '.join(system.name for system in systems)}: {source}",
        findings=_findings(systems, comparison),
        sections=sections,
        divisions=divisions,
    )


def _plots(sections: Sequence[Section]) -> dict[str, object]:
    """Collect the plots of sections, named by section and position as in the template, such as 0-1."""
    plots = {}
    for number, section in enumerate(sections):
        for position, plot in enumerate(section.figures.values()):
            plots[f"{number}-{position}"] = plot
    return plots


# Accuracy ------------------------------------------------------------------------------------------------------------


def _facets(figures: pd.DataFrame) -> dict[str, BinAccuracies]:
    """Collect the accuracies by facet, bin and system."""
    facets: dict[str, BinAccuracies] = {}
    for row in figures[figures["metric"] == "accuracy"].to_dict("records"):
        facet, found, name = row["subset"].partition(": ")
        if found:
            accuracy = Estimate(row["value"], row["low"], row["high"], row["n"], row["method"])
            facets.setdefault(facet, {}).setdefault(name, {})[row["system"]] = accuracy
    return facets


def _findings(systems: Sequence[SystemAnswers], comparison: Result) -> list[str]:
    """Return sentences about the accuracy of the first system, the differences that are shown, and flags."""
    first = systems[0].estimate
    findings = [f"{systems[0].name}: {first}, {_claim(first)}."]
    findings += [str(note) for note in comparison.notes if note.code in CONCLUSIONS]
    for system in systems:
        words = _flags(system.flags, evaluations=False)
        if words:
            findings.append(f"{system.name}: {words}.")
    return findings


def _claim(accuracy: Estimate) -> str:
    """Describe how an accuracy compares with guessing, by its interval."""
    if accuracy.low > CHANCE:
        return "better than guessing"
    if accuracy.high < CHANCE:
        return "worse than guessing"
    return "no difference from guessing is shown"


def _flags(flags: Flags, evaluations: bool = True) -> str:
    """Describe what an accuracy depends on, by the flags of a system."""
    words = [text for name, text in FLAGS.items() if flags.get(name)]
    if "seen_in_training" in flags:
        words.append(str(flags["seen_in_training"]))
    if evaluations and "num_evaluations" in flags:
        count = counted(int(flags["num_evaluations"]), "evaluation")
        words.append(f"chosen among {count} on its validation triples")
    if "track" in flags:
        scored = "vectors" if flags["track"] == "B" else "answers"
        words.append(f"{scored} of Track {flags['track']}")
    return "; ".join(words)


def _summary(systems: Sequence[SystemAnswers], comparison: Result, runs: Mapping[str, Run]) -> Section:
    """Tabulate the accuracies of systems, and how runs were trained."""
    rows: list[Cells] = []
    for row, system in zip(comparison.shown_tables()[""], systems, strict=True):
        rows.append({**row, "flags": _flags(system.flags)})
    tables: dict[str, Sequence[Mapping[str, object]]] = {"": rows}
    if runs:
        tables["Runs, on their validation triples"] = [_run_row(name, run) for name, run in runs.items()]
        tables["Commands"] = [_command_row(name, run) for name, run in runs.items()]
    methods = [str(note) for note in comparison.notes if note.code.startswith(METHODS)]
    return Section("Accuracy", " ".join(methods), tables=tables)


def _run_row(name: str, run: Run) -> Cells:
    """Tabulate a run's accuracies on its own validation triples."""
    record = run.record
    last = record.validations[-1] if record.validations else None
    evaluations = {"untrained": record.untrained, "last epoch": last, "best": record.best}
    row: Cells = {"run": name}
    for title, evaluation in evaluations.items():
        if evaluation is not None:
            row[title] = str(estimate_of(evaluation))
    found = record.comparison
    if found is not None and record.best is not None:
        ends = (math.nan, math.nan)
        row["gain, best"] = str(Difference(found.difference, *ends, found.p, found.test, record.best.n))
    row["evaluations"] = "" if record.num_evaluations is None else str(record.num_evaluations)
    return row


def _command_row(name: str, run: Run) -> dict[str, object]:
    """Tabulate how a run was trained."""
    record = run.record
    return {
        "run": name,
        "objective": record.model.objective,
        "encoder": record.encoder,
        "seed": record.seed,
        "command": record.command.line,
    }


# Figures -------------------------------------------------------------------------------------------------------------


def _plot(x_label: str, y_label: str, **options: Any) -> Any:
    """Create an empty Bokeh figure as wide as the page; options are those of Bokeh."""
    from bokeh.plotting import figure

    options = {"height": 320, "sizing_mode": "stretch_width", "tools": "", "toolbar_location": None, **options}
    return figure(x_axis_label=x_label, y_axis_label=y_label, **options)


def _keys(names: Sequence[str]) -> list[tuple[str, str]]:
    """List the colors and names of a figure's systems; a single system needs no key."""
    return list(zip(COLORS[: len(names)], names, strict=True)) if len(names) > 1 else []


def _shifts(num_systems: int, width: float) -> Floats:
    """Compute positions (num_systems,) around 0, so that the intervals of systems do not cover each other."""
    return width * ((np.arange(num_systems) + 0.5) / num_systems - 0.5)


def _intervals(plot: Any, placed: Sequence[tuple[float, Estimate]], number: int, horizontal: bool = False) -> None:
    """Draw accuracies with intervals.

    Args:
        plot: Bokeh figure.
        placed: accuracies, each with its position on the other axis.
        number: number of the system, from 0, which determines color and marker.
        horizontal: draw accuracies along the x axis, not connected by lines.
    """
    points = [(position, found.value, found.low, found.high) for position, found in placed if found.known]
    if not points:
        return
    positions, accuracies, low, high = np.array(points).T
    color = COLORS[number]
    if horizontal:
        plot.segment(low, positions, high, positions, color=color, line_width=2)
        plot.scatter(accuracies, positions, color=color, marker=MARKERS[number], size=8)
    else:
        plot.segment(positions, low, positions, high, color=color, line_width=2)
        plot.line(positions, accuracies, color=color)
        plot.scatter(positions, accuracies, color=color, marker=MARKERS[number], size=8)


def _training(runs: Mapping[str, Run]) -> Iterator[Section]:
    """Plot validation accuracy and training loss by epoch."""
    validated = [(name, run) for name, run in runs.items() if run.record.validations][:MOST_SYSTEMS]
    if not validated:
        return
    accuracy, losses = _plot("epochs", "validation accuracy"), _plot("epochs", "training loss")
    accuracy.hspan(CHANCE, color=GRAY, line_dash="dashed")
    for plot in (accuracy, losses):
        plot.xaxis.ticker.min_interval = 1
    for number, (_, run) in enumerate(validated):
        _draw_validations(accuracy, run.record, number)
        _draw_losses(losses, run, COLORS[number])
    figures = {"Accuracy on the validation triples, with 95 % intervals": accuracy}
    if losses.renderers:
        figures["Loss of training batches"] = losses
    yield Section("Training", "", _keys([name for name, _ in validated]), figures)


def _draw_validations(plot: Any, record: RunFile, number: int) -> None:
    """Draw the validation accuracies of a run by epoch, from the untrained model on; `number` is that of the run."""
    shift = 0.05 * number  # so that intervals of several runs do not cover each other
    evaluations = record.validations if record.untrained is None else [record.untrained, *record.validations]
    placed = [(_epochs(evaluation) + shift, estimate_of(evaluation)) for evaluation in evaluations]
    _intervals(plot, placed, number)


def _draw_losses(plot: Any, run: Run, color: str) -> None:
    """Draw the training losses of a run by epoch."""
    steps, values = _losses(run.folder)
    if len(steps):
        last = run.record.validations[-1]
        steps_per_epoch = (last.step or 0) / _epochs(last)
        plot.line((steps + 1) / steps_per_epoch, values, color=color, line_width=2)


def _epochs(evaluation: Evaluation) -> int:
    """Count the epochs before an evaluation."""
    return 0 if evaluation.epoch is None else evaluation.epoch + 1


def _losses(folder: Path) -> Floats:
    """Read steps and training losses (2, N) from a run's TensorBoard files; none without files."""
    events = EventAccumulator(str(folder), size_guidance={"scalars": 2000}).Reload()
    if "train/loss" not in events.Tags()["scalars"]:
        return np.empty((2, 0))
    points = [(event.step, event.value) for event in events.Scalars("train/loss")]
    return np.array(points, dtype=np.float64).reshape(-1, 2).T


@dataclass(frozen=True, eq=False)
class MappedTriples:
    """N triples of a map, with stories in the order anchor, closer candidate, other candidate.

    Attributes:
        rows: (N,) positions among all triples.
        order: (N, 3) column of each story in the order of the file: anchor, A, B.
        first: position of each different story among the 3 N stories.
        corners: (N, 3) index of the different story at each corner.
        texts: for each of the three corners, the beginnings of N stories.
    """

    rows: IntArray
    order: IntArray
    first: IntArray
    corners: IntArray
    texts: Sequence[Sequence[str]]

    @classmethod
    def choose(cls, labeled: Triples) -> "MappedTriples":
        """Choose triples evenly spaced in the file."""
        rows = np.unique(np.linspace(0, len(labeled) - 1, MAPPED).astype(int))
        a_is_closer = labeled.labels[rows] == 1
        order = np.where(a_is_closer[:, None], [[0, 1, 2]], [[0, 2, 1]])
        indices = np.take_along_axis(labeled.indices[rows], order, axis=1)
        _, first, corners = np.unique(indices, return_index=True, return_inverse=True)
        texts = []
        for corner in indices.T:
            texts.append([printable(labeled.stories[index].source_text, SHORT_TEXT) for index in corner])
        return cls(rows, order, first, corners.reshape(-1, 3), texts)

    def points(self, vectors: FloatArray, project: Callable[[Floats], Floats]) -> Floats:
        """Project the vectors (T, 3, D) of all triples to the corners (N, 3, 2)."""
        ordered = np.take_along_axis(vectors[self.rows], self.order[:, :, None], axis=1)
        stories = ordered.reshape(3 * len(self.rows), -1)
        points = project(stories[self.first])
        return points[self.corners]

    def columns(self, points: Floats, right: NDArray[np.bool_]) -> dict[str, object]:
        """Collect the data of a map, one row per triple: positions of its corners, texts and answer."""
        answers = []
        for row, is_right in zip(self.rows, right, strict=True):
            answers.append(f"Row {row + 1}, {'right' if is_right else 'wrong'}")
        columns: dict[str, object] = {"color": np.where(right, RIGHT, WRONG), "answer": answers}
        columns["anchor"], columns["closer"], columns["other"] = self.texts
        for axis, name in enumerate("xy"):
            values = points[:, :, axis]
            columns[f"{name}s"] = values.tolist()
            columns[f"{name}0"], columns[f"{name}1"], columns[f"{name}2"] = values.T
        return columns


def _maps(
    systems: Sequence[SystemAnswers], labeled: Triples, projection: ProjectionMethod, margin: float | None = None
) -> Iterator[Section]:
    """Draw triangles of anchor, closer and other candidate in the plane.

    With a margin, a triangle is right if d(anchor, closer) + margin < d(anchor, other), with the cosine distance d
    (Mendel292, appendix A).
    """
    if not systems:
        return
    mapped = MappedTriples.choose(labeled)
    method, project = _projector(projection, len(mapped.first))
    figures: dict[str, object] = {}
    for system in systems:
        vectors: Any = system.vectors
        correct = system.correct
        if margin is not None and system.margin is not None:
            correct = system.margin > margin
        right = correct[mapped.rows]
        columns = mapped.columns(mapped.points(vectors, project), right)
        plot = _map(columns, f"map {len(figures)}")
        figures[f"{system.name}: {right.sum()} right, {(~right).sum()} wrong"] = plot
    note = f"Projection: {method}."
    if len(mapped.rows) < len(labeled):
        note += f" {len(mapped.rows)} of {len(labeled)} triples, evenly spaced."
    key = [(RIGHT, "answered right"), (WRONG, "answered wrong")]
    if margin is not None:
        key = [(RIGHT, f"closer by more than {margin:g}"), (WRONG, "not")]
        note += f" Right: the distance to the closer candidate plus {margin:g} is less than that to the other one."
    yield Section("Map of the stories", note, key, figures)


def _map(columns: Mapping[str, object], name: str) -> Any:
    """Plot the triangles of triples; pointing at an anchor, or selecting it, highlights its triangle."""
    from bokeh.models import ColumnDataSource, HoverTool, TapTool

    source = ColumnDataSource(dict(columns), name=name)
    plot = _plot("", "", sizing_mode="scale_width", aspect_ratio=1.3)
    plot.axis.visible = False
    plot.patches("xs", "ys", source=source, color="color", hover_color="color", **TRIANGLE_ALPHAS)
    mark = {"source": source, "color": "color"}
    anchors = plot.scatter("x0", "y0", marker="circle", size=8, **mark)
    # For anchors only, because tools of several glyphs would overwrite the highlighted triangle.
    plot.add_tools(HoverTool(renderers=[anchors], tooltips=TOOLTIP, limit=1), TapTool(renderers=[anchors]))
    plot.scatter("x1", "y1", marker="triangle", size=5, **mark)
    plot.scatter("x2", "y2", marker="x", size=5, **mark)
    return plot


def _projector(projection: ProjectionMethod, stories: int) -> tuple[str, Callable[[Floats], Floats]]:
    """Choose a projection of embeddings (N, D) to two dimensions (N, 2); return its name and function."""
    enough = stories >= FEWEST_FOR_UMAP and find_spec("umap") is not None
    if projection == "umap" or (projection == "auto" and enough):
        umap = require("umap", "report")
        neighbors = min(15, stories - 1)
        return "UMAP", umap.UMAP(n_neighbors=neighbors, metric="cosine", random_state=0, n_jobs=1).fit_transform
    return "two principal components (PCA)", PCA(2, svd_solver="full").fit_transform


def _draw_histogram(plot: Any, values: Floats, edges: Floats, color: str) -> None:
    """Draw a histogram of values (N,) with bin edges (B + 1,), and their mean as a line."""
    counts, _ = np.histogram(values, edges)
    mean = values.mean()
    plot.quad(top=counts, bottom=0, left=edges[:-1], right=edges[1:], color=color, fill_alpha=0.35)
    plot.line([mean, mean], [0, 1.08 * counts.max()], color=color, line_width=3)


def _distances(systems: Sequence[SystemAnswers]) -> Iterator[Section]:
    """Plot histograms of the distances between anchor and both candidates."""
    if not systems:
        return
    figures = {}
    for system in systems:
        closer, other = _candidate_distances(system)
        caption = f"{system.name}: closer {_mean_text(closer)}, other {_mean_text(other)}"
        figures[caption] = _distance_plot(closer, other)
    key = [(COLORS[0], "closer candidate"), (COLORS[1], "other candidate")]
    yield Section("Distances from the anchor", "", key, figures)


def _candidate_distances(system: SystemAnswers) -> tuple[Floats, Floats]:
    """Compute the distances (N,) of the closer candidates from their anchors, and those of the other candidates."""
    scores: Any = system.scores
    distances_a, distances_b = 1 - scores.T
    closer = np.where(system.labels, distances_a, distances_b)
    other = np.where(system.labels, distances_b, distances_a)
    return closer, other


def _mean_text(values: Floats) -> str:
    """Format mean and standard deviation."""
    return f"{values.mean():.3f} ± {values.std():.3f}"


def _distance_plot(closer: Floats, other: Floats) -> Any:
    """Plot histograms of two kinds of distances (N,) with the same bins."""
    num_bins = int(np.clip(len(closer) // 5, 8, 30))
    edges = np.histogram_bin_edges([closer, other], bins=num_bins)
    plot = _plot("cosine distance from the anchor", "triples")
    _draw_histogram(plot, closer, edges, COLORS[0])
    _draw_histogram(plot, other, edges, COLORS[1])
    return plot


def _subsets(systems: Sequence[SystemAnswers], facets: Mapping[str, BinAccuracies]) -> Iterator[Section]:
    """Plot accuracies by subset of the triples."""
    if not facets:
        return
    everything = {"all": {system.name: system.estimate for system in systems}}
    figures = {}
    for name, bins in facets.items():
        figures[NOTE_SENTENCES.get(f"by_{name}", f"By {name}")] = _subset_plot(systems, everything | bins)
    yield Section("Accuracy by kind of triple", "", _keys([system.name for system in systems]), figures)


def _subset_plot(systems: Sequence[SystemAnswers], bins: BinAccuracies) -> Any:
    """Plot accuracies by bin, from top to bottom."""
    height = 80 + len(bins) * (16 + 12 * len(systems))
    plot = _plot("accuracy", "", height=height, x_range=(-0.02, 1.02))
    plot.vspan(CHANCE, color=GRAY, line_dash="dashed")
    positions = -np.arange(len(bins))
    shifts = _shifts(len(systems), width=0.7)
    for number, system in enumerate(systems):
        accuracies = [of_bin[system.name] for of_bin in bins.values()]
        _intervals(plot, list(zip(positions - shifts[number], accuracies, strict=True)), number, horizontal=True)
    plot.yaxis.ticker = positions.tolist()
    plot.yaxis.major_label_overrides = {-row: printable(name, 22) for row, name in enumerate(bins)}
    plot.ygrid.visible = False
    return plot


def _margins(systems: Sequence[SystemAnswers], quartiles: BinAccuracies) -> Iterator[Section]:
    """Plot accuracies by quartile of the margin between both scores; a system without scores has no margin."""
    if not quartiles:
        return
    plot = _plot("quartile of the margin, from uncertain to certain", "accuracy", y_range=(-0.02, 1.02))
    plot.hspan(CHANCE, color=GRAY, line_dash="dashed")
    positions = np.arange(1, len(quartiles) + 1)
    shifts = _shifts(len(systems), width=0.3)
    for number, system in enumerate(systems):
        placed = []
        for position, accuracies in zip(positions + shifts[number], quartiles.values(), strict=True):
            if system.name in accuracies:
                placed.append((position, accuracies[system.name]))
        _intervals(plot, placed, number)
    plot.xaxis.ticker = positions.tolist()
    plot.xgrid.visible = False
    names = [system.name for system in systems]
    yield Section("Margin against accuracy", "", _keys(names), {"Accuracy with 95 % interval": plot})


# Texts and data ------------------------------------------------------------------------------------------------------


def _errors(systems: Sequence[SystemAnswers], labeled: Triples) -> Iterator[Section]:
    """Show the wrong answers with the largest margins; words that candidates share with the anchor are highlighted."""
    texts = labeled.texts()
    errors: dict[str, list[WrongAnswer]] = {}
    for system in systems:
        if system.margin is None or system.correct.all():
            continue
        order = np.argsort(system.margin, kind="stable")
        worst = order[~system.correct[order]][:ERRORS].tolist()
        errors[system.name] = [_wrong_answer(system, row, texts[row]) for row in worst]
    if errors:
        yield Section("Worst errors", errors=errors)


def _wrong_answer(system: SystemAnswers, row: int, texts: Sequence[str]) -> WrongAnswer:
    """Describe a wrong answer of a system to the triple in a row."""
    scores: Any = system.scores
    anchor, *candidates = [printable(text, LONG_TEXT) for text in texts]
    words = {word.lower() for word in WORD.findall(anchor)} - ENGLISH_STOP_WORDS
    closer = 0 if system.labels[row] else 1
    answered = 1 - closer
    stories = {
        "Anchor": [(anchor, False)],
        f"Closer, score {scores[row, closer]:.3f}": _marked(candidates[closer], words),
        f"Answered, score {scores[row, answered]:.3f}": _marked(candidates[answered], words),
    }
    return WrongAnswer(row + 1, stories)


def _marked(text: str, words: set[str]) -> list[HighlightedPiece]:
    """Divide a text into pieces; True if a piece is one of the words."""
    pieces: list[HighlightedPiece] = []
    end = 0
    for match in WORD.finditer(text):
        if match[0].lower() in words:
            pieces += [(text[end : match.start()], False), (match[0], True)]
            end = match.end()
    return [*pieces, (text[end:], False)]


def _data(checks: Mapping[str, dict[str, Any]], runs: Mapping[str, Run], source: str, n: int) -> Iterator[Section]:
    """Tabulate the sizes of data sets and the findings of their checks."""
    rows: list[dict[str, object]] = [{"used by": "this report", "as": "evaluation", "data": source, "rows": n}]
    for name, run in runs.items():
        rows += _data_rows(name, run)
    yield Section("Data sets", tables={"": rows})
    for name, check in checks.items():
        tables = check_tables(check)
        tables.pop("Files", None)
        yield Section("Check of the data", f"Of {name}.", lines=check["verdict"], tables=tables)


def _data_rows(name: str, run: Run) -> list[dict[str, object]]:
    """Tabulate the files and synthetic stories of a run."""
    rows: list[dict[str, object]] = []
    for role, part in run.record.data.items():
        usage = {"used by": name, "as": role}
        for file in part.files:
            num_rows = "" if file.rows is None else file.rows
            rows.append({**usage, "data": Path(file.path).name, "rows": num_rows})
        world = part.storyworld
        if world is not None:
            rows.append({**usage, "data": f"StoryWorld, seed {world.seed}", "rows": world.triples})
    return rows
