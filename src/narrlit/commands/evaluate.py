"""narrlit evaluate: accuracy on labelled triples."""

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from narrlit.console import say, say_truncated
from narrlit.data.records import Triple
from narrlit.data.rows import file_digest
from narrlit.errors import ModelError, OptionError
from narrlit.metrics.scorers import MeanMax
from narrlit.options import LabelOptions, ModelOptions, StoryOptions, find_model, seen_in_training

if TYPE_CHECKING:
    from narrlit.metrics.triples import AccuracySummary
    from narrlit.models.view_encoder import AnyEncoder

Scorer = Literal["cosine", "meanmax"]
Scores = list[tuple[float, float]]


def evaluate(
    triples: str,
    *,
    use: ModelOptions,
    read: StoryOptions,
    given: LabelOptions,
    baseline: Literal["random", "jaccard", "tfidf", "longer"] | None = None,
    scorer: Scorer = "cosine",
    meanmax: MeanMax,
    json: bool = False,
) -> None:
    """Evaluate a model or a baseline on labelled triples: accuracy, n and a 95 % Wilson interval.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        use: the model.
        read: what it reads of their stories.
        given: the triples' labels.
        baseline: evaluate a baseline in place of a model.
        scorer: similarity of stories, by the cosine of their embeddings, or sentence by sentence (meanmax).
        meanmax: settings of the scorer meanmax.
        json: print one JSON object, and nothing else, to stdout.
    """
    if (use.model is None) == (baseline is None):
        raise OptionError("give one of --model and --baseline")
    if scorer != "cosine" and baseline is not None:
        raise OptionError(f"--scorer {scorer} needs a model: give --model in place of --baseline")
    if scorer != "meanmax" and meanmax != MeanMax():
        raise OptionError("--reading, --gamma, --windows and --tau need --scorer meanmax")
    if baseline is not None and (read.reads_views or read.fusion is not None):
        raise OptionError("--views, --missing-views and --fusion need --model")
    reading = given.read(triples)
    say(reading.summary())
    prepared = read.triples(reading.records)
    record: dict[str, Any] = {}
    truncated = 0
    name = use.model or baseline
    seen = None
    if baseline is not None:
        from narrlit.metrics.baselines import BASELINES

        scores = BASELINES[baseline](prepared)
    else:
        seen = seen_in_training(find_model(str(use.model)), file_digest(triples))
        if seen is not None:
            say(f"warning: {use.model} was {seen}")
        scores, truncated, record = _model_scores(read.encoder(use), scorer, meanmax, prepared)
        name = f"{name}, meanmax ({meanmax.reading})" if scorer == "meanmax" else name
    summary = summarize(scores, reading.records)
    if json:
        about = {"dropped": reading.dropped, "truncated": truncated, "model": use.model or baseline, "triples": triples}
        flags = {} if seen is None else {"seen_in_training": seen}
        print(json_format.dumps({**summary.as_dict(), **about, **record, **flags, **read.record()}))
    else:
        print(f"{name}: accuracy {summary}, {summary.ties} ties{'' if seen is None else f'; {seen}'}")


def _model_scores(
    encoder: "AnyEncoder", scorer: Scorer, meanmax: MeanMax, triples: list[Triple]
) -> tuple[Scores, int, dict[str, Any]]:
    """Scores of A and B, number of truncated texts, and the scorer's settings for the record."""
    from narrlit.models.embedding import cosine_scores

    if scorer == "cosine":
        scores, truncated = cosine_scores(encoder, triples)
        by_role = encoder.prompt("anchor") != encoder.prompt("candidate")  # a story in both roles counts twice
        pieces = [f"{piece} with its prompt" if by_role else piece for piece in encoder.pieces]
        say_truncated(truncated, encoder.max_length, *pieces)
        return scores, truncated, {"scorer": scorer}
    from narrlit.metrics.meanmax import meanmax_scores

    result = meanmax_scores(encoder, triples, meanmax)
    say_truncated(result.truncated, encoder.max_length, "sentence", "sentences")
    say(f"windows decided {result.aligned} of {len(triples)} triples, whose scores differed by {meanmax.gamma} or less")
    return result.scores, result.truncated, {"scorer": scorer, **asdict(meanmax), "aligned": result.aligned}


def summarize(scores: Scores, triples: list[Triple]) -> "AccuracySummary":
    """Compute the accuracy of scores (of A, of B) against the triples' labels.

    Raises:
        ModelError: for scores that are not finite.
    """
    import torch

    from narrlit.metrics.triples import TripleAccuracy

    metric = TripleAccuracy()
    a, b = torch.tensor(scores, dtype=torch.float64).unbind(1)
    bad = int((~(a.isfinite() & b.isfinite())).sum())
    if bad:
        raise ModelError(
            f"the scores of {bad} of {len(triples)} triples are NaN or infinite; the model's weights are broken"
        )
    metric.update(a, b, torch.tensor([bool(triple.a_is_closer) for triple in triples]))
    return metric.summary()
