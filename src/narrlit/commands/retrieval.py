"""narrlit retrieval: evaluate how high a collection ranks relevant stories, such as versions of the same tale."""

from typing import Annotated, Literal

import narrlit
from narrlit.commands.collections import read_collections, read_queries
from narrlit.commands.options import InputOptions, ModelOptions, StoryOptions, listed
from narrlit.console import print_result, say
from narrlit.files import Output
from narrlit.metrics.names import check_measure


def retrieval(  # noqa: PLR0913 (options)
    stories: str,
    *,
    same: str | None = None,
    measure: str | None = None,
    control: str | None = None,
    qrels: str | None = None,
    queries: str | None = None,
    baseline: Literal["tfidf", "bm25"] = "tfidf",
    json: bool = False,
    out: Annotated[str | None, Output.folder("retrieval.json", "retrieval.md", "answers.csv")] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
) -> None:
    """Evaluate how high relevant stories are ranked: other versions of each story, or the answers to queries.

    The result is recall@1, recall@10, MRR and nDCG@10 with 95 % intervals, next to those of TF-IDF.

    Args:
        stories: an index, or stories as `narrlit embed` reads them, to rank; several with commas between, which are
            compared with the first.
        same: column, such as tale type, work or author; stories with the same value are versions of each other.
        measure: passages, fused, csls, centered, cosine or lexical, or several with commas between, which are compared
            with the first; by default passages.
        control: column, such as book or translator, that may make versions alike; values are permuted within it.
        qrels: in place of --same, relevance judgments: query-id, corpus-id and score with tabs between, or TREC's four
            columns.
        queries: file of the queries of --qrels; by default they are ids of the ranked stories.
        baseline: also rank the stories of the first collection by their words.
        json: print one JSON object, and nothing else, to stdout.
        out: folder for retrieval.json and .md, and answers.csv with the figures of each query.
        loading: the model, where the stories are no index; narrlit-mini if none is named.
        reading: what it reads of a story.
        files: files of stories.
    """
    measures = [check_measure(name) for name in listed(measure)]
    collections = read_collections(listed(stories), loading, reading, files, queries is not None)
    asked = None if queries is None else read_queries(queries, collections, files)
    result = narrlit.retrieval(
        collections, qrels, same=same, measures=measures or None, control=control, queries=asked, baseline=baseline
    )
    if out is not None:
        result.write(out)
        say(f"{out}: retrieval.json, .md, and answers.csv")
    print_result(result, json)
