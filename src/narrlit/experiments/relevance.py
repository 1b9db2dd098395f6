"""Relevance of stories to queries, and metrics of how high a system ranks them.

Letters in shapes: Q queries, N stories, R relevant stories of a query, K metrics, B queries of a block.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from narrlit.data.schema import DoubleArray, Floats, IntArray, normal_form
from narrlit.errors import DataError, printable, reading
from narrlit.results import Row, difference, estimate
from narrlit.statistics.retrieval import METRICS, ranks
from narrlit.statistics.versions import Versions

Metrics = Mapping[str, Callable[[IntArray, DoubleArray], float]]
Qrels = Mapping[str, Mapping[str, float]]
"""Gains above 0 of the relevant stories of each query, by ids of query and story."""
QUERIES_PER_BLOCK = 256


def read_qrels(path: str) -> Qrels:
    """Read relevance judgments: query-id, corpus-id and score (BEIR; a header is skipped), or TREC's four columns.

    Rows with the score 0 are skipped.

    Raises:
        DataError: if the file can't be read or contains no relevant story.
    """
    with reading("unreadable_qrels", path):
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    qrels: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines, 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not cells or cells[0] == "query-id":
            continue
        query, story, gain = _read_judgment(line, cells, f"{path}:{number}")
        if gain > 0:
            qrels.setdefault(query, {})[story] = gain
    if not qrels:
        raise DataError("no_relevant_story", path=path)
    return qrels


def _read_judgment(line: str, cells: Sequence[str], place: str) -> tuple[str, str, float]:
    """Read query, story and score from the cells of a line; TREC's second column is skipped."""
    try:
        query, *_, story, score = cells[:4]
        gain = float(score)
    except ValueError as error:
        raise DataError("broken_judgment", place=place, text=printable(line, 60)) from error
    if not math.isfinite(gain):
        raise DataError("score_of_judgment", place=place, score=printable(score, 60))
    return normal_form(query), normal_form(story), gain


@dataclass(frozen=True, eq=False)
class Relevance:
    """Stories that are relevant to Q queries.

    Attributes:
        queries: (Q,) rows of the queries.
        stories: (R,) rows of the relevant stories of each query.
        gains: (R,) gains of these stories, above 0.
        among_stories: queries are stories of the collection, which are excluded from their own results.
    """

    queries: IntArray
    stories: Sequence[IntArray]
    gains: Sequence[NDArray[np.float64]]
    among_stories: bool

    @classmethod
    def of_qrels(cls, qrels: Qrels, query_ids: Sequence[str] | None, ids: Sequence[str]) -> "Relevance":
        """Find the rows of judged stories.

        Args:
            qrels: Q queries with their relevant stories.
            query_ids: ids of the queries, row by row; None: queries are among the stories.
            ids: ids of the N stories.

        Raises:
            DataError: if there is no query, a query or a relevant story is missing, or a query is relevant to itself.
        """
        if not qrels:
            raise DataError("qrels_without_query")
        row_of_story = {id: row for row, id in enumerate(ids)}
        row_of_query = row_of_story if query_ids is None else {id: row for row, id in enumerate(query_ids)}
        _require("unknown_query_of_qrels", qrels, row_of_query)
        queries, stories_of_queries, gains_of_queries = [], [], []
        for query, gains in qrels.items():
            _require("unknown_story_of_qrels", gains, row_of_story)
            if query_ids is None and query in gains:
                raise DataError("relevant_to_itself", id=printable(query, 60))
            queries.append(row_of_query[query])
            stories_of_queries.append(np.array([row_of_story[story] for story in gains]))
            gains_of_queries.append(np.array(list(gains.values())))
        return cls(np.array(queries), stories_of_queries, gains_of_queries, query_ids is None)

    @classmethod
    def of_versions(cls, versions: Versions) -> "Relevance":
        """Define the other versions of a story as relevant to it."""
        stories = [versions.partners(row) for row in versions.queries.tolist()]
        return cls(versions.queries, stories, [np.ones(len(partners)) for partners in stories], True)

    def metrics(self, score: Callable[[IntArray], Floats], metrics: Metrics = METRICS) -> NDArray[np.float64]:
        """Compute the metrics (Q, K) of the queries.

        Args:
            score: function from rows of queries (B,) to their similarities with all stories (B, N).
            metrics: K functions of ranks and gains, by name.
        """
        values = []
        for start in range(0, len(self.queries), QUERIES_PER_BLOCK):
            rows = self.queries[start : start + QUERIES_PER_BLOCK]
            scores = score(rows)
            if self.among_stories:
                scores[np.arange(len(rows)), rows] = -np.inf
            for query, story_ranks in enumerate(ranks(scores), start):
                relevant_ranks = story_ranks[self.stories[query]]
                values.append([metric(relevant_ranks, self.gains[query]) for metric in metrics.values()])
        return np.array(values)


def _require(code: str, ids: Iterable[str], rows: Mapping[str, int]) -> None:
    """Check that every query or story of the qrels exists; raise DataError with the code otherwise."""
    for id in ids:
        if id not in rows:
            raise DataError(code, id=printable(id, 60))


def ranking_figures(values: Mapping[str, NDArray[np.float64]], groups: ArrayLike, subset: str = "all") -> list[Row]:
    """Compute the mean of each metric by system.

    Args:
        values: (Q, K) metrics of the queries by system, from `Relevance.metrics`.
        groups: (Q,) number of each query's group; queries of a group depend on each other.
        subset: subset of the queries that these are.
    """
    figures = []
    for system, metrics in values.items():
        for metric, of_system in zip(METRICS, metrics.T, strict=True):
            figures.append(estimate(of_system, groups).row(system, metric, subset))
    return figures


def ranking_differences(values: Mapping[str, NDArray[np.float64]], groups: ArrayLike) -> list[Row]:
    """Compare each metric with that of the first system; for the arguments, see `ranking_figures`."""
    differences = []
    (first, base), *others = values.items()
    for system, metrics in others:
        for metric, of_system, of_first in zip(METRICS, metrics.T, base.T, strict=True):
            differences.append(difference(of_system, of_first, groups).row(system, first, metric))
    return differences


def query_rows(queries: Sequence[str], values: Mapping[str, NDArray[np.float64]]) -> list[Row]:
    """Tabulate the metrics (Q, K) of each query, in columns named SYSTEM.METRIC."""
    columns: dict[str, Sequence[object]] = {"query": queries}
    for system, metrics in values.items():
        for metric, of_system in zip(METRICS, metrics.T, strict=True):
            columns[f"{system}.{metric}"] = of_system.tolist()
    rows: list[Row] = pd.DataFrame(columns).to_dict("records")
    return rows
