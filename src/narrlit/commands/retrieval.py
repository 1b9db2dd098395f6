"""narrlit retrieval: evaluate how high a collection ranks relevant stories, such as versions of the same tale."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import narrlit
from narrlit.arguments import Deferred
from narrlit.commands import opening
from narrlit.console import print_result, say
from narrlit.data.rows import Layout
from narrlit.files import Output
from narrlit.library.options import index_at
from narrlit.measures.names import check_measure

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder
    from narrlit.library.collection import Collection


def retrieval(  # noqa: PLR0913 (options)
    stories: str,
    *,
    same: str | None = None,
    measure: Sequence[str] = (),
    control: str | None = None,
    qrels: str | None = None,
    queries: str | None = None,
    baseline: Literal["tfidf", "bm25"] = "tfidf",
    json: bool = False,
    out: Annotated[str | None, Output.result("retrieval")] = None,
    encoder: "Deferred[StoryEncoder]",
    layout: Layout = Layout(),
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
        encoder: the model that embeds the stories, if they are not an index.
        layout: how files of stories are read.
    """
    measures = [check_measure(name) for name in measure]
    sources = [source.strip() for source in stories.split(",") if source.strip()]
    collections = read_collections(sources, encoder, layout, queries is not None)
    query_collections = None if queries is None else read_queries(queries, collections, layout)
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


def read_collections(
    sources: Sequence[str], encoder: "Deferred[StoryEncoder]", layout: Layout, with_queries: bool
) -> "dict[str, Collection]":
    """Read collections, keyed by system name: the model, or the source if several sources have the same model.

    Args:
        sources: indexes, files or folders.
        encoder: the model for sources that are not indexes.
        layout: how files are read; refused if no file is read.
        with_queries: a file of queries is read too, with the same layout.
    """
    reads_files = with_queries or not all(map(index_at, sources))
    collections: dict[str, Collection] = {}
    for source in sources:
        # If files are read, an index ignores the options that apply to them.
        ignores_files = reads_files and index_at(source)
        collection = opening.collection(source, encoder=encoder, layout=Layout() if ignores_files else layout)
        model = str(collection.about["model"])
        collections[source if model in collections else model] = collection
    return collections


def read_queries(path: str, collections: "Mapping[str, Collection]", layout: Layout) -> "dict[str, Collection]":
    """Read a file of queries for each collection, encoded in the same way as the collection."""
    queries = {}
    for system, collection in collections.items():
        queries[system] = narrlit.Collection.read(path, collection.encoder, layout=layout, progress=True)
    return queries
