"""Results of `narrlit.profile`: shares, falls and accuracies of models, as tables and a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from narrlit.data.twice_told import Changed, Split
from narrlit.data.writers import write_table
from narrlit.experiments.report import keep_report, write_svg
from narrlit.experiments.retrieval_report import Estimate
from narrlit.metrics.factorial import COMPONENTS, FEWEST, Share
from narrlit.metrics.words import stop_words_text
from narrlit.optional import require
from narrlit.pages import COLORS, GRAY
from narrlit.tables import markdown_table

ASPECTS: tuple[Changed, ...] = ("theme", "action", "outcome")
Figures = Mapping[str, Share] | Mapping[str, Estimate]
"""Figures of one group by name."""


@dataclass(frozen=True, eq=False)
class ModelProfile:
    """Influences on a model's similarity.

    Attributes:
        name: name of the model.
        shares: shares of the variance of stories, by `plot`, `world`, `length` and `rest`.
        falls: falls of the similarity with the other tellings of a plot when an aspect is changed, by aspect; in
            standard deviations of the similarities of stories that share neither plot nor world.
        cells: accuracies on the triples of Twice Told, by cell.
        accuracies: accuracies on other files, by file and cell.
    """

    name: str
    shares: Mapping[str, Share]
    falls: Mapping[str, Estimate]
    cells: Mapping[str, Estimate]
    accuracies: Mapping[str, Estimate]

    @property
    def record(self) -> dict[str, object]:
        """All figures as plain data."""
        return {
            "model": self.name,
            "shares": _plain(self.shares),
            "falls": _plain(self.falls),
            "cells": _plain(self.cells),
            "accuracies": _plain(self.accuracies),
        }


@dataclass(frozen=True, eq=False)
class Profile:
    """Profiles of models.

    Attributes:
        models: profiles of the models, with TF-IDF last.
        measure: measure of similarity.
        split: split of Twice Told; None for the whole corpus.
        num_plots: number of plots.
        num_worlds: number of worlds.
    """

    models: Sequence[ModelProfile]
    measure: str
    split: Split | None
    num_plots: int
    num_worlds: int

    def table(self) -> pd.DataFrame:
        """Tabulate the figures: model, group (share, fall, cell, set), name, value, low, high, n."""
        rows: list[tuple[object, ...]] = []
        for model in self.models:
            for name, share in model.shares.items():
                rows.append((model.name, "share", name, share.share, share.low, share.high, None))
            estimates = {"fall": model.falls, "cell": model.cells, "set": model.accuracies}
            for group, estimates_of_group in estimates.items():
                for name, estimate in estimates_of_group.items():
                    rows.append((model.name, group, name, estimate.mean, estimate.low, estimate.high, estimate.n))
        return pd.DataFrame(rows, columns=["model", "group", "name", "value", "low", "high", "n"])

    def __str__(self) -> str:
        """Format tables in Markdown."""
        shares, falls, cells, other_sets = [], [], [], []
        for model in self.models:
            shares.append(_row(model.name, model.shares))
            falls.append(_row(model.name, model.falls))
            cells.append(_row(model.name, model.cells))
            if model.accuracies:
                other_sets.append(_row(model.name, model.accuracies))
        lines = [
            markdown_table("Shares of similarity", shares),
            markdown_table("Fall of similarity when one aspect is changed", falls),
            markdown_table("Triples", cells),
        ]
        if other_sets:
            lines.append(markdown_table("Other sets", other_sets))
        return "\n".join([*lines, *self._notes()])

    def _notes(self) -> list[str]:
        """Explain the corpus and the tables."""
        corpus = "Twice Told" if self.split is None else f"The {self.split} part of Twice Told"
        size = f"{corpus}: {self.num_plots} plots in {self.num_worlds} worlds; measure {self.measure}"
        return [
            f"{size}; {self.interval_note}",
            "Fall: in standard deviations of the similarity of stories that share neither plot nor world.",
            "Far: the positive tells the plot in another world; near: in the same world, with one aspect changed. "
            "Strong: the negative shares the anchor's world; weak: it does not.",
            f"tfidf: stop words: {stop_words_text('english')}.",
        ]

    @property
    def interval_note(self) -> str:
        """Description of the intervals, or the reason why there are none."""
        if self.num_plots < FEWEST:
            return f"no intervals, since they need at least {FEWEST} plots."
        if self.num_worlds < FEWEST:
            return (
                f"shares have no intervals, since they need at least {FEWEST} worlds; other intervals are 95 % (over "
                "plots)."
            )
        return "intervals are 95 % (shares: bootstrap over plots and worlds; others: over plots)."

    def plot(self) -> Any:
        """Draw shares, falls and cells side by side, and return the matplotlib axes of the shares.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        require("matplotlib", "plots")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 1.6 + 0.4 * len(self.models)), layout="constrained")
        shares, falls, cells = figure.subplots(1, 3)
        self._draw_shares(shares)
        _draw_points(falls, "fall when changed (sd)", [model.falls for model in self.models])
        _draw_points(cells, "accuracy of triples", [model.cells for model in self.models])
        cells.axvline(0.5, color=GRAY, linewidth=0.8, zorder=0)
        return shares

    def _draw_shares(self, axes: Any) -> None:
        """Draw one bar per model, divided into shares."""
        colors = dict(zip(COMPONENTS, (COLORS[2], COLORS[1], COLORS[4], "#d0d7de"), strict=True))
        for position, model in enumerate(self.models):
            start = 0.0
            for component in COMPONENTS:
                share = max(model.shares[component].share, 0.0)
                label = component if position == 0 else None
                axes.barh(position, share, left=start, color=colors[component], label=label)
                start += share
        axes.set_yticks(range(len(self.models)), [model.name for model in self.models])
        axes.invert_yaxis()
        axes.set_xlabel("share of the variance of stories")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, frameon=False, fontsize=8)

    def write(self, folder: str | Path) -> None:
        """Write profile.json, .md, .csv (the table) and, with matplotlib, .svg."""
        folder = Path(folder)
        content = {
            "measure": self.measure,
            "split": self.split,
            "plots": self.num_plots,
            "worlds": self.num_worlds,
            "intervals": self.interval_note,
            "models": [model.record for model in self.models],
        }
        keep_report(folder, "profile", content, f"{self}\n")
        write_table(folder / "profile.csv", self.table().to_dict("records"))
        if find_spec("matplotlib"):
            write_svg(self.plot(), folder / "profile.svg")


def _plain(figures: Figures) -> dict[str, object]:
    """Convert figures to plain data."""
    return {name: asdict(figure) for name, figure in figures.items()}


def _row(model: str, figures: Figures) -> dict[str, str]:
    """Format the figures of a model as a row of a table."""
    row = {"model": model}
    for name, figure in figures.items():
        row[name] = str(figure)
    return row


def _draw_points(axes: Any, label: str, models: Sequence[Mapping[str, Estimate]]) -> None:
    """Draw one row per model, with a point and an interval for each estimate."""
    for position, estimates in enumerate(models):
        height = 0.8 / len(estimates)
        for number, (name, estimate) in enumerate(estimates.items()):
            y = position - 0.4 + height * (number + 0.5)
            low, high = estimate.interval or (estimate.mean, estimate.mean)
            ends = [[estimate.mean - low], [high - estimate.mean]]
            style = {"fmt": "o", "markersize": 4, "capsize": 2, "color": COLORS[number]}
            if position == 0:
                style["label"] = name
            axes.errorbar(estimate.mean, y, xerr=np.maximum(ends, 0), **style)
    axes.set_yticks(range(len(models)), [""] * len(models))
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, fontsize=8)
