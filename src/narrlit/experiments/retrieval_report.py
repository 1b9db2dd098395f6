"""Evaluation of retrieval: how high collections rank the stories that a file of judgments calls relevant.

Letters of the shapes: Q queries, N stories, D dimension, M measures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.data.writers import write_table
from narrlit.errors import DataError, printable, reading
from narrlit.experiments.report import keep_report
from narrlit.explore.collection import Collection
from narrlit.metrics.retrieval import MEASURES, Lexical, lexical_vectors, ranks
from narrlit.metrics.significance import bootstrap_interval, p_text, permutation_test
from narrlit.tables import markdown_table

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


def measure(
    qrels: Qrels, queries: Any, stories: Any, query_ids: Sequence[str] | None, ids: Sequence[str]
) -> NDArray[Any]:
    """Compute each measure of each query (Q, M), where products of vectors rank the stories.

    Args:
        qrels: Q queries with their relevant stories.
        queries: dense or sparse vectors, D wide, of the queries and perhaps others.
        stories: dense or sparse vectors (N, D).
        query_ids: ids of the rows of `queries`; None: queries are among the stories, and not among their own results.
        ids: N ids.

    Raises:
        DataError: if a query or a relevant story is not there.
    """
    row = {id: n for n, id in enumerate(ids)}
    query_row = row if query_ids is None else {id: n for n, id in enumerate(query_ids)}
    relevant = [story for gains in qrels.values() for story in gains]
    for kind, known, needed in (("query", query_row, qrels), ("story", row, relevant)):
        absent = next((id for id in needed if id not in known), None)
        if absent is not None:
            raise DataError(f"there is no {kind} {printable(absent, 60)!r}, which the qrels name; leave its rows out")
    asked, values = list(qrels), []
    own_answer = next((query for query in asked if query_ids is None and query in qrels[query]), None)
    if own_answer is not None:
        raise DataError(f"the qrels call {printable(own_answer, 60)!r} relevant to itself; leave that row out")
    for start in range(0, len(asked), QUERIES_PER_BLOCK):
        block = asked[start : start + QUERIES_PER_BLOCK]
        scores = queries[[query_row[query] for query in block]] @ stories.T
        scores = scores if isinstance(scores, np.ndarray) else scores.toarray()
        for query, own in zip(block, scores, strict=True):
            if query_ids is None:
                own[row[query]] = -np.inf
            placed, gains = ranks(own)[[row[story] for story in qrels[query]]], np.array([*qrels[query].values()])
            values.append([compute(placed, gains) for compute in MEASURES.values()])
    return np.array(values)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Measures of how high collections, and a baseline, rank the relevant stories of Q queries.

    Attributes:
        record: figures, as plain data.
        rows: of the table, a row a measure and system.
        values: (Q, M) measures of each query, by system.
        queries: (Q) ids.
    """

    record: dict[str, Any]
    rows: list[dict[str, Any]]
    values: Mapping[str, NDArray[Any]]
    queries: Sequence[str]

    def table(self) -> pd.DataFrame:
        """Tabulate measures: a row a measure and system, with mean, interval, difference to the first system and p."""
        rows = []
        for name, figures in self.record["measures"].items():
            for system, own in figures.items():
                low, high = own["interval"]
                rest = {key: own[key] for key in ("difference", "p") if key in own}
                rows.append({"measure": name, "system": system, "mean": own["mean"], "low": low, "high": high, **rest})
        return pd.DataFrame(rows)

    def answers(self) -> pd.DataFrame:
        """Tabulate the measures of each query, a column a system and measure."""
        columns = [f"{system}.{name}" for system in self.values for name in MEASURES]
        frame = pd.DataFrame(np.hstack([*self.values.values()]), columns=columns)
        frame.insert(0, "query", [*self.queries])
        return frame

    def write(self, folder: str | Path) -> None:
        """Write retrieval.json and retrieval.md, and answers.csv with a row a query."""
        keep_report(Path(folder), "retrieval", self.record, f"{self}\n")
        write_table(Path(folder) / "answers.csv", self.answers().to_dict("records"))

    def __str__(self) -> str:
        """The table in Markdown."""
        title = f"{self.record['queries']:,} queries among {self.record['stories']:,} stories"
        note = "Intervals: 95 %, bootstrap over queries; p: paired permutation test."
        return f"{markdown_table(title, self.rows)}\n{note}"


def retrieval(
    collections: Mapping[str, Collection],
    qrels: str | Path | Qrels,
    *,
    queries: Mapping[str, Collection] | None = None,
    baseline: Lexical | None = None,
) -> Retrieval:
    """Evaluate how high collections rank the stories that judgments call relevant.

    Args:
        collections: by the name of their system; the others are compared with the first.
        qrels: file of relevance judgments (`read_qrels`), or what is in it.
        queries: of each collection, encoded like it; None: queries are ids of the ranked stories.
        baseline: also rank the stories of the first collection by words: `tfidf` or `bm25`.

    Returns:
        A `Retrieval`: nDCG@10, MRR, recall@1 and @10 with 95 % intervals: `.table()`, `.answers()`, `.write(folder)`.

    Raises:
        DataError: if the judgments can't be read, or name a story that is not there.
    """
    judged = read_qrels(str(qrels)) if isinstance(qrels, str | Path) else qrels
    values: dict[str, NDArray[Any]] = {}
    for name, collection in collections.items():
        asked = collection if queries is None else queries[name]
        query_ids = None if queries is None else asked.frame["id"].tolist()
        ids = collection.frame["id"].tolist()
        values[name] = measure(judged, asked.vectors, collection.vectors, query_ids, ids)
    first = next(iter(collections))
    if baseline is not None:
        collection = collections[first]
        asked = collection if queries is None else queries[first]
        query_ids = None if queries is None else asked.frame["id"].tolist()
        own, others = lexical_vectors(baseline, asked.frame["text"].tolist(), collection.frame["text"].tolist())
        values[baseline] = measure(judged, own, others, query_ids, collection.frame["id"].tolist())
    content: dict[str, Any] = {
        "qrels": str(qrels) if isinstance(qrels, str | Path) else None,
        "queries": len(judged),
        "stories": len(collections[first]),
        "measures": {},
    }
    rows = []
    for place, name in enumerate(MEASURES):
        figures = content["measures"][name] = {}
        for system, table in values.items():
            own_values, base = table[:, place], values[first][:, place]
            low, high = bootstrap_interval(own_values)
            mean = float(own_values.mean())
            figures[system] = {"mean": mean, "interval": [low, high]}
            compared = ""
            if system != first:
                difference, p = float((own_values - base).mean()), permutation_test(own_values, base)
                figures[system] |= {"difference": difference, "p": p}
                compared = f"{difference:+.3f} ({p_text(p)})"
            text = f"{mean:.3f} [{low:.3f}, {high:.3f}]"
            row = {"measure": name, "system": system, "mean, 95 % interval": text}
            rows.append(row | {f"difference to {first}": compared})
    return Retrieval(content, rows, values, [*judged])
