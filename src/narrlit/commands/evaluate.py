"""narrlit evaluate: accuracy on labeled triples, or retrieval of relevant stories."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from narrlit.console import say, say_truncated
from narrlit.data.rows import file_digest
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import InputOptions, LabelOptions, ModelOptions, StoryOptions, seen_in_training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from narrlit.data.schema import Triples
    from narrlit.models.encoder import Encoder

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
        from narrlit.experiments.retrieval_report import evaluate_retrieval

        _report(*evaluate_retrieval(retrieval, triples, queries, baseline, use, read, inputs), json, out)
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
    from narrlit.experiments.systems import SystemAnswers, answer_rows

    rows = given.read(triples)
    prepared = read.triples(rows)
    name = str(use.model or baseline)
    record: dict[str, Any] = {"model": name, "triples": triples, "dropped": rows.report.dropped if rows.report else {}}
    seen = None
    if baseline is not None:
        from narrlit.metrics.baselines import BASELINES

        scores = BASELINES[baseline](prepared.texts())
    else:
        seen = seen_in_training(name, file_digest(triples))
        if seen is not None:
            say(f"warning: {name} was {seen}")
            record["seen_in_training"] = seen
        scores, settings = _model_scores(read.encoder(use), scorer, meanmax, prepared)
        record |= settings
        name = f"{name}, meanmax ({meanmax.reading})" if scorer == "meanmax" else name
    kind: Literal["model", "baseline"] = "model" if baseline is None else "baseline"
    system = SystemAnswers.scored(name, kind, rows.labels == 1, scores)
    content = {**system.summary.as_dict(), "truncated": 0, **record, **read.record()}
    line = f"{name}: accuracy {system.summary}{'' if seen is None else f'; {seen}'}"
    line += "; transductive: post-processing was fitted on these stories" if content.get("transductive") else ""
    _report(content, f"{line}\n", answer_rows([system], rows), json, out)


def _report(content: dict[str, Any], markdown: str, answers: list[dict[str, Any]], json: bool, out: str | None) -> None:
    """Write the figures and the rows of answers, if wanted, and print the figures."""
    if out is not None:
        from narrlit.data.writers import write_table
        from narrlit.experiments.report import keep_report

        keep_report(Path(out), "evaluate", content, markdown)
        write_table(Path(out) / "answers.csv", answers)
        say(f"{out}: evaluate.json, .md, and answers.csv")
    print(json_format.dumps(content) if json else markdown.rstrip("\n"))


def _model_scores(
    encoder: "Encoder", scorer: Scorer, meanmax: MeanMax, triples: "Triples"
) -> tuple["NDArray[np.float64]", dict[str, Any]]:
    """Scores (N, 2) of A and B, and the scorer's settings and counts for the record."""
    from narrlit.metrics.meanmax import meanmax_scores
    from narrlit.models.embedding import score_triples

    if scorer == "cosine":
        scores, coverage = score_triples(encoder, triples)
        by_role = "" if encoder.symmetric else " with its prompt"  # a story in both roles counts twice
        say_truncated(coverage, encoder.max_length, *(unit + by_role for unit in encoder.unit))
        return scores, {"scorer": scorer, "long": encoder.long, **coverage.record}
    result = meanmax_scores(encoder, triples.texts(), meanmax)
    say_truncated(result.coverage, encoder.max_length, "sentence", "sentences")
    say(f"windows decided {result.aligned} of {len(triples)} triples, whose scores differed by {meanmax.gamma} or less")
    counts = {"aligned": result.aligned, "long": encoder.long, **result.coverage.record}
    return result.scores, {"scorer": scorer, **asdict(meanmax), **counts}
