"""narrlit evaluate: accuracy on labeled triples, or retrieval of relevant stories."""

import json as json_format
from typing import TYPE_CHECKING, Annotated, Literal

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import InputOptions, LabelOptions, ModelOptions, StoryOptions

if TYPE_CHECKING:
    from narrlit.experiments.evaluation import Evaluation
    from narrlit.experiments.retrieval_report import Retrieval

Scorer = Literal["cosine", "meanmax"]


def evaluate(  # noqa: PLR0913 (options)
    triples: str,
    *,
    use: ModelOptions,
    read: StoryOptions,
    given: LabelOptions,
    inputs: InputOptions,
    baseline: Literal["random", "jaccard", "tfidf", "longer", "bm25"] | None = None,
    scorer: Scorer = "cosine",
    meanmax: MeanMax,
    retrieval: str | None = None,
    queries: str | None = None,
    json: bool = False,
    out: Annotated[str | None, Output.folder("evaluate.json", "evaluate.md", "answers.csv")] = None,
) -> None:
    """Evaluate a model or a baseline on labeled triples: accuracy, n and a 95 % Wilson interval.

    With --retrieval, evaluate how high collections rank relevant stories: nDCG@10, MRR, recall@1 and @10.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer; with --retrieval, relevance
            judgments: query-id, corpus-id and score with tabs between, or TREC's four columns.
        use: the model.
        read: what it reads of their stories.
        given: the triples' labels.
        inputs: the files of stories of --retrieval and --queries.
        baseline: evaluate a baseline in place of a model; with --retrieval beside it, tfidf or bm25.
        scorer: similarity of stories, by the cosine of their embeddings, or sentence by sentence (meanmax).
        meanmax: settings of the scorer meanmax.
        retrieval: an index, or a file or folder of stories, to rank; several with commas between.
        queries: file of the queries of --retrieval; by default queries are ids of the ranked stories.
        json: print one JSON object, and nothing else, to stdout.
        out: folder for evaluate.json and .md, and answers.csv with the scores and margin of each triple, or
            the measures of each query.
    """
    if retrieval is not None:
        if baseline not in (None, "tfidf", "bm25") or scorer != "cosine" or given != LabelOptions():
            raise OptionError("--retrieval takes --baseline tfidf or bm25, and no --scorer, --labels or --strict")
        from narrlit.commands.collections import read_systems
        from narrlit.experiments.retrieval_report import retrieval as measure_retrieval

        collections, asked = read_systems(retrieval, queries, use, read, inputs)
        _report(measure_retrieval(collections, triples, queries=asked, baseline=baseline), json, out)
        return
    if queries is not None or baseline == "bm25" or inputs != InputOptions():
        raise OptionError("--queries, --baseline bm25 and options of columns need --retrieval")
    if (use.model is None) == (baseline is None):
        raise OptionError("give one of --model and --baseline")
    if scorer != "cosine" and baseline is not None:
        raise OptionError(f"--scorer {scorer} needs a model: give --model in place of --baseline")
    if scorer != "meanmax" and meanmax != MeanMax():
        raise OptionError("--reading, --gamma, --windows and --tau need --scorer meanmax")
    if baseline is not None and (read.reads_views or read.fusion is not None or read.postprocess is not None):
        raise OptionError("--views, --missing-views, --fusion and --postprocess need --model")
    from narrlit.commands.systems import measure
    from narrlit.experiments.evaluation import evaluate as evaluate_system
    from narrlit.measures import Lexical, Similarity

    system: Similarity
    if baseline is not None:
        system = Lexical(baseline, read.texts)
    else:
        system = measure(read.load(str(use.model), use), scorer, meanmax)
    _report(evaluate_system(triples, system, labels=given.labels, strict=given.strict, progress=True), json, out)


def _report(result: "Evaluation | Retrieval", json: bool, out: str | None) -> None:
    """Write the result, if wanted, and print it."""
    if out is not None:
        result.write(out)
        say(f"{out}: evaluate.json, .md, and answers.csv")
    print(json_format.dumps(result.record) if json else result)
