"""`narrlit.retrieval`: how high measures rank versions of a story, or stories that are relevant to queries.

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
from narrlit.explore.collection import Collection, column_values, measure_for
from narrlit.explore.index import Index
from narrlit.explore.options import index_at
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.representations import Contents
from narrlit.metrics.names import MeasureName
from narrlit.metrics.versions import Versions
from narrlit.metrics.words import Lexical, lexical_vectors, stop_words_of

Scorer = Callable[[IntArray], Floats]
"""Function from rows of queries (B,) to similarities with all stories (B, N)."""


@dataclass(frozen=True, eq=False)
class System:
    """Measure of a collection, or baseline.

    Attributes:
        name: name in tables.
        score: function that compares queries with stories.
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
    """Evaluate how high relevant stories are ranked: other versions of each story, or the answers to queries.

    Stories with the same value in a column (tale type, work, author) are versions of each other; or a file of relevance
    judgments lists the relevant stories of each query. For versions, recall@k is the share of stories with another
    version among their k nearest; for judgments, the mean share of relevant stories among the first k.

    Args:
        stories: a collection, or several by name; a file, folder or index; a table or texts, which narrlit-mini embeds.
        qrels: file of relevance judgments (`read_qrels`), or its content.
        same: column in which versions of the same story have the same value; used instead of `qrels`.
        measures: measures of similarity, each compared with the first; None: the measure of each collection.
        control: column of a confounder, such as book or translator, that may make versions similar; the permutation
            test permutes `same` within its values.
        queries: queries of `qrels`, encoded like the collection (with the same names); None: queries are stories.
        baseline: lexical baseline, which ranks the stories of the first collection: `tfidf` or `bm25`; None: none.

    Returns:
        A `Retrieval`: recall@1 and @10, MRR and nDCG@10 with 95 % intervals and paired tests: `.table()`, `.answers()`,
        `.confound_table()`, `.plot()`, `.write(folder)`.

    Raises:
        DataError: if stories or judgments can't be read, no story has another version, or a judged story is missing.
        OptionError: if there is no such column, or not exactly one of `qrels` and `same` is given.

    >>> import pandas as pd
    >>> texts = ["A wolf eats a girl.", "A wolf eats a grandmother.", "A hare loses a race.", "A fox wins a race."]
    >>> tales = pd.DataFrame({"text": texts, "type": ["wolf", "wolf", "race", "race"]})
    >>> result = retrieval(tales, same="type", measures=["cosine"])
    >>> result.record["measures"]["cosine"]["recall@1"]
    1.0
    """
    if (qrels is None) == (same is None):
        raise OptionError("give either `same`, a column of the stories, or `qrels`, relevance judgments")
    collections = stories if isinstance(stories, Mapping) else {"": collection_of(stories)}
    if same is not None:
        if queries is not None:
            raise OptionError("`queries` need relevance judgments: give `qrels` instead of `same`")
        return _versions_retrieval(collections, same, measures, control, baseline)
    if control is not None:
        raise OptionError("`control` needs versions: give `same` instead of `qrels`")
    file: str | None = None
    if isinstance(qrels, str | Path):
        file = str(qrels)
        qrels = read_qrels(file)
    named_queries = {next(iter(collections)): queries} if isinstance(queries, Collection) else queries
    return _judged_retrieval(collections, qrels or {}, named_queries, measures, baseline, file)


def collection_of(stories: Collection | str | Path | pd.DataFrame | Sequence[str]) -> Collection:
    """Return a collection, or create one from a file, folder, index, table or texts."""
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
        own_queries = None if queries is None else queries[name]
        relevance = _relevance(qrels, own_queries, collection)
        title = name if len(collections) > 1 else ""
        for system in systems_of(collection, title, measures, own_queries):
            values[system.name] = relevance.metrics(system.score)
    first = next(iter(collections))
    if baseline is not None:
        own_queries = None if queries is None else queries[first]
        relevance = _relevance(qrels, own_queries, collections[first])
        system = lexical_system(collections[first], baseline, own_queries)
        values[system.name] = relevance.metrics(system.score)
    systems = compare_systems(values, np.arange(len(qrels)))
    stop_words = stop_words_of(collections[first].frame["text"].tolist())
    return Retrieval(systems, [*qrels], len(collections[first]), file, None, {}, stop_words)


def _relevance(qrels: Qrels, queries: Collection | None, collection: Collection) -> Relevance:
    """Find the rows of queries and relevant stories in their collections."""
    query_ids = None if queries is None else queries.frame["id"].tolist()
    return Relevance.of_qrels(qrels, query_ids, collection.frame["id"].tolist())


def systems_of(
    collection: Collection, name: str, measures: Sequence[MeasureName] | None, queries: Collection | None = None
) -> Iterator[System]:
    """Fit measures on a collection, one after the other.

    Args:
        collection: N stories.
        name: name of the collection, which precedes that of the measure; empty for a single collection.
        measures: names of the measures; None: the measure of the collection.
        queries: queries to compare with the stories; None: the stories.
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
    """Compare the queries in `rows` (B,) with all stories, (B, N)."""
    return similarities.of_queries(queries.take(rows))


def lexical_system(collection: Collection, kind: Lexical, queries: Collection | None = None) -> System:
    """Compare words of the queries, or of the stories if there are no queries, with those of the stories."""
    texts = collection.frame["text"].tolist()
    query_texts = texts if queries is None else queries.frame["text"].tolist()
    query_vectors, vectors = lexical_vectors(kind, query_texts, texts)
    return System(kind, lambda rows: (query_vectors[rows] @ vectors.T).toarray())


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
            raise DataError(
                f"{other.about['source']} has other stories than {first.about['source']}, or a different order"
            )
    return rank_versions(_similarities(collections, measures, baseline), versioned_stories(first, same, control))


def versioned_stories(collection: Collection, same: str, control: str | None = None) -> VersionedStories:
    """Find the versions among N stories by a column.

    Raises:
        DataError: if no story has another version.
        OptionError: if there is no such column.
    """
    values = _column_texts(collection, "same", same)
    controls = [] if control is None else _column_texts(collection, "control", control)
    if not len(Versions(values).queries):
        raise DataError(f"`same={same}`: no two stories of {collection.about['source']} have the same value")
    ids, texts = collection.frame["id"].tolist(), collection.frame["text"].tolist()
    return VersionedStories(ids, texts, same, values, control, controls)


def _similarities(
    collections: Mapping[str, Collection], measures: Sequence[MeasureName] | None, baseline: Lexical | None
) -> Iterator[tuple[str, Floats]]:
    """Yield the similarities (N, N) of all stories by each system."""
    for name, collection in collections.items():
        rows = np.arange(len(collection))
        title = name if len(collections) > 1 else ""
        for system in systems_of(collection, title, measures):
            yield system.name, system.score(rows)
    if baseline is not None:
        first = next(iter(collections.values()))
        yield baseline, lexical_system(first, baseline).score(np.arange(len(first)))


def _column_texts(collection: Collection, parameter: str, name: str) -> list[Any]:
    """Return the values (N,) of a column, as text; None for an empty cell.

    Raises:
        OptionError: if there is no such column.
    """
    values = column_values(collection, name, parameter)
    return [None if value is None else str(value) for value in values]
