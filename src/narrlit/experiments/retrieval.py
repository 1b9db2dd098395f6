"""`narrlit.retrieval`: how high measures rank versions of a story, or the stories that judgments call relevant.

Letters in shapes: Q queries, N stories, R relevant stories of a query, K metrics, B rows of a block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.data.schema import Floats, IntArray
from narrlit.errors import DataError, OptionError
from narrlit.experiments.relevance import Qrels, Relevance, read_qrels
from narrlit.experiments.retrieval_report import Retrieval, compare_systems
from narrlit.experiments.version_ranking import VersionedStories, rank_versions
from narrlit.explore.collection import Collection, measure_for
from narrlit.explore.index import Index
from narrlit.explore.options import index_at
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.representations import Contents
from narrlit.metrics.names import MeasureName
from narrlit.metrics.retrieval import Lexical, lexical_vectors
from narrlit.metrics.versions import Versions

Scorer = Callable[[IntArray], Floats]
"""Compares some queries, rows (B,), with all stories, (B, N); the larger, the more alike."""


@dataclass(frozen=True, eq=False)
class System:
    """A measure of a collection, or a baseline.

    Attributes:
        name: for tables.
        score: compares queries with stories.
    """

    name: str
    score: Scorer


def retrieval(
    stories: Collection | Mapping[str, Collection] | str | Path | pd.DataFrame | Sequence[str],
    qrels: str | Path | Qrels | None = None,
    *,
    same: str | None = None,
    measures: Sequence[MeasureName] | None = None,
    control: str | None = None,
    queries: Collection | Mapping[str, Collection] | None = None,
    baseline: Lexical | None = "tfidf",
) -> Retrieval:
    """Evaluate whether the nearest story of each is another version of it, or how high relevant stories are ranked.

    Stories with the same value in a column (tale type, work, author) are versions; or a file of judgments names the
    relevant stories of each query. Of versions, recall@k is the share of stories with another version among their k
    nearest; of judgments, the mean share of relevant stories among the first k.

    Args:
        stories: a collection, or several by name; a file, folder or index; a table or texts, which narrlit-mini embeds.
        qrels: file of relevance judgments (`read_qrels`), or what is in it.
        same: column of the stories, instead of `qrels`.
        measures: that are compared, the others with the first; None: that of each collection.
        control: column, such as book or translator, that may make versions alike: values are permuted within it.
        queries: of the judgments, encoded like the collection (by the same names); None: queries are stories.
        baseline: words of the stories, which are always compared beside: `tfidf` or `bm25`; None: not.

    Returns:
        A `Retrieval`: recall@1 and @10, MRR and nDCG@10 with 95 % intervals and paired tests: `.table()`, `.answers()`,
        `.confound_table()`, `.plot()`, `.write(folder)`.

    Raises:
        DataError: if stories or judgments can't be read, no story has another version, or a judged story is not there.
        OptionError: if there is no such column, or not just one of `qrels` and `same`.

    >>> import pandas as pd
    >>> texts = ["A wolf eats a girl.", "A wolf eats a grandmother.", "A hare loses a race.", "A fox wins a race."]
    >>> tales = pd.DataFrame({"text": texts, "type": ["wolf", "wolf", "race", "race"]})
    >>> found = retrieval(tales, same="type", measures=["cosine"])
    >>> found.record["measures"]["cosine"]["recall@1"]
    1.0
    """
    if (qrels is None) == (same is None):
        raise OptionError("`same`: give a column of the stories, or relevance judgments by `qrels`")
    collections = stories if isinstance(stories, Mapping) else {"": collection_of(stories)}
    if same is not None:
        if queries is not None:
            raise OptionError("`queries` are of judgments: give `qrels` in place of `same`")
        return _versions_retrieval(collections, same, measures, control, baseline)
    if control is not None:
        raise OptionError("`control` is of versions: give `same` in place of `qrels`")
    judged = read_qrels(str(qrels)) if isinstance(qrels, str | Path) else qrels or {}
    named = {next(iter(collections)): queries} if isinstance(queries, Collection) else queries
    file = str(qrels) if isinstance(qrels, str | Path) else None
    return _judged_retrieval(collections, judged, named, measures, baseline, file)


def collection_of(stories: Collection | str | Path | pd.DataFrame | Sequence[str]) -> Collection:
    """Return a collection, or make one of a file, folder or index, of a table or of texts."""
    if isinstance(stories, Collection):
        return stories
    if isinstance(stories, str | Path):
        return Index(stories).collection() if index_at(stories) else Collection.read(stories)
    return Collection.of(stories)


# Judgments -----------------------------------------------------------------------------------------------------------


def _judged_retrieval(
    collections: Mapping[str, Collection],
    qrels: Qrels,
    queries: Mapping[str, Collection] | None,
    measures: Sequence[MeasureName] | None,
    baseline: Lexical | None,
    file: str | None,
) -> Retrieval:
    """Rank the stories for judged queries."""
    values: dict[str, NDArray[np.float64]] = {}
    for name, collection in collections.items():
        asked = None if queries is None else queries[name]
        relevance = _relevance(qrels, asked, collection)
        for system in systems_of(collection, name if len(collections) > 1 else "", measures, asked):
            values[system.name] = relevance.metrics(system.score)
    first = next(iter(collections))
    if baseline is not None:
        asked = None if queries is None else queries[first]
        relevance = _relevance(qrels, asked, collections[first])
        values[baseline] = relevance.metrics(lexical_system(collections[first], baseline, asked).score)
    systems = compare_systems(values, np.arange(len(qrels)))
    return Retrieval(systems, [*qrels], len(collections[first]), file, None, {})


def _relevance(qrels: Qrels, queries: Collection | None, collection: Collection) -> Relevance:
    """Find the rows of judged stories and queries in their collections."""
    query_ids = None if queries is None else queries.frame["id"].tolist()
    return Relevance.of_qrels(qrels, query_ids, collection.frame["id"].tolist())


def systems_of(
    collection: Collection, name: str, measures: Sequence[MeasureName] | None, queries: Collection | None = None
) -> Iterator[System]:
    """Fit measures on a collection, one after the other.

    Args:
        collection: N stories.
        name: of the collection, before that of the measure; empty where there is one collection.
        measures: their names; None: the collection's.
        queries: that are compared with the stories; None: the stories.
    """
    for measure in measures or [collection.measure]:
        chosen = measure_for(collection.encoder, measure)
        similarities = collection.similarities_by(chosen)
        title = f"{name}, {chosen}" if name else chosen
        if queries is None:
            yield System(title, similarities.rows)
        else:
            yield System(title, partial(_score_queries, similarities, queries.contents(chosen)))


def _score_queries(similarities: CollectionSimilarity, queries: Contents, rows: IntArray) -> Floats:
    """Compare some queries, rows (B,), with all stories, (B, N)."""
    return similarities.of_queries(queries.take(rows))


def lexical_system(collection: Collection, kind: Lexical, queries: Collection | None = None) -> System:
    """Compare the words of queries, or of the stories, with those of the stories."""
    texts = collection.frame["text"].tolist()
    asked = texts if queries is None else queries.frame["text"].tolist()
    vectors, others = lexical_vectors(kind, asked, texts)
    return System(kind, lambda rows: (vectors[rows] @ others.T).toarray())


# Versions ------------------------------------------------------------------------------------------------------------


def _versions_retrieval(
    collections: Mapping[str, Collection],
    same: str,
    measures: Sequence[MeasureName] | None,
    control: str | None,
    baseline: Lexical | None,
) -> Retrieval:
    """Rank all stories for each story with another version."""
    first, *others = collections.values()
    texts = first.frame["text"].tolist()
    for other in others:
        if other.frame["text"].tolist() != texts:
            raise DataError(f"{other.about['source']} has other stories than {first.about['source']}, or another order")
    return rank_versions(_similarities(collections, measures, baseline), versioned_stories(first, same, control))


def versioned_stories(collection: Collection, same: str, control: str | None = None) -> VersionedStories:
    """Find the versions among N stories by their columns.

    Raises:
        DataError: if no story has another version.
        OptionError: if there is no such column.
    """
    values = _metadata_column(collection, "same", same)
    controls = [] if control is None else _metadata_column(collection, "control", control)
    if not len(Versions(values).queries):
        raise DataError(f"`same={same}`: no two stories of {collection.about['source']} have the same value")
    ids, texts = collection.frame["id"].tolist(), collection.frame["text"].tolist()
    return VersionedStories(ids, texts, same, values, control, controls)


def _similarities(
    collections: Mapping[str, Collection], measures: Sequence[MeasureName] | None, baseline: Lexical | None
) -> Iterator[tuple[str, Floats]]:
    """Compare all stories with all, (N, N), by each system."""
    for name, collection in collections.items():
        rows = np.arange(len(collection))
        for system in systems_of(collection, name if len(collections) > 1 else "", measures):
            yield system.name, system.score(rows)
    if baseline is not None:
        first = next(iter(collections.values()))
        yield baseline, lexical_system(first, baseline).score(np.arange(len(first)))


def _metadata_column(collection: Collection, parameter: str, name: str) -> list[Any]:
    """Return the values (N,) of a column; None where a cell is empty.

    Raises:
        OptionError: if there is no such column.
    """
    if name not in collection.frame.columns[3:]:
        columns = ", ".join(collection.frame.columns[3:]) or "none"
        source = collection.about["source"]
        raise OptionError(f"`{parameter}={name}`: {source} has no such column; available: {columns}")
    return [None if value is None else str(value) for value in collection.frame[name]]
