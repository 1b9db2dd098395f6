"""narrlit retrieval: evaluate how high a collection ranks relevant stories, such as versions of the same tale."""

from typing import Annotated, Literal

import narrlit
from narrlit.commands.collections import read_collections, read_queries
from narrlit.commands.options import ModelOptions, StoryOptions, listed
from narrlit.console import print_result, say
from narrlit.data.rows import Layout
from narrlit.files import Output
from narrlit.measures.names import check_measure


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
    out: Annotated[str | None, Output.result("retrieval")] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
) -> None:
    """Evaluate how high relevant stories are ranked: other versions of each story, or the answers to queries.

    The result is recall@1, recall@10, MRR and nDCG@10 with 95 % intervals, next to those of a lexical baseline.

    Args:
        stories: the stories to rank: an index, or stories as `narrlit embed` reads them; or several collections,
            comma-separated, each compared with the first.
        same: column, such as tale type, work or author, in which versions of the same story have the same value.
        measure: measure of similarity: passages, fused, csls, centered, cosine or lexical; or several, comma-separated,
            each compared with the first; default: passages.
        control: column of a confounder, such as book or translator, that may make versions similar; the permutation
            test permutes --same within its values.
        qrels: file of relevance judgments, used instead of --same: query-id, corpus-id and score separated by tabs, or
            the four columns of TREC.
        queries: file of queries for --qrels; default: the queries are ids of the ranked stories.
        baseline: lexical baseline, which ranks the stories of the first collection.
        json: print one JSON object to stdout, and nothing else.
        out: folder for the result (retrieval.json, .csv, .md, .tex and .svg) and answers.csv, which lists the metrics
            of each query.
        loading: the model that embeds the stories, if they are not an index; default: narrlit-mini.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files of stories.
    """
    measures = [check_measure(name) for name in listed(measure)]
    collections = read_collections(listed(stories), loading, reading, files, queries is not None)
    query_collections = None if queries is None else read_queries(queries, collections, files)
    result = narrlit.retrieval(
        collections,
        qrels,
        same=same,
        measures=measures or None,
        control=control,
        queries=query_collections,
        baseline=baseline,
    )
    if out is not None:
        result.write(out)
        say(f"{out}: retrieval.json, .csv, .md, .tex, .svg, and answers.csv")
    print_result(result, json)
