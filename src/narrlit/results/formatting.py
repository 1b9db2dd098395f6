"""Tables of results for people: three digits, intervals and p, one row for each system."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from narrlit.statistics.estimates import Row, estimate_text
from narrlit.statistics.significance import p_text

FIGURES = ("system", "subset", "metric", "value", "low", "high", "n", "method")
DIFFERENCES = ("system", "against", "subset", "metric", "value", "low", "high", "p", "p_adjusted", "test", "n")
KEYS = ("fold", "seed")
"""Further columns that identify a row."""
DETAILS = frozenset({"kind", "ties", "epoch", "lost", "won", "design_effect"})
"""Further columns that are written to files but not shown; all others describe a row."""
DEVIATION = "deviation"
"""Further column that is shown with its value: the standard deviation between seeds or folds."""
ALL = "all"
"""Subset of all items. The other subsets are named FACET: VALUE, such as `length: short`."""
Cells = dict[str, str | int]
"""Row of a table for people: texts, and numbers of items, which are aligned to the right."""


def shown_tables(figures: pd.DataFrame, differences: pd.DataFrame) -> dict[str, list[Cells]]:
    """Format figures and differences as rows of cells, by title; the table of all items has no title.

    With a single metric, the differences are columns of the figures' table, else they are a table of their own.
    """
    tables: dict[str, list[Cells]] = {}
    for facet, part in _by_facet(figures):
        compared = differences[differences["subset"].map(_facet) == facet]
        if part["metric"].nunique() > 1:
            tables[facet] = _system_rows(part, compared.iloc[:0])
            if len(compared):
                tables[f"Differences, {facet}" if facet else "Differences"] = _difference_rows(compared)
        elif facet and part["system"].nunique() > 1 and not len(compared) and _is_by_value(part):
            tables[facet] = _subset_rows(part)
        else:
            tables[facet] = _system_rows(part, compared)
    return tables


def _facet(subset: str) -> str:
    """Return the facet of a subset; empty for all items."""
    return "" if subset == ALL else subset.partition(": ")[0]


def _is_by_value(figures: pd.DataFrame) -> bool:
    """Return True if the figures of a facet have a value each, and no further key such as the fold."""
    keys = figures[["system", "subset"]]
    return bool(figures["subset"].str.contains(": ").all()) and not keys.duplicated().any()


def _by_facet(figures: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the figures of each facet, those of all items first."""
    facets = figures["subset"].map(_facet)
    for facet in sorted(dict.fromkeys(facets), key=bool):
        yield facet, figures[facets == facet]


def shown_columns(figures: pd.DataFrame) -> list[str]:
    """List the further columns that are shown next to the system: those that identify or describe a row."""
    further = [column for column in figures if column not in (*FIGURES, *DIFFERENCES, *DETAILS, DEVIATION)]
    return sorted((column for column in further if figures[column].notna().any()), key=lambda name: name not in KEYS)


def _system_rows(figures: pd.DataFrame, differences: pd.DataFrame) -> list[Cells]:
    """Format one row for each system (subset, fold, seed), with one column for each metric."""
    keys = ["system", "subset", *(column for column in KEYS if column in figures)]
    cells = ["system", "subset", *shown_columns(figures)]
    rows: dict[tuple[Hashable, ...], Cells] = {}
    several_n = figures.groupby(keys, dropna=False, sort=False)["n"].nunique().max() > 1
    for figure in figures.to_dict("records"):
        row = rows.setdefault(_key(figure, keys), _key_cells(figure, cells))
        text = _estimate_text(figure)
        if several_n:
            row[figure["metric"]] = f"{text}, n = {figure['n']:,}"
        else:
            row["n"] = figure["n"]
            row[figure["metric"]] = text
    for entry in differences.to_dict("records"):
        row = rows.get(_key(entry, keys), {})
        row[f"difference to {entry['against']}"] = difference_text(entry)
    return _filled([*rows.values()])


def _subset_rows(figures: pd.DataFrame) -> list[Cells]:
    """Format one row for each subset, with one column for each system; n is a column if it is the same for all."""
    rows = []
    several_n = figures.groupby("subset")["n"].nunique().max() > 1
    for subset, part in figures.groupby("subset", sort=False):
        facet, _, value = str(subset).partition(": ")
        row: Cells = {facet: value}
        if not several_n:
            row["n"] = part["n"].iloc[0]
        for figure in part.to_dict("records"):
            text = _estimate_text(figure)
            row[figure["system"]] = f"{text}, n = {figure['n']:,}" if several_n else text
        rows.append(row)
    return _filled(rows)


def _difference_rows(differences: pd.DataFrame) -> list[Cells]:
    """Format one row for each pair of systems (subset, fold, seed), with one column for each metric."""
    keys = ["system", "against", "subset", *shown_columns(differences)]
    rows: dict[tuple[Hashable, ...], Cells] = {}
    for entry in differences.to_dict("records"):
        row = rows.setdefault(_key(entry, keys), _key_cells(entry, keys))
        row[entry["metric"]] = difference_text(entry)
    return _filled([*rows.values()])


def difference_text(row: Mapping[str, Any]) -> str:
    """Format a row of differences: value, interval, p and, if it differs, adjusted p; without a test no p."""
    if math.isnan(row["value"]):
        return "none"
    parts = [_estimate_text(row, "+")]
    if not math.isnan(row["p"]):
        parts.append(p_text(row["p"]))
        if row["p_adjusted"] != row["p"]:
            parts.append(f"adjusted {p_text(row['p_adjusted'])}")
    return ", ".join(parts)


def _estimate_text(row: Mapping[str, Any], sign: str = "") -> str:
    """Format a row's value with its deviation and interval; `sign` is `+` for differences."""
    return estimate_text(row["value"], row["low"], row["high"], sign, row.get(DEVIATION, math.nan))


def _key(row: Row, keys: Sequence[str]) -> tuple[Hashable, ...]:
    """Return the values that identify a row."""
    return tuple(value_text(row.get(key)) for key in keys)


def _key_cells(row: Row, keys: Sequence[str]) -> Cells:
    """Format the values that identify or describe a row; a subset is a column named like its facet."""
    cells: Cells = {}
    for key in keys:
        if key != "subset":
            cells[key] = value_text(row.get(key))
        elif ": " in row["subset"]:
            facet, _, value = row["subset"].partition(": ")
            cells[facet] = value
    return cells


def value_text(value: object) -> str:
    """Format a setting or a statistic.

    >>> value_text(1 / 3), value_text([0.5, 0.25]), value_text(None)
    ('0.3333', '0.5, 0.25', '')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _filled(rows: list[Cells]) -> list[Cells]:
    """Give all rows the same columns."""
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column, "") for column in columns} for row in rows]
