"""Report on systems and their answers to labeled triples as one HTML file, drawn by the page's report view."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

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
from narrlit.pages import report_page, report_section
from narrlit.results import Difference, Estimate, Result
from narrlit.results.formatting import Cells
from narrlit.results.notes import NOTE_SENTENCES
from narrlit.results.plots import CHANCE
from narrlit.statistics.evaluations import estimate_of
from narrlit.statistics.set_checks import check_tables

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
WORD = re.compile(r"\w{4,}")
FLAGS = {
    "trained_on_validation": "trained on its own validation triples: its accuracy on them is not a valid result",
    "transductive": "read unlabeled stories of the evaluation in training",
    "mined_validation": "mined hard examples from its validation triples",
}
CONCLUSIONS = ("against_no_result", "better", "worse", "undecided", "undecidable", "no_result")
"""Codes of notes that are findings."""
METHODS = ("interval_", "test_", "adjusted_p", "shared_stories", "too_many_shared_stories")
"""Beginnings of codes of notes on intervals and tests."""
BinAccuracies = dict[str, dict[str, Estimate]]
"""Accuracies by bin and system."""
HighlightedPiece = tuple[str, bool]
"""Piece of a text, and True if it is highlighted."""
Chart = dict[str, Any]
"""Chart as `page/charts.js` draws it: its kind, its data, and its caption."""
SectionKind = Literal["accuracy", "training", "map", "distances", "kinds", "margin", "errors", "data", "check"]


@dataclass(frozen=True)
class Section:
    """Section of the report; the page has a title and a text for each kind.

    Attributes:
        kind: what the section is about.
        note: text after that of the page.
        key: names of the systems or kinds of answers, in the order of their colors.
        figures: charts.
        tables: rows of cells by title.
        lines: sentences.
        errors: wrong answers by system, each with its row and stories: heading, score and pieces.
    """

    kind: SectionKind
    note: str = ""
    key: Sequence[str] = ()
    figures: Sequence[Chart] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    lines: Sequence[str] = ()
    errors: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)

    def answer(self) -> dict[str, object]:
        """Describe the section for the page."""
        parts = {**vars(self), "errors": list(self.errors.items())}
        return report_section(**parts)


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

    """
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
    title = f"{', '.join(system.name for system in systems)}: {source}"
    return report_page(title, _findings(systems, comparison), [section.answer() for section in sections])


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
    return Section("accuracy", " ".join(methods), tables=tables)


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


def _interval(estimate: Estimate) -> tuple[float, float, float]:
    """Return an accuracy with its interval, as charts show it; without one, the interval is the accuracy."""
    low, high = (estimate.value if math.isnan(end) else end for end in (estimate.low, estimate.high))
    return (estimate.value, low, high)


def _shifts(num_systems: int, width: float) -> list[float]:
    """Compute positions (num_systems,) around 0, so that the intervals of systems do not cover each other."""
    positions: list[float] = (width * ((np.arange(num_systems) + 0.5) / num_systems - 0.5)).tolist()
    return positions


def _training(runs: Mapping[str, Run]) -> Iterator[Section]:
    """Plot validation accuracy and training loss by epoch."""
    validated = [(name, run) for name, run in runs.items() if run.record.validations][:MOST_SYSTEMS]
    if not validated:
        return
    axis = {"kind": "lines", "x_label": "epochs", "x_whole": True, "y_range": None, "ticks": None}
    accuracies, losses = [], []
    for number, (name, run) in enumerate(validated):
        accuracies.append({"system": number, "name": name, "points": _validation_points(run.record, 0.05 * number)})
        points = _loss_points(run)
        if points:
            losses.append({"system": number, "name": name, "points": points})
    figures = [{**axis, "caption": "validation", "y_label": "validation", "guess": CHANCE, "series": accuracies}]
    if losses:
        figures.append({**axis, "caption": "loss", "y_label": "loss", "guess": None, "series": losses})
    yield Section("training", key=[name for name, _ in validated], figures=figures)


def _validation_points(record: RunFile, shift: float) -> list[tuple[float, ...]]:
    """Return the validation accuracies of a run by epoch, from the untrained model on, moved by `shift` epochs."""
    evaluations = record.validations if record.untrained is None else [record.untrained, *record.validations]
    points: list[tuple[float, ...]] = []
    for evaluation in evaluations:
        estimate = estimate_of(evaluation)
        if estimate.known:
            points.append((_epochs(evaluation) + shift, *_interval(estimate)))
    return points


def _loss_points(run: Run) -> list[tuple[float, float]]:
    """Return the training losses of a run by epoch."""
    steps, values = _losses(run.folder)
    if len(steps) == 0:
        return []
    last = run.record.validations[-1]
    steps_per_epoch = (last.step or 0) / _epochs(last)
    return list(zip(((steps + 1) / steps_per_epoch).tolist(), values.tolist(), strict=True))


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

    def charted(self, points: Floats, right: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """Describe the triples for a chart: corners, stories and answer of each."""
        triples = []
        for number, (row, is_right) in enumerate(zip(self.rows.tolist(), right.tolist(), strict=True)):
            texts = [corner[number] for corner in self.texts]
            answer = f"Row {row + 1}, {'right' if is_right else 'wrong'}"
            corners = points[number].astype(np.float64).round(4).tolist()
            triples.append({"points": corners, "right": is_right, "answer": answer, "texts": texts})
        return triples


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
    figures = []
    for system in systems:
        vectors: Any = system.vectors
        correct = system.correct
        if margin is not None and system.margin is not None:
            correct = system.margin > margin
        right = correct[mapped.rows]
        counts = {"system": system.name, "right": int(right.sum()), "wrong": int((~right).sum())}
        triples = mapped.charted(mapped.points(vectors, project), right)
        figures.append({"kind": "triangles", "caption": "answers", "values": counts, "triples": triples})
    note = f"Projection: {method}."
    if len(mapped.rows) < len(labeled):
        note += f" {len(mapped.rows)} of {len(labeled)} triples, evenly spaced."
    key = ["answered right", "answered wrong"]
    if margin is not None:
        key = [f"closer by more than {margin:g}", "not"]
        note += f" Right: the distance to the closer candidate plus {margin:g} is less than that to the other one."
    yield Section("map", note, key, figures)


def _projector(projection: ProjectionMethod, stories: int) -> tuple[str, Callable[[Floats], Floats]]:
    """Choose a projection of embeddings (N, D) to two dimensions (N, 2); return its name and function."""
    enough = stories >= FEWEST_FOR_UMAP and find_spec("umap") is not None
    if projection == "umap" or (projection == "auto" and enough):
        umap = require("umap", "report")
        neighbors = min(15, stories - 1)
        return "UMAP", umap.UMAP(n_neighbors=neighbors, metric="cosine", random_state=0, n_jobs=1).fit_transform
    return "two principal components (PCA)", PCA(2, svd_solver="full").fit_transform


def _distances(systems: Sequence[SystemAnswers]) -> Iterator[Section]:
    """Plot histograms of the distances between anchor and both candidates."""
    if not systems:
        return
    figures = []
    for system in systems:
        closer, other = _candidate_distances(system)
        values = {"system": system.name, "closer": _mean_text(closer), "other": _mean_text(other)}
        figures.append({**_histogram(closer, other), "caption": "distances", "values": values})
    yield Section("distances", key=["closer", "other"], figures=figures)


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


def _histogram(closer: Floats, other: Floats) -> Chart:
    """Count two kinds of distances (N,) in the same bins."""
    num_bins = int(np.clip(len(closer) // 5, 8, 30))
    edges = np.histogram_bin_edges([closer, other], bins=num_bins)
    series = []
    for kind, values in enumerate((closer, other)):
        counts, _ = np.histogram(values, edges)
        series.append({"kind": kind, "counts": counts.tolist(), "mean": float(values.mean())})
    return {"kind": "histogram", "edges": edges.tolist(), "series": series}


def _subsets(systems: Sequence[SystemAnswers], facets: Mapping[str, BinAccuracies]) -> Iterator[Section]:
    """Plot accuracies by subset of the triples."""
    if not facets:
        return
    everything = {"all": {system.name: system.estimate for system in systems}}
    figures = []
    for name, bins in facets.items():
        caption = NOTE_SENTENCES.get(f"by_{name}", f"By {name}")
        figures.append({**_bins(systems, everything | bins), "caption": caption, "guess": CHANCE})
    yield Section("kinds", key=[system.name for system in systems], figures=figures)


def _bins(systems: Sequence[SystemAnswers], bins: BinAccuracies) -> Chart:
    """Collect accuracies by bin, from top to bottom."""
    series = []
    for number, system in enumerate(systems):
        estimates = [of_bin[system.name] for of_bin in bins.values()]
        values = [_interval(estimate) if estimate.known else None for estimate in estimates]
        series.append({"system": number, "name": system.name, "values": values})
    return {"kind": "bins", "bins": list(bins), "series": series}


def _margins(systems: Sequence[SystemAnswers], quartiles: BinAccuracies) -> Iterator[Section]:
    """Plot accuracies by quartile of the margin between both scores; a system without scores has no margin."""
    if not quartiles:
        return
    positions = range(1, len(quartiles) + 1)
    series = []
    for number, (system, shift) in enumerate(zip(systems, _shifts(len(systems), width=0.3), strict=True)):
        points = []
        for position, accuracies in zip(positions, quartiles.values(), strict=True):
            estimate = accuracies.get(system.name)
            if estimate is not None and estimate.known:
                points.append((position + shift, *_interval(estimate)))
        series.append({"system": number, "name": system.name, "points": points})
    axes = {"x_label": "margin", "y_label": "accuracy", "y_range": (-0.02, 1.02), "ticks": list(positions)}
    chart = {"kind": "lines", "caption": "margin", "x_whole": True, "guess": CHANCE, **axes, "series": series}
    yield Section("margin", key=[system.name for system in systems], figures=[chart])


# Texts and data ------------------------------------------------------------------------------------------------------


def _errors(systems: Sequence[SystemAnswers], labeled: Triples) -> Iterator[Section]:
    """Show the wrong answers with the largest margins; words that candidates share with the anchor are highlighted."""
    texts = labeled.texts()
    errors: dict[str, list[dict[str, Any]]] = {}
    for system in systems:
        if system.margin is None or system.correct.all():
            continue
        order = np.argsort(system.margin, kind="stable")
        worst = order[~system.correct[order]][:ERRORS].tolist()
        errors[system.name] = [_wrong_answer(system, row, texts[row]) for row in worst]
    if errors:
        yield Section("errors", errors=errors)


def _wrong_answer(system: SystemAnswers, row: int, texts: Sequence[str]) -> dict[str, Any]:
    """Describe a wrong answer of a system to the triple in a row: heading, score and pieces of each story."""
    scores: Any = system.scores
    anchor, *candidates = [printable(text, LONG_TEXT) for text in texts]
    words = {word.lower() for word in WORD.findall(anchor)} - ENGLISH_STOP_WORDS
    closer = 0 if system.labels[row] else 1
    answered = 1 - closer
    stories = [
        ("anchor", None, [(anchor, False)]),
        ("closer", f"{scores[row, closer]:.3f}", _marked(candidates[closer], words)),
        ("answered", f"{scores[row, answered]:.3f}", _marked(candidates[answered], words)),
    ]
    return {"row": row + 1, "stories": stories}


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
    yield Section("data", tables={"": rows})
    for name, check in checks.items():
        tables = check_tables(check)
        tables.pop("Files", None)
        yield Section("check", f"Of {name}.", lines=check["verdict"], tables=tables)


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
