"""`narrlit.retrieval`: how high measures rank versions of a story, or stories that are relevant to queries.

Letters in shapes: Q queries, N stories, B rows of a block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from narrlit.data.schema import Floats, IntArray, normal_form
from narrlit.errors import DataError, OptionError
from narrlit.experiments.relevance import (
    Qrels,
    Relevance,
    query_rows,
    ranking_differences,
    ranking_figures,
    read_qrels,
)
from narrlit.experiments.version_ranking import rank_versions
from narrlit.library.collection import Collection, column_values, measure_for
from narrlit.library.index import Index
from narrlit.library.options import index_at
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.names import MeasureName
from narrlit.measures.representations import Contents
from narrlit.results import Note, Result
from narrlit.statistics.words import WeightedBaseline, lexical_vectors, stop_words_of, stop_words_text

Scorer = Callable[[IntArray], Floats]
"""Function from rows of queries (B,) to similarities with all stories (B, N)."""


def retrieval(
    stories: Collection | Mapping[str, Collection] | str | Path | pd.DataFrame | Sequence[str],
    qrels: str | Path | Qrels | None = None,
    *,
    same: str | None = None,
    measures: Sequence[MeasureName] | None = None,
    control: str | None = None,
    queries: Collection | Mapping[str, Collection] | None = None,
    baseline: WeightedBaseline | None = "tfidf",
) -> Result:
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
        A `Result`: recall@1 and @10, MRR and nDCG@10 of each system with 95 % intervals, and paired tests. For
        versions, also the subsets `permuted within: STRATA` (the collection, length and the control), in which the
        values are permuted, `length: short` and `length: long`, and the skewness of hubs.

    Raises:
        DataError: if stories or judgments can't be read, no story has another version, or a judged story is missing.
        OptionError: if there is no such column, or not exactly one of `qrels` and `same` is given.

    >>> import pandas as pd
    >>> texts = ["A wolf eats a girl.", "A wolf eats a grandmother.", "A hare loses a race.", "A fox wins a race."]
    >>> tales = pd.DataFrame({"text": texts, "type": ["wolf", "wolf", "race", "race"]})
    >>> result = retrieval(tales, same="type", measures=["cosine"])
    >>> print(result.estimate("cosine", "recall@1"))
    1.000 [0.012, 1.000], n = 4
    """
    if (qrels is None) == (same is None):
        raise OptionError("same_or_qrels")
    if same is not None and queries is not None:
        raise OptionError("queries_need_qrels")
    if same is None and control is not None:
        raise OptionError("control_needs_same")
    if isinstance(stories, str | Path):
        stories = Index(stories).collection() if index_at(stories) else Collection.read(stories)
    if not isinstance(stories, Collection | Mapping):
        stories = Collection.of(stories)
    collections = {"": stories} if isinstance(stories, Collection) else stories
    if isinstance(queries, Collection):
        queries = {next(iter(collections)): queries}
    systems = _systems(collections, queries, measures, baseline)
    if same is not None:
        return _rank_versions(systems, collections, same, control)
    return _rank_judged(systems, collections, queries, qrels or {})


def _systems(
    collections: Mapping[str, Collection],
    queries: Mapping[str, Collection] | None,
    measures: Sequence[MeasureName] | None,
    baseline: WeightedBaseline | None,
) -> Iterator[tuple[str, str, Scorer]]:
    """Fit the measures of each collection, one after the other, then the baseline on the first collection.

    Yields:
        Name of the system, name of the collection that it ranks, and the function that compares queries (without
        queries: stories) with its stories.
    """
    for name, collection in collections.items():
        for measure in measures or [collection.measure]:
            chosen = measure_for(collection.encoder, measure)
            similarities = collection.similarities_by(chosen)
            score: Scorer = similarities.rows
            if queries is not None:
                score = partial(_score_queries, similarities, queries[name].contents(chosen))
            yield f"{name}, {chosen}" if len(collections) > 1 else chosen, name, score
    if baseline is not None:
        name, first = next(iter(collections.items()))
        texts = first.frame["text"].tolist()
        query_texts = texts if queries is None else queries[name].frame["text"].tolist()
        query_vectors, vectors = lexical_vectors(baseline, query_texts, texts)
        yield baseline, name, lambda rows: (query_vectors[rows] @ vectors.T).toarray()


def _score_queries(similarities: CollectionSimilarity, queries: Contents, rows: IntArray) -> Floats:
    """Compare the queries in `rows` (B,) with all stories, (B, N)."""
    return similarities.of_queries(queries.take(rows))


def _rank_versions(
    systems: Iterator[tuple[str, str, Scorer]], collections: Mapping[str, Collection], same: str, control: str | None
) -> Result:
    """Rank all stories for each story with another version; the collections must have the same stories."""
    first, *others = collections.values()
    stories = first.frame
    for other in others:
        if other.frame["text"].tolist() != stories["text"].tolist():
            raise DataError("other_stories", source=other.about["source"], first=first.about["source"])
    for option, column in (("same", same), ("control", control)):
        if column is not None:
            column_values(first, column, option)  # refuses an unknown column
    similarities = ((system, score(np.arange(len(stories)))) for system, _, score in systems)
    return rank_versions(similarities, stories, normal_form(same), None if control is None else normal_form(control))


def _rank_judged(
    systems: Iterator[tuple[str, str, Scorer]],
    collections: Mapping[str, Collection],
    queries: Mapping[str, Collection] | None,
    qrels: str | Path | Qrels,
) -> Result:
    """Rank the stories of each collection for judged queries."""
    judged = read_qrels(str(qrels)) if isinstance(qrels, str | Path) else qrels
    relevance = {}
    for name, collection in collections.items():
        query_ids = None if queries is None else queries[name].frame["id"].tolist()
        relevance[name] = Relevance.of_qrels(judged, query_ids, collection.frame["id"].tolist())
    values = {system: relevance[name].metrics(score) for system, name, score in systems}

    texts = next(iter(collections.values())).frame["text"].tolist()
    groups = np.arange(len(judged))
    counts = {"queries": len(judged), "stories": len(texts)}
    stop_words = stop_words_of(texts)
    return Result.of(
        "retrieval",
        ranking_figures(values, groups),
        ranking_differences(values, groups),
        answers=query_rows(list(judged), values),
        settings={"qrels": str(qrels) if isinstance(qrels, str | Path) else None, **counts, "stop_words": stop_words},
        notes=[Note.of("judgments", **counts), Note.of("stop_words", words=stop_words_text(stop_words))],
    )
