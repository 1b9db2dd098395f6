"""narrlit retrieval: how high collections rank relevant stories."""

from typing import Annotated, Literal

from narrlit.console import print_result, say
from narrlit.files import Output
from narrlit.options import InputOptions, ModelOptions, StoryOptions, listed


def retrieval(  # noqa: PLR0913 (options)
    stories: str,
    *,
    qrels: str,
    queries: str | None = None,
    baseline: Literal["tfidf", "bm25"] | None = None,
    json: bool = False,
    out: Annotated[str | None, Output.folder("retrieval.json", "retrieval.md", "answers.csv")] = None,
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
) -> None:
    """Evaluate how high collections rank relevant stories: nDCG@10, MRR, recall@1 and @10, with 95 % intervals.

    Args:
        stories: an index, or stories as `narrlit embed` reads them, to rank; several with commas between, which are
            compared with the first.
        qrels: relevance judgments: query-id, corpus-id and score with tabs between, or TREC's four columns.
        queries: file of the queries; by default queries are ids of the ranked stories.
        baseline: also rank the stories of the first collection by their words.
        json: print one JSON object, and nothing else, to stdout.
        out: folder for retrieval.json and .md, and answers.csv with the measures of each query.
        use: the model, where the stories are no index; minilm if none is named.
        read: what it reads of a story.
        inputs: files of stories.
    """
    from narrlit.commands.collections import read_collections, read_queries
    from narrlit.experiments.retrieval_report import retrieval as measure_retrieval

    collections = read_collections(listed(stories), use, read, inputs, queries is not None)
    asked = None if queries is None else read_queries(queries, collections, inputs)
    result = measure_retrieval(collections, qrels, queries=asked, baseline=baseline)
    if out is not None:
        result.write(out)
        say(f"{out}: retrieval.json, .md, and answers.csv")
    print_result(result, json)
