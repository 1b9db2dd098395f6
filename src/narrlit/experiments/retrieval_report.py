"""Results of `narrlit.retrieval`: means, intervals and paired tests of systems, as tables.

Letters in shapes: Q queries, K metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.data.schema import IntArray
from narrlit.data.writers import write_table
from narrlit.errors import printable
from narrlit.experiments.report import interval_plot, keep_report
from narrlit.metrics.diagnostics import SimilarityDiagnostics
from narrlit.metrics.retrieval import LABELS
from narrlit.metrics.significance import group_intervals, group_permutation_test, p_text
from narrlit.metrics.versions import Permuted
from narrlit.metrics.words import StopWords, stop_words_text
from narrlit.optional import require
from narrlit.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TESTED = "mrr"
"""Metric for which paired tests are printed; tests of the others are in the tables."""
PRINTED = "recall@1"
"""Metric for which permutation tests are printed."""


@dataclass(frozen=True)
class Estimate:
    """Mean of a metric.

    Attributes:
        mean: mean over queries.
        low: lower end of its 95 % interval; None without one.
        high: upper end of the interval; None without one.
        n: number of queries.
    """

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def interval(self) -> list[float] | None:
        """Ends of the interval; None without one."""
        return None if self.low is None or self.high is None else [self.low, self.high]

    def __str__(self) -> str:
        """Format the mean with its interval."""
        if self.low is None or self.high is None:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Difference:
    """Difference of the means of two systems.

    Attributes:
        difference: mean of the system minus that of the first system.
        p: p of the paired permutation test.
    """

    difference: float
    p: float

    def __str__(self) -> str:
        """Format the difference with its p."""
        return f"{self.difference:+.3f} ({p_text(self.p)})"


@dataclass(frozen=True, eq=False)
class SystemRetrieval:
    """Ranking quality of one system.

    Attributes:
        name: measure, collection and measure, or baseline.
        values: (Q, K) metrics of each query.
        estimates: means by metric.
        differences: differences to the first system by metric; empty for the first system.
    """

    name: str
    values: NDArray[np.float64]
    estimates: Mapping[str, Estimate]
    differences: Mapping[str, Difference]

    @property
    def record(self) -> dict[str, object]:
        """Means by metric, n, and details with intervals and tests."""
        means: dict[str, object] = {}
        details: dict[str, object] = {}
        for metric, estimate in self.estimates.items():
            tested = asdict(self.differences[metric]) if metric in self.differences else {}
            means[metric] = estimate.mean
            details[metric] = {"mean": estimate.mean, "interval": estimate.interval, **tested}
        return {**means, "n": len(self.values), "details": details}


def compare_systems(values: Mapping[str, NDArray[np.float64]], groups: IntArray) -> list[SystemRetrieval]:
    """Compute the means of systems, and their differences to the first system.

    Args:
        values: (Q, K) metrics of each query by system.
        groups: (Q,) number of each query's group; queries of a group depend on each other.
    """
    systems: list[SystemRetrieval] = []
    for name, metrics in values.items():
        differences = _differences(metrics, systems[0].values, groups) if systems else {}
        systems.append(SystemRetrieval(name, metrics, estimates_of(metrics, groups), differences))
    return systems


def _differences(metrics: NDArray[np.float64], base: NDArray[np.float64], groups: IntArray) -> dict[str, Difference]:
    """Test the differences between the metrics (Q, K) of a system and those of the first system."""
    differences = {}
    for metric, values, base_values in zip(LABELS, metrics.T, base.T, strict=True):
        difference = float((values - base_values).mean())
        differences[metric] = Difference(difference, group_permutation_test(values, base_values, groups))
    return differences


def estimates_of(values: NDArray[np.float64], groups: IntArray) -> dict[str, Estimate]:
    """Compute the mean of each metric, with an interval over groups; empty without queries.

    Args:
        values: (Q, K) metrics of each query.
        groups: (Q,) number of each query's group; queries of a group depend on each other.
    """
    if not len(values):
        return {}
    means = values.mean(axis=0).tolist()
    intervals = group_intervals(values, groups)
    estimates = {}
    for metric, mean, (low, high) in zip(LABELS, means, intervals, strict=True):
        estimates[metric] = Estimate(mean, low, high, len(values))
    return estimates


@dataclass(frozen=True, eq=False)
class Confounds:
    """Confounders of the similarity of versions, for one system.

    Attributes:
        permuted: recall@1 and MRR with values permuted within strata, by metric.
        short: means over the stories with fewer words than the median, by metric.
        long: means over the other stories, by metric.
        diagnostics: diagnostics of the similarities.
    """

    permuted: Sequence[Mapping[str, Permuted]]
    short: Mapping[str, Estimate]
    long: Mapping[str, Estimate]
    diagnostics: SimilarityDiagnostics

    @property
    def record(self) -> dict[str, object]:
        """All figures as plain data."""
        permuted = {}
        for figures in self.permuted:
            strata = figures[PRINTED].within
            permuted[strata] = {metric: asdict(figure) for metric, figure in figures.items()}
        return {
            "permuted": permuted,
            "short": _plain(self.short),
            "long": _plain(self.long),
            "diagnostics": self.diagnostics.record,
        }


@dataclass(frozen=True)
class VersionFacts:
    """Assignment of stories to groups of versions.

    Attributes:
        column: column in which versions have the same value.
        values: number of values that several stories share.
        median_words: number of words that separates short and long stories.
        control: column of a confounder, within whose values `column` is permuted; None without one.
    """

    column: str
    values: int
    median_words: float
    control: str | None


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Ranking quality of systems for Q queries.

    Attributes:
        systems: measures of collections, and baselines; each is compared with the first.
        queries: Q ids.
        stories: number of ranked stories.
        qrels: file of relevance judgments; None without one.
        versions: assignment of stories to groups of versions; None if relevance comes from judgments.
        confounds: confounders of versions, by the name of the system.
        stop_words: stop words that baselines and measures of words leave out; None: they count all words.
    """

    systems: Sequence[SystemRetrieval]
    queries: Sequence[str]
    stories: int
    qrels: str | None
    versions: VersionFacts | None
    confounds: Mapping[str, Confounds]
    stop_words: StopWords | None

    @property
    def record(self) -> dict[str, object]:
        """All figures as plain data."""
        measures = {}
        for system in self.systems:
            measures[system.name] = system.record
            if system.name in self.confounds:
                measures[system.name] |= self.confounds[system.name].record
        return {
            "qrels": self.qrels,
            "versions": None if self.versions is None else asdict(self.versions),
            "queries": len(self.queries),
            "stories": self.stories,
            "stop_words": self.stop_words,
            "measures": measures,
        }

    def table(self) -> pd.DataFrame:
        """Tabulate means, one row per system and metric, with interval, n, difference to the first system and p."""
        rows = []
        for system in self.systems:
            for metric, estimate in system.estimates.items():
                row = {"system": system.name, "metric": metric, **asdict(estimate)}
                if metric in system.differences:
                    row |= asdict(system.differences[metric])
                rows.append(row)
        return pd.DataFrame(rows)

    def confound_table(self) -> pd.DataFrame:
        """Tabulate permutations, one row per system, strata and metric: mean, 95 % range, p and movable stories."""
        rows = []
        for name, confounds in self.confounds.items():
            for figures in confounds.permuted:
                for metric, figure in figures.items():
                    rows.append({"system": name, "metric": metric, **asdict(figure)})
        return pd.DataFrame(rows)

    def answers(self) -> pd.DataFrame:
        """Tabulate the metrics of each query, one column per system and metric."""
        columns: dict[str, object] = {"query": [*self.queries]}
        for system in self.systems:
            for metric, values in zip(LABELS, system.values.T, strict=True):
                columns[f"{system.name}.{metric}"] = values
        return pd.DataFrame(columns)

    def write(self, folder: str | Path) -> None:
        """Write retrieval.json and retrieval.md, and answers.csv with one row per query."""
        keep_report(Path(folder), "retrieval", self.record, f"{self}\n")
        write_table(Path(folder) / "answers.csv", self.answers().to_dict("records"))

    def plot(self, metric: str = TESTED) -> "Axes":
        """Plot a metric with 95 % intervals, one line per system, and return the matplotlib axes.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        require("matplotlib", "plots")
        lines = {}
        for system in self.systems:
            estimate = system.estimates[metric]
            lines[system.name] = {"accuracy": estimate.mean, "interval": estimate.interval}
        axes = interval_plot(lines)
        axes.set_xlabel(f"{LABELS[metric]}, 95 % interval")
        return axes

    def __str__(self) -> str:
        """Format tables in Markdown, and warnings."""
        words = f"Stop words: {stop_words_text(self.stop_words)}."
        if self.versions is None:
            title = f"{len(self.queries):,} queries among {self.stories:,} stories"
            note = "Intervals: 95 %, over queries; p: paired permutation test."
            return f"{markdown_table(title, self._rows())}\n{note} {words}"
        column = printable(self.versions.column, 60)
        title = (
            f"{len(self.queries):,} stories that share their {column} with another, among {self.stories:,}; "
            f"{self.versions.values:,} values"
        )
        note = f"Intervals: 95 %, over values of {column}; p: paired permutation test over these."
        lines = [markdown_table(title, self._rows()), f"{note} {words}", "", self._permutations(), "", self._lengths()]
        return "\n".join([*lines, *self._warnings()])

    def _rows(self) -> list[dict[str, str]]:
        """Format the metrics of each system, and its difference to the first."""
        first = self.systems[0].name
        rows = []
        for system in self.systems:
            row = {"system": system.name}
            for metric, estimate in system.estimates.items():
                row[LABELS[metric]] = str(estimate)
            tested = system.differences.get(TESTED)
            row[f"MRR to {first}"] = "" if tested is None else str(tested)
            rows.append(row)
        return rows

    def _permutations(self) -> str:
        """Format a metric next to its values for permutations within strata."""
        rows = []
        movable: dict[str, int] = {}
        for system in self.systems:
            row = {"system": system.name, LABELS[PRINTED]: f"{system.estimates[PRINTED].mean:.3f}"}
            for figures in self.confounds[system.name].permuted:
                figure = figures[PRINTED]
                row[f"within {printable(figure.within, 40)}"] = _permuted_cell(figure)
                movable[figure.within] = figure.movable
            rows.append(row)
        moved = [f"{count:,} within {printable(name, 40)}" for name, count in movable.items()]
        title = "Versions or confounders? The same with values permuted within strata"
        note = f"Mean and 95 % range of the permutations. Stories that move: {', '.join(moved)}."
        return f"{markdown_table(title, rows)}\n{note}"

    def _lengths(self) -> str:
        """Format the metrics of short and long stories, and hubness of the similarities."""
        rows = []
        for system in self.systems:
            confounds = self.confounds[system.name]
            hubs = confounds.diagnostics.hub_skewness
            row = {"system": system.name}
            for name, estimates in (("short", confounds.short), ("long", confounds.long)):
                row[f"{LABELS[PRINTED]}, {name}"] = str(estimates[PRINTED]) if estimates else ""
                row[f"MRR, {name}"] = f"{estimates[TESTED].mean:.3f}" if estimates else ""
            row["hubs"] = "" if hubs is None else f"{hubs:.1f}"
            rows.append(row)
        words = 0.0 if self.versions is None else self.versions.median_words
        note = (
            f"Short: fewer than {words:g} words, the median. Hubs: skewness of how often a story is among the ten "
            "nearest stories of others."
        )
        return f"{markdown_table('Short and long stories, and hubs', rows)}\n{note}"

    def _warnings(self) -> list[str]:
        """List warnings about hubness of the first system."""
        first = self.systems[0].name
        warnings = self.confounds[first].diagnostics.warnings
        return [f"{first}: {warning}" for warning in warnings]


def _permuted_cell(figure: Permuted) -> str:
    """Format a metric for permuted values: mean, range and p."""
    return f"{figure.mean:.3f} [{figure.low:.3f}, {figure.high:.3f}], {p_text(figure.p)}"


def _plain(estimates: Mapping[str, Estimate]) -> dict[str, object]:
    """Convert estimates to plain data."""
    plain: dict[str, object] = {}
    for metric, estimate in estimates.items():
        plain[metric] = {"mean": estimate.mean, "interval": estimate.interval, "n": estimate.n}
    return plain
