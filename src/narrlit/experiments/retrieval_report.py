"""Evaluation of retrieval: how high collections rank the stories that a file of judgments calls relevant.

Letters of the shapes: Q queries, N stories, D dimension, M measures.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.encoding.story_encoder import unit_vectors
from narrlit.errors import DataError, printable, reading
from narrlit.experiments.report import table_text
from narrlit.explore.collection import Collection, load_collection, story_frame
from narrlit.explore.index import index_at, open_index
from narrlit.metrics.retrieval import MEASURES, Lexical, lexical_vectors, ranks
from narrlit.metrics.significance import bootstrap_interval, p_text, permutation_test
from narrlit.options import InputOptions, ModelOptions, StoryOptions

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


def evaluate_retrieval(
    source: str,
    path: str,
    queries: str | None,
    baseline: Lexical | None,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
) -> tuple[dict[str, Any], str, list[dict[str, Any]]]:
    """Rank the stories of collections, and by a baseline those of the first, for each query of the qrels.

    Args:
        source: an index, or a file or folder of stories; several with commas between.
        path: of the qrels.
        queries: file of the queries; None: queries are stories of the collections.
        baseline: compares words.
        use: model of collections that are no index.
        read: what it reads of a story.
        inputs: how files hold stories.

    Returns:
        Plain data, Markdown, and a row a query.
    """
    qrels, systems = read_qrels(path), dict[str, tuple[Collection, Collection, Any, Any]]()
    sources = [name.strip() for name in source.split(",")]
    # The stories of an index are read already: columns and lines are those of other files, where there are any.
    only_indexes = queries is None and all(index_at(name) for name in sources)
    of_index = inputs if only_indexes else InputOptions()
    pairs = [_load(name, queries, use, read, inputs, of_index) for name in sources]
    for name, (asked, collection) in zip(sources, pairs, strict=True):
        model = str(collection.about["model"])
        systems[name if model in systems else model] = asked, collection, asked.vectors, collection.vectors
    if baseline is not None:
        lexical = lexical_vectors(baseline, *(each.frame["text"].tolist() for each in pairs[0]))
        systems[baseline] = *pairs[0], *lexical
    values = {}
    for name, (asked, collection, own, others) in systems.items():
        query_ids = None if queries is None else asked.frame["id"].tolist()
        values[name] = measure(qrels, own, others, query_ids, collection.frame["id"].tolist())
    first = next(iter(values))
    content: dict[str, Any] = {"qrels": path, "queries": len(qrels), "stories": len(pairs[0][1].frame), "measures": {}}
    rows = []
    for place, name in enumerate(MEASURES):
        figures = content["measures"][name] = {}
        for system, table in values.items():
            own, base = table[:, place], values[first][:, place]
            low, high = bootstrap_interval(own)
            figures[system] = {"mean": float(own.mean()), "interval": [low, high]}
            compared = ""
            if system != first:
                difference, p = float((own - base).mean()), permutation_test(own, base)
                figures[system] |= {"difference": difference, "p": p}
                compared = f"{difference:+.3f} ({p_text(p)})"
            text = f"{own.mean():.3f} [{low:.3f}, {high:.3f}]"
            row = {"measure": name, "system": system, "mean, 95 % interval": text}
            rows.append(row | {f"difference to {first}": compared})
    columns = [f"{system}.{name}" for system in values for name in MEASURES]
    answers = pd.DataFrame(np.hstack([*values.values()]), columns=columns)
    answers.insert(0, "query", [*qrels])
    title = f"{content['queries']:,} queries among {content['stories']:,} stories"
    note = "Intervals: 95 %, bootstrap over queries; p: paired permutation test."
    return content, f"{table_text(title, rows)}\n{note}\n", answers.to_dict("records")


def _load(
    source: str,
    queries: str | None,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
    of_index: InputOptions,
) -> tuple[Collection, Collection]:
    """Load the queries, encoded like the stories, and the stories."""
    collection = load_collection(source, use, read, of_index if index_at(source) else inputs)
    if queries is None:
        return collection, collection
    if not index_at(source):
        return load_collection(queries, use, read, inputs), collection
    index = open_index(source, use, read)
    frame = story_frame(inputs.read(queries))
    vectors = unit_vectors(index.encoder.embed(frame["text"].tolist(), progress=True))
    return Collection(frame, vectors, collection.about, index.encoder), collection
