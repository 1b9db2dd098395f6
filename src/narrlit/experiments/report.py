"""Reports on experiments: accuracies with intervals, paired tests, tables (Markdown, CSV, LaTeX, JSON) and a plot."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from narrlit.console import counted
from narrlit.data.writers import write_table
from narrlit.files import atomic_path, write_text
from narrlit.metrics.significance import PairedComparison
from narrlit.optional import require
from narrlit.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Entry = dict[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """Report on the result of an experiment."""

    content: Entry
    """Plain data, for JSON."""
    tables: Mapping[str, Sequence[Row]]
    """Rows of formatted cells by title; an empty title has no heading."""
    notes: Sequence[str]
    records: Sequence[Entry]
    """Raw entries, one per row of the CSV file, which is not written without entries."""
    intervals: Mapping[str, Row]
    """Accuracies by label, for the plot."""

    def markdown(self) -> str:
        """Format tables and notes for the terminal and a Markdown file."""
        parts = [markdown_table(title, rows) for title, rows in self.tables.items()]
        return "\n".join([*parts, *self.notes]) + "\n"

    def table(self) -> pd.DataFrame:
        """Tabulate the entries, one row per system, with columns such as `difference.p`, `low` and `high`."""
        frame = pd.json_normalize(list(self.records))
        interval_columns = [column for column in frame if column.endswith("interval")]
        for column in interval_columns:
            low, high = column.replace("interval", "low"), column.replace("interval", "high")
            frame[[low, high]] = [_ends(value) for value in frame.pop(column)]
        return frame.astype(object).where(frame.notna(), None)

    def write(self, folder: Path, name: str) -> None:
        """Write NAME.json, .md, .csv and .tex, and with matplotlib NAME.svg.

        The CSV file has columns such as `last_epoch.accuracy`; intervals are `low` and `high`.
        """
        latex = []
        for rows in self.tables.values():
            table = pd.DataFrame(rows).fillna("")
            latex.append(table.to_latex(index=False, escape=True))
        keep_report(folder, name, self.content, self.markdown(), tex="\n".join(latex))
        if self.records:
            write_table(folder / f"{name}.csv", self.table().to_dict("records"))
        if find_spec("matplotlib"):
            write_svg(self.plot(), folder / f"{name}.svg")

    def plot(self) -> "Axes":
        """Plot the accuracies with 95 % intervals, and return the matplotlib axes.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        require("matplotlib", "plots")
        return interval_plot(self.intervals)


def _ends(interval: object) -> Sequence[float | None]:
    """Return both ends of an interval in a table; None for both if there is no interval."""
    return interval if isinstance(interval, list) else (None, None)


def keep_report(folder: Path, name: str, content: Entry, markdown: str, **others: str) -> None:
    """Write NAME.json and NAME.md, and other texts by their suffix."""
    texts = {"json": json.dumps(content, indent=2) + "\n", "md": markdown, **others}
    for suffix, text in texts.items():
        write_text(folder / f"{name}.{suffix}", text)


def method_note(by_story: bool, tested: bool = True) -> str:
    """Name the method of the intervals and, if there are comparisons, the test.

    Args:
        by_story: True if triples share stories.
        tested: True if p is shown.

    >>> method_note(by_story=False, tested=False)
    'Intervals are 95 % (Wilson) and assume independent triples.'
    """
    if by_story:
        test = "; p is from McNemar's paired test" if tested else ""
        account = "both account" if tested else "they account"
        return f"Intervals are 95 %{test}; {account} for stories that triples share."
    test = "; p is from the exact paired McNemar test; both assume" if tested else " and assume"
    return f"Intervals are 95 % (Wilson){test} independent triples."


def accuracy_cell(entry: Row) -> str:
    """Format an accuracy with its interval and, if there are any, the number of ties.

    >>> accuracy_cell({"accuracy": 0.55, "interval": [0.481, 0.617], "ties": 0})
    '0.550 [0.481, 0.617]'
    """
    if entry["accuracy"] is None:
        return "none: scores are NaN"
    low, high = entry["interval"]
    ties = entry.get("ties", 0)
    counted_ties = f", {counted(ties, 'tie')}" if ties else ""
    return f"{entry['accuracy']:.3f} [{low:.3f}, {high:.3f}]{counted_ties}"


def difference_cell(comparison: PairedComparison | None) -> str:
    """Format a paired comparison; empty without one.

    >>> difference_cell(PairedComparison(difference=0.1, lost=1, won=20, p=1e-5))
    '+0.100 (1 lost, 20 won, p < 0.001)'
    """
    if comparison is None:
        return ""
    if not comparison.known:
        return "none: scores are NaN"
    return f"{comparison.difference:+.3f} ({comparison})"


def spoken(name: str) -> str:
    """Convert a field name to words.

    >>> spoken("last_epoch")
    'last epoch'
    """
    return name.replace("_", " ")


def note_lines(notes: Mapping[str, str]) -> list[str]:
    """Format notes by name as sentences.

    >>> note_lines({"best_epoch": "too high"})
    ['Best epoch: too high.']
    """
    return [f"{spoken(name).capitalize()}: {text}." for name, text in notes.items()]


def interval_plot(accuracies: Mapping[str, Row]) -> "Axes":
    """Plot accuracies with 95 % intervals, one line per system, and return the matplotlib axes."""
    from matplotlib.figure import Figure

    names, values, intervals = [], [], []
    for name, entry in accuracies.items():
        if entry["accuracy"] is not None:
            names.append(name)
            values.append(entry["accuracy"])
            intervals.append(entry["interval"])
    ends = np.array(intervals).reshape(-1, 2)
    errors = np.abs(ends.T - np.array(values))
    figure = Figure(figsize=(6, 1 + 0.35 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(values, range(len(names)), xerr=errors, fmt="o", capsize=3, color="black")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0.5, color="lightgray", zorder=0)
    axes.set_xlabel("accuracy, 95 % interval")
    return axes


def write_svg(axes: Any, path: Path) -> None:
    """Write a plot as a reproducible SVG file."""
    import matplotlib as mpl

    with atomic_path(path) as temporary, mpl.rc_context({"svg.hashsalt": "narrlit", "svg.fonttype": "none"}):
        axes.figure.savefig(temporary, metadata={"Date": None})
