"""Relevance: which stories are relevant to which queries, and how high a system ranks them.

Letters of the shapes: Q queries, N stories, R relevant stories of a query, K metrics, B queries of a block.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import IntArray
from narrlit.errors import DataError, printable, reading
from narrlit.metrics.retrieval import METRICS, Gains, ranks
from narrlit.metrics.versions import Versions

Floats = NDArray[np.floating[Any]]
Metrics = Mapping[str, Callable[[IntArray, Gains], float]]
Qrels = Mapping[str, Mapping[str, float]]
"""Gains above 0 of the relevant stories of each query; ids of both."""
QUERIES_PER_BLOCK = 256
LAYOUT = "write query-id, corpus-id and score with tabs between, or TREC's four columns"


def read_qrels(path: str) -> Qrels:
    """Read relevance judgments: query-id, corpus-id and score (BEIR; a header is skipped), or TREC's four columns.

    Rows with the score 0 are left out.

    Raises:
        DataError: if the file can't be read or names no relevant story.
    """
    with reading("qrels", path, LAYOUT):
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    qrels: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines, 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not cells or cells[0] == "query-id":
            continue
        try:
            query, *_, story, score = cells[:4]
            gain = float(score)
        except ValueError as error:
            raise DataError(f"{path}:{number}: {printable(line, 60)!r} is no judgment; {LAYOUT}") from error
        if not math.isfinite(gain):
            raise DataError(f"{path}:{number}: the score {printable(score, 60)} is no finite number; {LAYOUT}")
        if gain > 0:
            qrels.setdefault(query, {})[story] = gain
    if not qrels:
        raise DataError(f"{path} names no relevant story; write rows with a score above 0")
    return qrels


@dataclass(frozen=True, eq=False)
class Relevance:
    """Stories that are relevant to Q queries.

    Attributes:
        queries: (Q,) rows of the queries.
        stories: rows of the relevant stories of each query (R,).
        gains: of these (R,), above 0.
        groups: (Q,) numbers; queries of a group depend on each other.
        among_stories: queries are stories of the collection, and not among their own results.
    """

    queries: IntArray
    stories: Sequence[IntArray]
    gains: Sequence[NDArray[Any]]
    groups: IntArray
    among_stories: bool

    @classmethod
    def of_qrels(cls, qrels: Qrels, query_ids: Sequence[str] | None, ids: Sequence[str]) -> "Relevance":
        """Find the rows of judged stories.

        Args:
            qrels: Q queries with their relevant stories.
            query_ids: ids of the queries' rows; None: queries are among the stories.
            ids: N ids.

        Raises:
            DataError: if a query or a relevant story is not there, or a query is relevant to itself.
        """
        row = {id: number for number, id in enumerate(ids)}
        query_row = row if query_ids is None else {id: number for number, id in enumerate(query_ids)}
        relevant = [story for gains in qrels.values() for story in gains]
        for kind, known, needed in (("query", query_row, qrels), ("story", row, relevant)):
            absent = next((id for id in needed if id not in known), None)
            if absent is not None:
                name = printable(absent, 60)
                raise DataError(f"there is no {kind} {name!r}, which the qrels name; leave its rows out")
        itself = next((query for query in qrels if query_ids is None and query in qrels[query]), None)
        if itself is not None:
            raise DataError(f"the qrels call {printable(itself, 60)!r} relevant to itself; leave that row out")
        return cls(
            np.array([query_row[query] for query in qrels]),
            [np.array([row[story] for story in gains]) for gains in qrels.values()],
            [np.array([*gains.values()]) for gains in qrels.values()],
            np.arange(len(qrels)),
            query_ids is None,
        )

    @classmethod
    def of_versions(cls, versions: Versions) -> "Relevance":
        """Call the other versions of a story relevant to it."""
        stories = [versions.partners(row) for row in versions.queries.tolist()]
        gains = [np.ones(len(partners)) for partners in stories]
        return cls(versions.queries, stories, gains, versions.groups, True)

    def metrics(self, score: Callable[[IntArray], Floats], metrics: Metrics = METRICS) -> NDArray[Any]:
        """Compute the metrics (Q, K) of the queries.

        Args:
            score: compares some queries, rows (B,), with all stories, (B, N); the larger, the more alike.
            metrics: K functions of ranks and gains, by name.
        """
        values = []
        for start in range(0, len(self.queries), QUERIES_PER_BLOCK):
            rows = self.queries[start : start + QUERIES_PER_BLOCK]
            scores = score(rows)
            if self.among_stories:
                scores[np.arange(len(rows)), rows] = -np.inf
            for number, placed in enumerate(ranks(scores), start):
                relevant, gains = self.stories[number], self.gains[number]
                values.append([compute(placed[relevant], gains) for compute in metrics.values()])
        return np.array(values)
