"""Facets of triples, by which an accuracy is divided: word overlap, length, certainty, or a column of their file."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrlit.data.readers import TRIPLES_KNOWN, TripleRow, collect
from narrlit.data.row_file import column_names
from narrlit.data.rows import read_rows
from narrlit.data.schema import IntArray, Triples, normal_form
from narrlit.errors import OptionError, nearest, printable
from narrlit.experiments.systems import SystemAnswers
from narrlit.statistics.baselines import jaccard_scores

FACETS = ("overlap", "length", "margin")
"""Facets without a column of their own; a note explains each."""
MOST_VALUES = 8
"""Maximum number of different numbers for which a column is divided by value instead of by quartile."""
MOST_ROWS = 12
"""Maximum number of rows in a table by the values of a column; the rarest values share the last row."""
FacetValues = Sequence[Any] | NDArray[np.float64]


def read_facets(names: Sequence[str], labeled: Triples) -> dict[str, FacetValues | None]:
    """Return the values of N triples for names in FACETS or columns of their file; None for `margin`.

    Raises:
        OptionError: if the file has no such column.
    """
    columns = [name for name in names if name not in FACETS]
    cells = _read_columns(columns, labeled) if columns else {}
    facets: dict[str, FacetValues | None] = {}
    for name in names:
        if name == "overlap":
            scores = jaccard_scores(labeled.texts())
            facets[name] = SystemAnswers.scored(name, "baseline", labeled.labels == 1, scores).margin
        elif name == "length":
            facets[name] = [_mean_length(texts) for texts in labeled.texts()]
        else:
            facets[name] = cells.get(name)
    return facets


def _mean_length(texts: Sequence[str]) -> float:
    """Compute the mean number of words in the stories of a triple."""
    return len(" ".join(texts).split()) / len(texts)


def _read_columns(names: Sequence[str], labeled: Triples) -> dict[str, list[Any]]:
    """Read columns of the file of the triples."""
    if labeled.report is None:
        raise OptionError("column_without_file", column=names[0], known=FACETS)
    path = labeled.report.path
    results, _ = collect(read_rows(path), [TripleRow], TRIPLES_KNOWN, strict=False)
    rows = [{normal_form(column): cell for column, cell in row.value.items()} for row, _ in results]
    columns = column_names(rows)
    cells = {}
    for name in names:
        if normal_form(name) not in columns:
            raise OptionError(
                "unknown_facet",
                column=name,
                path=path,
                near=nearest(name, columns),
                found=[printable(column, 30) for column in columns[:12]],
                known=FACETS,
            )
        values = [row.get(normal_form(name)) for row in rows]
        cells[name] = [normal_form(value) if isinstance(value, str) else value for value in values]
    return cells


class Bins(NamedTuple):
    """Bins of N values.

    Attributes:
        numbers: (N,) bin of each value, from 0.
        names: names of the bins.
    """

    numbers: IntArray
    names: list[str]


def bin_values(values: FacetValues, most: int = MOST_VALUES) -> Bins:
    """Divide N values into quartiles if they are numbers with more than `most` different values, else by value.

    Equal numbers are in the same bin, so that bins may differ in size.

    >>> bin_values([1.0, 2, 3, 4, 5, 6, 7, 8, 9]).names
    ['1 to 3', '4 to 5', '6 to 7', '8 to 9']
    >>> bin_values(["b", "a", "b", None])
    Bins(numbers=array([0, 1, 0, 2]), names=['b', 'a', 'none'])
    """
    numbers = _finite_numbers(values)
    if numbers is not None and len(set(numbers.tolist())) > most:
        return _divide_by_quartile(numbers)
    return _divide_by_value(values)


def _finite_numbers(values: FacetValues) -> NDArray[np.float64] | None:
    """Convert values to numbers; return None if one is not a finite number, or is a boolean."""
    if any(isinstance(value, bool) for value in values):
        return None
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _divide_by_quartile(numbers: NDArray[np.float64]) -> Bins:
    """Divide numbers into quartiles, named by their smallest and largest number."""
    edges = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75]))
    _, bins = np.unique(np.searchsorted(edges, numbers), return_inverse=True)
    names = []
    for number in range(bins.max() + 1):
        in_bin = numbers[bins == number]
        names.append(f"{_end(in_bin.min())} to {_end(in_bin.max())}")
    return Bins(bins, names)


def _end(number: float) -> str:
    """Format a limit of a quartile; years and other large numbers keep their digits."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"


def _divide_by_value(values: FacetValues) -> Bins:
    """Divide values by equality, most frequent first; the rarest of many values become `others`."""
    names = [_value_name(value) for value in values]
    bin_of: dict[str, int] = {}
    for rank, (name, _) in enumerate(Counter(names).most_common()):
        bin_of[name] = min(rank, MOST_ROWS - 1)
    bin_names = list(bin_of)
    if len(bin_names) > MOST_ROWS:
        bin_names[MOST_ROWS - 1 :] = ["others"]
    return Bins(np.array([bin_of[name] for name in names]), bin_names)


def _value_name(value: object) -> str:
    """Format a value as the name of its bin."""
    return "none" if value in (None, "") else printable(value, 40)


def margin_quartiles(margin: NDArray[np.float64]) -> Bins:
    """Divide triples into quartiles of a system's margin; scales of different systems can't be compared."""
    numbers, ends = bin_values(np.abs(margin).tolist(), 0)
    return Bins(numbers, [f"quartile {number}" for number in range(1, len(ends) + 1)])
