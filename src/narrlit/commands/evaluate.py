"""narrlit evaluate: accuracy over labelled triples."""

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from narrlit.commands.devices import say, say_truncated
from narrlit.commands.labelled import LabelOptions
from narrlit.commands.model_options import ModelOptions
from narrlit.commands.story_options import StoryOptions
from narrlit.data.records import Triple
from narrlit.errors import OptionError
from narrlit.metrics.scorers import MeanMax

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
    """Judge labelled triples by a model or a baseline, and print accuracy, n and a 95 % Wilson interval.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        use: the model.
        read: what it reads of their stories.
        given: the triples' labels.
        baseline: judge without a model.
        scorer: how a model judges: by the cosine of whole stories' vectors, or sentence by sentence (meanmax).
        meanmax: settings of the scorer meanmax.
        json: print one JSON object, and nothing else, to stdout.
    """
    if (use.model is None) == (baseline is None):
        raise OptionError("give one of --model and --baseline")
    if scorer != "cosine" and baseline is not None:
        raise OptionError(f"--scorer {scorer} judges by a model: give --model in place of --baseline")
    if scorer != "meanmax" and meanmax != MeanMax():
        raise OptionError("--reading, --gamma, --windows and --tau need --scorer meanmax")
    if baseline is not None and (read.reads_views or read.fusion is not None):
        raise OptionError("--views, --missing-views and --fusion need --model")
    reading = given.read(triples)
    say(reading.summary())
    judged = read.triples(reading.records)
    record: dict[str, Any] = {}
    cut = 0
    name = use.model or baseline
    if baseline is not None:
        from narrlit.metrics.baselines import BASELINES

        scores = BASELINES[baseline](judged)
    else:
        scores, cut, record = _model_scores(read.encoder(use), scorer, meanmax, judged)
        name = f"{name}, meanmax ({meanmax.reading})" if scorer == "meanmax" else name
    found = summarize(scores, reading.records)
    if json:
        told = {"dropped": reading.dropped, "truncated": cut, "model": use.model or baseline, "triples": str(triples)}
        print(json_format.dumps({**found.as_dict(), **told, **record, **read.record()}))
    else:
        print(f"{name}: accuracy {found}, {found.ties} ties")


def _model_scores(
    encoder: "AnyEncoder", scorer: Scorer, meanmax: MeanMax, triples: list[Triple]
) -> tuple[Scores, int, dict[str, Any]]:
    """Scores of A and B, how many texts were cut, and what the record says of the scorer."""
    from narrlit.models.embedding import cosine_scores

    if scorer == "cosine":
        scores, cut = cosine_scores(encoder, triples)
        say_truncated(cut, encoder.max_length, *encoder.pieces)
        return scores, cut, {"scorer": scorer}
    from narrlit.metrics.meanmax import meanmax_scores

    found = meanmax_scores(encoder, triples, meanmax)
    say_truncated(found.truncated, encoder.max_length, "sentence", "sentences")
    say(f"windows decided {found.aligned} of {len(triples)} triples, whose scores differed by {meanmax.gamma} or less")
    return found.scores, found.truncated, {"scorer": scorer, **asdict(meanmax), "aligned": found.aligned}


def summarize(scores: list[tuple[float, float]], triples: list[Triple]) -> "AccuracySummary":
    """Accuracy of scores (of A, of B) against the triples' labels."""
    import torch

    from narrlit.metrics.triples import TripleAccuracy

    metric = TripleAccuracy()
    a, b = torch.tensor(scores, dtype=torch.float64).unbind(1)
    metric.update(a, b, torch.tensor([bool(triple.a_is_closer) for triple in triples]))
    return metric.summary()
