"""Plots of results."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from narrlit.files import atomic_path
from narrlit.results.formatting import KEYS, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
"""Color-blind safe palette of Okabe and Ito (2008)."""
GRAY = "#8c959f"
"""Color of lines that are no data."""
CHANCE = 0.5
"""Accuracy of guessing on triples."""


def interval_plot(figures: pd.DataFrame) -> "Axes":
    """Plot figures of one metric with their 95 % intervals, one line per row, and return the matplotlib axes."""
    from matplotlib.figure import Figure

    known = figures[figures["value"].notna()]
    several = known["subset"].nunique() > 1
    names = []
    for row in known.to_dict("records"):
        numbered = [f"{key} {row[key]}" for key in KEYS if value_text(row.get(key))]
        names.append(", ".join([row["system"], *numbered, *([row["subset"]] if several else [])]))
    values = known["value"].to_numpy(float)
    ends = known[["low", "high"]].to_numpy(float).T
    figure = Figure(figsize=(6, 1 + 0.35 * len(names)), layout="constrained")
    axes = figure.subplots()
    errors = np.abs(np.where(np.isnan(ends), values, ends) - values)
    axes.errorbar(values, range(len(names)), xerr=errors, fmt="o", capsize=3, color="black")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    metric = figures["metric"].iloc[0] if len(figures) else ""
    if metric.startswith("accuracy"):
        axes.axvline(CHANCE, color="lightgray", zorder=0)
    axes.set_xlabel(f"{metric}, 95 % interval")
    return axes


def write_svg(axes: Any, path: Path) -> None:
    """Write a plot as a reproducible SVG file."""
    import matplotlib as mpl

    with atomic_path(path) as temporary, mpl.rc_context({"svg.hashsalt": "narrlit", "svg.fonttype": "none"}):
        axes.figure.savefig(temporary, metadata={"Date": None})
