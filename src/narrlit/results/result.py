"""Result of an experiment: figures, differences and answers as tables, settings and notes."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from narrlit.data.writers import write_table
from narrlit.errors import OptionError, reading
from narrlit.files import write_text
from narrlit.markdown import markdown_table
from narrlit.optional import require
from narrlit.results.formatting import ALL, DEVIATION, DIFFERENCES, FIGURES, Cells, shown_tables
from narrlit.results.notes import Note, method_notes
from narrlit.results.plots import interval_plot, write_svg
from narrlit.statistics.estimates import Estimate, Row, adjusted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Result:
    """Result of an experiment.

    Attributes:
        name: name of the experiment, and of the files that `write` writes.
        figures: one row for each figure: system, subset (`all`, or FACET: VALUE), metric, value, low and high (95 %
            interval), n; and columns of the experiment, such as fold or seed.
        differences: one row for each paired comparison: system, against, subset, metric, value, low, high, p,
            p_adjusted (Holm), test, n.
        answers: one row for each triple or query.
        settings: settings that determine the figures, as plain data.
        notes: conclusions, warnings and explanations.
    """

    name: str
    figures: pd.DataFrame
    differences: pd.DataFrame
    answers: pd.DataFrame
    settings: Mapping[str, Any]
    notes: Sequence[Note]

    @classmethod
    def of(
        cls,
        name: str,
        figures: Sequence[Row],
        differences: Sequence[Row] = (),
        *,
        answers: Sequence[Row] | pd.DataFrame = (),
        settings: Mapping[str, Any] | None = None,
        notes: Sequence[Note] = (),
        **others: Any,
    ) -> Self:
        """Make a result of rows; p is corrected for the systems that are compared with the same one.

        Args:
            name: name of the experiment.
            figures: rows of figures, from `Estimate.row`.
            differences: rows of differences, from `Difference.row`.
            answers: rows of triples or queries.
            settings: settings that determine the figures, as plain data.
            notes: conclusions, warnings and explanations; notes on the methods of intervals and tests are added.
            others: attributes of a subclass.
        """
        return cls(
            name=name,
            figures=_frame(figures, FIGURES),
            differences=_frame(adjusted(differences), DIFFERENCES),
            answers=pd.DataFrame(answers),
            settings={} if settings is None else settings,
            notes=[*notes, *method_notes(figures, differences)],
            **others,
        )

    @classmethod
    def read(cls, path: str | Path) -> "Result":
        """Read a result from the NAME.json that `write` wrote, and the answers next to it.

        Raises:
            DataError: if the file is no result.
        """
        path = Path(path)
        with reading("broken_result", path):
            record = json.loads(path.read_text(encoding="utf-8"))
            notes = [Note(note["code"], note["values"]) for note in record["notes"]]
            figures = _frame(record["figures"], FIGURES)
            differences = _frame(record["differences"], DIFFERENCES)
            settings = record["settings"]
        file = path.with_name("answers.csv")
        answers = pd.read_csv(file) if file.is_file() else pd.DataFrame()
        return Result(path.stem, figures, differences, answers, settings, notes)

    def estimate(
        self, system: str | None = None, metric: str | None = None, subset: str | None = None, **columns: object
    ) -> Estimate:
        """Return one figure; by default that of the first system and the first metric on all items.

        Args:
            system: name of the system.
            metric: name of the metric.
            subset: name of the subset; None: `all` or, without such figures, the first.
            columns: values of further columns, such as `fold=0`.

        Raises:
            OptionError: if there is no such figure.
        """
        chosen = self._of_subset(subset)
        asked = {"system": system, "metric": metric, **columns}
        for column, value in asked.items():
            if value is not None:
                chosen = chosen[chosen[column] == value]
        if chosen.empty:
            raise OptionError(
                "no_figure",
                figure=asked | {"subset": subset},
                systems=list(dict.fromkeys(self.figures["system"])),
                metrics=list(dict.fromkeys(self.figures["metric"])),
            )
        row = chosen.iloc[0]
        return Estimate(row["value"], row["low"], row["high"], row["n"], row["method"])

    def _of_subset(self, subset: str | None) -> pd.DataFrame:
        """Return the figures of a subset; None: those of all items or, if there are none, of the first subset."""
        subsets = self.figures["subset"]
        if subset is None and len(subsets):
            subset = ALL if (subsets == ALL).any() else subsets.iloc[0]
        return self.figures[subsets == subset]

    @property
    def record(self) -> dict[str, Any]:
        """Settings, figures, differences and notes as plain data."""
        return {
            "settings": dict(self.settings),
            "figures": plain_rows(self.figures, FIGURES),
            "differences": plain_rows(self.differences, DIFFERENCES),
            "notes": [note.record for note in self.notes],
        }

    def table(self) -> pd.DataFrame:
        """Tabulate the figures, with difference and test next to those that are compared with another one."""
        if self.differences.empty:
            return self.figures
        keys = [column for column in self.figures if column in self.differences and column not in _ESTIMATED]
        compared = self.differences.drop_duplicates(keys).rename(columns={"value": "difference"})
        empty = [
            column
            for column in compared
            if column not in (*DIFFERENCES, "difference") and compared[column].isna().all()
        ]
        compared = compared.drop(columns=["low", "high", "n", DEVIATION, *empty], errors="ignore")
        return self.figures.merge(compared, on=keys, how="left")

    def shown_tables(self) -> dict[str, list[Cells]]:
        """Format the figures and differences as rows of cells, by title."""
        return shown_tables(self.figures, self.differences)

    def plot(self, metric: str | None = None, subset: str | None = None) -> "Axes":
        """Plot a metric, by default the first on all items, with 95 % intervals, and return the matplotlib axes.

        Without figures of all items, those of all subsets are plotted.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        require("matplotlib", "plots")
        figures = self._of_subset(subset)
        if subset is None and (figures["subset"] != ALL).any():
            figures = self.figures
        if metric is None and len(figures):
            metric = figures["metric"].iloc[0]
        return interval_plot(figures[figures["metric"] == metric])

    def write(self, folder: str | Path) -> None:
        """Write NAME.json, .csv (the table), .md, .tex and, with matplotlib, .svg; and answers.csv; no empty tables."""
        folder = Path(folder)
        latex = []
        for rows in self.shown_tables().values():
            latex.append(pd.DataFrame(rows).to_latex(index=False, escape=True))
        write_text(folder / f"{self.name}.json", json.dumps(self.record, indent=2, allow_nan=False) + "\n")
        write_text(folder / f"{self.name}.md", f"{self}\n")
        write_text(folder / f"{self.name}.tex", "\n".join(latex))
        for name, table in ((self.name, self.table()), ("answers", self.answers)):
            if len(table):
                write_table(folder / f"{name}.csv", _without_nan(table))
        if find_spec("matplotlib"):
            write_svg(self.plot(), folder / f"{self.name}.svg")

    def __str__(self) -> str:
        """Format tables and notes in Markdown; a single figure is one line."""
        if len(self.figures) == 1:
            row = self.figures.iloc[0]
            place = "" if row["subset"] == ALL else f" ({row['subset']})"
            return "\n".join([f"{row['system']}: {row['metric']} {self.estimate()}{place}", *map(str, self.notes)])
        parts = [markdown_table(_heading(title), rows) for title, rows in self.shown_tables().items()]
        return "\n".join([*parts, *map(str, self.notes)]).rstrip("\n")

    def _repr_html_(self) -> str:
        """Format tables and notes for a notebook."""
        parts = []
        for title, rows in self.shown_tables().items():
            parts.append(f"<h4>{escape(_heading(title))}</h4>" if title else "")
            parts.append(pd.DataFrame(rows).to_html(index=False, escape=True))
        for note in self.notes:
            parts.append(f"<p>{escape(str(note))}</p>")
        return "\n".join(parts)


def _heading(title: str) -> str:
    """Begin a title with a capital letter."""
    return title[:1].upper() + title[1:]


_NUMBERS = frozenset({"value", "low", "high", "p", "p_adjusted", DEVIATION})
_ESTIMATED = _NUMBERS | {"n", "method"}


def _frame(rows: Sequence[Row], columns: Sequence[str]) -> pd.DataFrame:
    """Make a table of rows, which begins with the given columns; further columns keep their values as they are."""
    frame = pd.DataFrame(rows, dtype=object)
    further = [column for column in frame if column not in columns]
    frame = frame.reindex(columns=[*columns, *further])
    numbers = [column for column in frame if column in _NUMBERS]
    return frame.astype(dict.fromkeys(numbers, float))


def plain_rows(frame: pd.DataFrame, columns: Sequence[str]) -> list[Row]:
    """Convert a table to rows of plain data; empty cells of columns other than the given ones are left out."""
    rows = []
    for row in _without_nan(frame):
        rows.append({name: value for name, value in row.items() if value is not None or name in columns})
    return rows


def _without_nan(frame: pd.DataFrame) -> list[Row]:
    """Convert a table to rows, with None for empty cells and whole numbers as such."""
    rows: list[Row] = []
    for row in frame.astype(object).to_dict("records"):
        rows.append({str(name): None if _is_nan(value) else value for name, value in row.items()})
    return rows


def _is_nan(value: object) -> bool:
    return value is pd.NA or (isinstance(value, float) and math.isnan(value))
