"""Report of systems on labeled triples as one HTML file: tables, figures and texts, readable without network."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrlit import __version__
from narrlit.data.schema import Triples
from narrlit.experiments.report import accuracy_cell, difference_cell
from narrlit.experiments.systems import Bools, SystemAnswers
from narrlit.metrics.baselines import jaccard_scores
from narrlit.metrics.significance import mcnemar, smallest_difference, wilson_interval
from narrlit.optional import require

Projection = Literal["auto", "umap", "pca"]
Entry = dict[str, Any]

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex")
"""Colors that color-blind readers can tell apart (Okabe and Ito 2008), and a marker for each."""
RIGHT, WRONG = "#1b7837", "#762a83"
POSITIVE, NEGATIVE = "#0072b2", "#d55e00"
MAPPED, FEWEST_FOR_UMAP = 200, 60
"""Triples in a map, evenly spaced in the file; stories below which the map is by PCA."""
ERRORS, MOST_SYSTEMS = 5, 6
"""Errors shown a system; systems that a figure can hold."""
QUARTERS = 4
SHORT_TEXT, LONG_TEXT = 180, 1500
"""Characters of a story shown beside a mark, and among the errors."""
WORD = re.compile(r"\w{4,}")
FLAGS = {
    "trained_on_validation": "trained on triples that it was validated by",
    "transductive": "read unlabeled stories of the evaluation in training",
    "mined_validation": "took hard examples from its validation triples",
}
INK, RULE = "#1f2328", "#d0d7de"
THEME = {
    "Plot": {
        "background_fill_color": None,
        "border_fill_color": None,
        "outline_line_color": None,
        "toolbar_location": None,
    },
    "Axis": {
        **dict.fromkeys(("axis_label_text_font", "major_label_text_font"), "system-ui, sans-serif"),
        **dict.fromkeys(("axis_label_text_color", "major_label_text_color"), INK),
        **dict.fromkeys(("axis_line_color", "major_tick_line_color"), "#8c959f"),
        "axis_label_text_font_style": "normal",
        "axis_label_text_font_size": "13px",
        "major_label_text_font_size": "12px",
        "minor_tick_line_color": None,
    },
    "Grid": {"grid_line_color": "#eaeef2"},
}


@dataclass(frozen=True)
class Section:
    """Part of the report: figures by caption, tables by title, errors by system."""

    title: str
    note: str = ""
    key: Sequence[tuple[str, str]] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Entry]] = field(default_factory=dict)
    lines: Sequence[str] = ()
    errors: Mapping[str, Sequence[Entry]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A run's directory and its record."""

    name: str
    folder: Path
    record: Entry


def html_report(
    systems: Sequence[SystemAnswers],
    runs: Sequence[Run],
    labeled: Triples,
    source: str,
    checks: Mapping[str, Entry],
    fields: Mapping[str, Sequence[str]],
    projection: Projection = "auto",
) -> str:
    """Write a report of systems that answered the same N triples.

    Args:
        systems: one or more; differences are taken from the first.
        runs: those of the systems that have a record.
        labeled: the triples, with their own texts.
        source: name of the triples.
        checks: results of data checks by title.
        fields: (N,) values of the triples' other fields, by name.
        projection: of embeddings to the plane; auto takes UMAP where it is installed and there are enough stories.

    Returns:
        HTML that makes no request and runs no script but its own.
    """
    bokeh = require("bokeh", "report")
    from bokeh.embed import components
    from bokeh.resources import Resources
    from bokeh.themes import Theme
    from jinja2 import Environment
    from markupsafe import Markup

    shown = systems[:MOST_SYSTEMS]
    sections = [
        summary(systems, runs),
        *training(runs),
        *story_maps(shown, labeled, projection),
        *distances(shown),
        by_subset(shown, labeled, fields),
        *by_margin(shown),
        *worst_errors(shown, labeled),
        *data_checks(checks, runs, source, len(labeled)),
    ]
    plots = {f"{i}-{j}": plot for i, s in enumerate(sections) for j, plot in enumerate(s.figures.values())}
    wrapped, divisions = components(plots, theme=Theme(json={"attrs": THEME}))
    script = wrapped.partition(">")[2].rpartition("</script>")[0]
    scripts = ["\n".join(Resources("inline", components=["bokeh"], log_level="warn").js_raw), script]
    template = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    return (
        Environment(autoescape=True, trim_blocks=True)
        .from_string(template)
        .render(
            title=f"narrlit: {', '.join(system.name for system in systems)}",
            finding=finding(systems),
            source=source,
            sections=sections,
            divisions={name: Markup(division) for name, division in divisions.items()},  # noqa: S704  (by Bokeh, no text)
            scripts=[Markup(each) for each in scripts],  # noqa: S704  (Bokeh escapes texts in it)
            digests=[b64encode(sha256(each.encode()).digest()).decode() for each in scripts],
            made=datetime.now(UTC).date().isoformat(),
            version=__version__,
            bokeh=bokeh.__version__,
        )
    )


def finding(systems: Sequence[SystemAnswers]) -> list[str]:
    """State in sentences what the answers show: each accuracy with its interval, and whether a difference is real."""
    first, n = systems[0], len(systems[0].labels)
    best = max(systems, key=lambda system: int(system.correct.sum()))
    lines = [f"{best.name} {best.summary} on {n} triples"]
    low, high = best.summary.interval
    chance = (
        "better than guessing" if low > 0.5 else "worse than guessing" if high < 0.5 else "not shown to beat guessing"
    )
    lines[0] += f": {chance}."
    if len(systems) > 1:
        other = first if best is not first else max(systems[1:], key=lambda system: int(system.correct.sum()))
        entry = paired(best, other)
        claim = f"{best.name} against {other.name}: {difference_cell(entry)}"
        share = (entry["lost"] + entry["won"]) / n
        lines.append(
            f"{claim}."
            if entry["p"] < 0.05
            else f"{claim}: no difference can be claimed; about {100 * smallest_difference(n, share):.0f} points would be "
            f"needed at n = {n}."
        )
    return lines


def paired(system: SystemAnswers, other: SystemAnswers) -> Entry:
    """Compare two systems on the same triples: difference of accuracies, lost, won and p of McNemar's exact test."""
    lost, won = int((other.correct & ~system.correct).sum()), int((system.correct & ~other.correct).sum())
    p = mcnemar(system.correct.tolist(), other.correct.tolist())
    return {"difference": (won - lost) / len(system.labels), "lost": lost, "won": won, "p": p}


def flags_in_words(flags: Mapping[str, Any]) -> str:
    """Describe what else an accuracy depends on."""
    words = [text for name, text in FLAGS.items() if flags.get(name)]
    words += [str(flags["seen_in_training"])] if flags.get("seen_in_training") else []
    words += [f"chosen by {flags['num_evaluations']} evaluations"] if flags.get("num_evaluations") else []
    return "; ".join(words)


def summary(systems: Sequence[SystemAnswers], runs: Sequence[Run]) -> Section:
    """Tabulate each system's accuracy and its difference from the first, and what each run's record holds."""
    rows = []
    for system in systems:
        against = "" if system is systems[0] else difference_cell(paired(system, systems[0]))
        row = {"system": system.name, "accuracy [95 % interval]": accuracy_cell(system.summary.as_dict())}
        row |= {"right": f"{system.summary.correct} of {system.summary.n}"}
        row |= {f"against {systems[0].name}": against} if len(systems) > 1 else {}
        rows.append(row | {"depends on": flags_in_words(system.flags)})
    tables = {"": rows if any(row["depends on"] for row in rows) else [_without(row, "depends on") for row in rows]}
    if runs:
        tables["Runs, on their own validation triples"] = [_run_row(run) for run in runs]
    note = (
        "Intervals are Wilson's at 95 %. A difference is counted on the same triples: lost are those that only the first "
        "system has right, won those that only this one has; p is of the exact McNemar test."
    )
    return Section("Accuracy", note, tables=tables)


def _run_row(run: Run) -> Entry:
    record, validations = run.record, run.record.get("validations") or []
    cells: Entry = {"run": run.name}
    for name, entry in (
        ("untrained", record.get("untrained")),
        ("last epoch", validations[-1] if validations else None),
        ("best", record.get("best")),
    ):
        cells |= {name: accuracy_cell(entry)} if entry else {}
    if record.get("comparison"):
        cells["difference"] = difference_cell(record["comparison"])
    encoder = (record.get("model") or {}).get("encoder") or {}
    cells |= {"evaluations": record.get("num_evaluations", ""), "encoder": encoder.get("model", "")}
    cells |= {"objective": (record.get("model") or {}).get("objective", ""), "seed": record.get("seed", "")}
    return cells | {"command": (record.get("command") or {}).get("line", "")}


def _without(row: Entry, name: str) -> Entry:
    return {key: value for key, value in row.items() if key != name}


# Figures -------------------------------------------------------------------------------------------------------------


def _plot(x_label: str, y_label: str, **options: Any) -> Any:
    from bokeh.plotting import figure

    options = {"height": 320, "sizing_mode": "stretch_width", **options}
    return figure(x_axis_label=x_label, y_axis_label=y_label, tools="", **options)


def _style(place: int) -> tuple[str, str]:
    return COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)]


def _keys(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(_style(place)[0], name) for place, name in enumerate(names)] if len(names) > 1 else []


def training(runs: Sequence[Run]) -> Iterator[Section]:
    """Plot loss and validation accuracy of each run by epoch."""
    runs = [run for run in runs if run.record.get("validations")]
    if not runs:
        return
    accuracy = _plot("epochs", "validation accuracy")
    losses = _plot("epochs", "training loss")
    for place, run in enumerate(runs):
        color, marker = _style(place)
        untrained, validations = run.record.get("untrained"), run.record["validations"]
        entries = [(0, untrained)] * bool(untrained) + [(entry["epoch"] + 1, entry) for entry in validations]
        points = [
            (epoch, entry["accuracy"], *entry["interval"]) for epoch, entry in entries if entry["accuracy"] is not None
        ]
        if points:
            x, y, low, high = np.array(points).T
            x = x + 0.06 * place
            accuracy.segment(x, low, x, high, color=color)
            accuracy.line(x, y, color=color, line_width=2)
            accuracy.scatter(x, y, color=color, marker=marker, size=8)
        steps, values = _losses(run.folder)
        if len(steps):
            of_epoch = validations[-1]["step"] / (validations[-1]["epoch"] + 1)
            losses.line((steps + 1) / of_epoch, values, color=color, line_width=2)
    accuracy.line([0, max(e["epoch"] + 1 for run in runs for e in run.record["validations"])], 0.5, color=RULE)
    figures = {"Accuracy on the validation triples after each epoch, with 95 % intervals": accuracy}
    if losses.renderers:
        figures["Loss of the training batches"] = losses
    yield Section("Training", "Epoch 0 is the untrained model.", _keys([run.name for run in runs]), figures)


def _losses(folder: Path) -> NDArray[np.float64]:
    """Read steps and training losses (2, N) from a run's TensorBoard files; none where there are no files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 2000}).Reload()
    tags = [tag for tag in events.Tags()["scalars"] if tag == "train/loss"]
    return np.array([(e.step, e.value) for tag in tags for e in events.Scalars(tag)], dtype=np.float64).reshape(-1, 2).T


def story_maps(systems: Sequence[SystemAnswers], labeled: Triples, projection: Projection) -> Iterator[Section]:
    """Draw the triangles of anchor, positive and negative in the plane, for each system with embeddings."""
    from bokeh.models import ColumnDataSource, HoverTool

    systems = [system for system in systems if system.vectors is not None]
    if not systems:
        return
    rows = np.unique(np.linspace(0, len(labeled) - 1, min(MAPPED, len(labeled))).astype(int))
    indices = labeled.indices[rows]
    stories, first, corners = np.unique(indices, return_index=True, return_inverse=True)
    name, project = projector(projection, len(stories))
    # Anchor, positive, negative in place of anchor, A, B.
    order = np.where((labeled.labels[rows] == 1)[:, None], [[0, 1, 2]], [[0, 2, 1]])
    corners = np.take_along_axis(corners.reshape(-1, 3), order, axis=1)
    texts = [
        [_cut(labeled.stories[i].source_text, SHORT_TEXT) for i in row] for row in np.take_along_axis(indices, order, 1)
    ]
    figures = {}
    for system in systems:
        vectors: Any = system.vectors
        points = project(vectors[rows].reshape(len(rows) * 3, -1)[first])[corners]  # (N, 3, 2)
        right = system.correct[rows]
        source = ColumnDataSource(
            {
                "xs": points[:, :, 0].tolist(),
                "ys": points[:, :, 1].tolist(),
                **{
                    f"{axis}{corner}": points[:, corner, place]
                    for corner in range(3)
                    for place, axis in enumerate("xy")
                },
                "color": np.where(right, RIGHT, WRONG),
                "answer": [
                    f"row {row + 1}: {'right' if good else 'wrong'}" for row, good in zip(rows, right, strict=True)
                ],
                **dict(zip(("anchor", "positive", "negative"), zip(*texts, strict=True), strict=True)),
            }
        )
        plot = _plot("", "", sizing_mode="scale_width", aspect_ratio=1.3, height=360)
        plot.axis.visible = False
        colors = {"line_color": "color", "fill_color": "color"}
        faint = {"line_alpha": 0.35, "fill_alpha": 0.05}
        plot.patches(
            "xs",
            "ys",
            source=source,
            **colors,
            **faint,
            hover_line_alpha=1,
            hover_line_width=2,
            hover_fill_alpha=0.3,
            hover_line_color="color",
            hover_fill_color="color",
        )
        marks = [
            plot.scatter(f"x{corner}", f"y{corner}", source=source, marker=marker, size=size, **colors, fill_alpha=0.8)
            for corner, marker, size in ((0, "circle", 9), (1, "triangle", 6), (2, "x", 7))
        ]
        plot.add_tools(HoverTool(renderers=marks, tooltips=TOOLTIP, limit=1))
        figures[f"{system.name}: {right.sum()} right, {(~right).sum()} wrong"] = plot
    share = "" if len(rows) == len(labeled) else f" {len(rows)} of {len(labeled)} triples, evenly spaced in the file."
    note = (
        f"Embeddings in the plane by {name}. Each triangle is a triple: circle anchor, triangle the closer candidate, cross "
        f"the other. Point at a mark to read the three stories.{share} Distances in the plane are approximate."
    )
    yield Section("Map of the stories", note, [(RIGHT, "answered rightly"), (WRONG, "answered wrongly")], figures)


TOOLTIP = """<div class="t" style="width:min(300px,70vw);white-space:normal;font:12px/1.35 system-ui,sans-serif">
<b>@answer</b><br><b>anchor</b> @anchor<br><b>closer</b> @positive<br><b>other</b> @negative</div>"""


def projector(projection: Projection, stories: int) -> tuple[str, Callable[[NDArray[Any]], NDArray[Any]]]:
    """Choose the projection of embeddings (N, D) to the plane (N, 2), with its name."""
    enough = stories >= FEWEST_FOR_UMAP and find_spec("umap") is not None
    if projection == "umap" or (projection == "auto" and enough):
        umap = require("umap", "report")
        return "UMAP", umap.UMAP(
            metric="cosine", random_state=0, n_jobs=1, n_neighbors=min(15, stories - 1)
        ).fit_transform
    from sklearn.decomposition import PCA

    return "principal components (PCA)", PCA(2, svd_solver="full").fit_transform


def distances(systems: Sequence[SystemAnswers]) -> Iterator[Section]:
    """Plot histograms of the distances between anchor and both candidates."""
    figures = {}
    for system in systems:
        if system.vectors is None or system.scores is None:
            continue
        labels = system.labels[:, None]
        ordered = 1 - np.where(labels, system.scores, system.scores[:, ::-1])  # (N, 2): positive, negative
        edges = np.histogram_bin_edges(ordered, bins=min(40, max(8, len(ordered) // 5)))
        plot = _plot("cosine distance from the anchor", "triples")
        words = []
        for name, values, color in zip(("closer", "other"), ordered.T, (POSITIVE, NEGATIVE), strict=True):
            counts, _ = np.histogram(values, edges)
            plot.quad(
                top=counts,
                bottom=0,
                left=edges[:-1],
                right=edges[1:],
                fill_color=color,
                fill_alpha=0.35,
                line_color=color,
            )
            plot.line([values.mean()] * 2, [0, counts.max() * 1.08], color=color, line_width=3)
            words.append(f"{name} {values.mean():.3f} ± {values.std(ddof=1) if len(values) > 1 else 0:.3f}")
        figures[f"{system.name}: {', '.join(words)}"] = plot
    if figures:
        note = "Distances between anchor and candidates, mean ± standard deviation (thick lines: means). The further apart, the surer the answers."
        yield Section("Distances", note, [(POSITIVE, "closer candidate"), (NEGATIVE, "other candidate")], figures)


def by_subset(systems: Sequence[SystemAnswers], labeled: Triples, fields: Mapping[str, Sequence[str]]) -> Section:
    """Plot accuracies by quarter of word overlap and length, and by the values of fields."""
    subsets = [("all", np.ones(len(labeled), dtype=bool)), *subsets_of(labeled, fields)]
    lines = [(f"{name} · {mask.sum()}", [system.correct[mask] for system in systems]) for name, mask in subsets]
    step = 0.7 / max(2, len(systems))
    plot = _plot("accuracy, 95 % interval", "", height=90 + len(lines) * (18 + 12 * len(systems)), x_range=(0, 1))
    for place, _ in enumerate(systems):
        color, marker = _style(place)
        y = np.array([-row - (place - (len(systems) - 1) / 2) * step for row in range(len(lines))])
        _intervals(plot, [answers[place] for _, answers in lines], y, color, marker, horizontal=True)
    plot.line([0.5, 0.5], [0.5, 0.5 - len(lines)], color="#8c959f", line_dash="dashed")
    plot.yaxis.ticker = [-row for row in range(len(lines))]
    plot.yaxis.major_label_overrides = {-row: name for row, (name, _) in enumerate(lines)}
    plot.ygrid.visible = False
    note = "Quarters of the triples, from least to most, each with its number of triples. Dashed: guessing."
    return Section("Accuracy by kind of triple", note, _keys([s.name for s in systems]), {"Accuracy by subset": plot})


def subsets_of(labeled: Triples, fields: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Bools]]:
    """Divide N triples by word overlap, by length and by the values of fields: name and mask (N,) of each subset."""
    texts = labeled.texts()
    overlap = jaccard_scores(texts)
    values = {
        "overlap": overlap.max(axis=1),
        "length": np.array([sum(map(len, row)) for row in texts], dtype=np.float64),
    }
    for name, column in values.items():
        for place, mask in enumerate(quarters(column), 1):
            yield f"{name} {place}/{QUARTERS}", mask
    for name, cells in fields.items():
        column = np.array(cells)
        for value in dict.fromkeys(cells):
            yield f"{name} {_cut(value, 16)}", column == value


def quarters(values: NDArray[Any]) -> list[Bools]:
    """Divide values (N,) by rank into four groups of equal size, from least to most."""
    ranks = np.empty(len(values), dtype=int)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return [ranks * QUARTERS // len(values) == place for place in range(QUARTERS)]


def _intervals(
    plot: Any, answers: Sequence[Bools], places: NDArray[Any], color: str, marker: str, horizontal: bool = False
) -> None:
    """Draw the accuracy of each group of answers with its interval."""
    shown = [
        (at, a.mean(), *wilson_interval(int(a.sum()), len(a))) for at, a in zip(places, answers, strict=True) if len(a)
    ]
    at, accuracy, low, high = np.array(shown).T
    if horizontal:
        plot.segment(low, at, high, at, color=color, line_width=2)
        plot.scatter(accuracy, at, color=color, marker=marker, size=8)
    else:
        plot.segment(at, low, at, high, color=color, line_width=2)
        plot.line(at, accuracy, color=color)
        plot.scatter(at, accuracy, color=color, marker=marker, size=9)


def by_margin(systems: Sequence[SystemAnswers]) -> Iterator[Section]:
    """Plot accuracies by quarter of the margin between both scores."""
    systems = [system for system in systems if system.margin is not None]
    if not systems:
        return
    plot = _plot("quarter of the margin, from unsure to sure", "accuracy, 95 % interval", y_range=(0, 1))
    for place, system in enumerate(systems):
        groups = [system.correct[mask] for mask in quarters(np.abs(system.margin))]  # type: ignore[arg-type]
        shift = 0.08 * (place - (len(systems) - 1) / 2)
        _intervals(plot, groups, np.arange(1, QUARTERS + 1) + shift, *_style(place))
    plot.line([0.7, QUARTERS + 0.3], 0.5, color="#8c959f", line_dash="dashed")
    plot.xaxis.ticker = list(range(1, QUARTERS + 1))
    plot.xgrid.visible = False
    note = "Margin: difference of the two candidates' scores. Scores that mean something are right more often where they differ more. Dashed: guessing."
    yield Section("Margin against accuracy", note, _keys([s.name for s in systems]), {"Accuracy by margin": plot})


# Texts ---------------------------------------------------------------------------------------------------------------


def worst_errors(systems: Sequence[SystemAnswers], labeled: Triples) -> Iterator[Section]:
    """Show the wrong answers with the largest margins, with the words that candidates share with the anchor."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    texts = labeled.texts()
    errors: dict[str, list[Entry]] = {}
    for system in systems:
        if system.margin is None or system.scores is None:
            continue
        for row in [row for row in np.argsort(system.margin, kind="stable").tolist() if not system.correct[row]][
            :ERRORS
        ]:
            anchor, *candidates = [_cut(text, LONG_TEXT) for text in texts[row]]
            closer, other = (0, 1) if system.labels[row] else (1, 0)
            common = {word.lower() for word in WORD.findall(anchor)} - ENGLISH_STOP_WORDS
            scores = system.scores[row]
            stories = {
                "Anchor": [(anchor, False)],
                f"Closer by the label ({scores[closer]:.3f})": _marked(candidates[closer], common),
                f"Chosen ({scores[other]:.3f})": _marked(candidates[other], common),
            }
            errors.setdefault(system.name, []).append({"row": row + 1, "stories": stories})
    if errors:
        note = f"Wrong answers with the largest difference of scores, {ERRORS} a system. Marked: words of the anchor."
        yield Section("Worst errors", note, errors=errors)


def _marked(text: str, words: set[str]) -> list[tuple[str, bool]]:
    """Divide a text into pieces, each with whether it is one of the words."""
    pieces, end = [], 0
    for match in WORD.finditer(text):
        if match[0].lower() in words:
            pieces += [(text[end : match.start()], False), (match[0], True)]
            end = match.end()
    return [*pieces, (text[end:], False)]


def _cut(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def data_checks(checks: Mapping[str, Entry], runs: Sequence[Run], source: str, n: int) -> Iterator[Section]:
    """Tabulate the sizes of data sets, and what checks of them found."""
    sizes = [{"used by": "this report", "role": "evaluated", "data": source, "triples": n}]
    for run in runs:
        for role, entry in (run.record.get("data") or {}).items():
            files = entry.get("files", []) if isinstance(entry, dict) else []
            sizes += [
                {"used by": run.name, "role": role, "data": Path(f["path"]).name, "triples": f["rows"]} for f in files
            ]
            if "storyworld" in entry:
                data = f"StoryWorld, seed {entry['storyworld']['seed']}"
                sizes.append(
                    {"used by": run.name, "role": role, "data": data, "triples": entry["storyworld"]["triples"]}
                )
    yield Section("Data sets", "", tables={"": sizes})
    for name, check in checks.items():
        from narrlit.metrics.data_check import check_tables

        tables = {title: rows for title, rows in check_tables(check).items() if title != "Files"}
        yield Section(f"Check of the data: {name}", lines=check["verdict"], tables=tables)
