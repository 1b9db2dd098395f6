"""narrlit evaluate: accuracy over labelled triples."""

import json as json_format
from typing import TYPE_CHECKING, Literal

from narrlit.commands.devices import Device, pick_device, say, say_truncated
from narrlit.data.readers import read_triples
from narrlit.data.records import Triple
from narrlit.errors import OptionError

if TYPE_CHECKING:
    from narrlit.metrics.triples import AccuracySummary


def evaluate(  # noqa: PLR0913 - each parameter is an option of the command line
    triples: str,
    *,
    model: str | None = None,
    baseline: Literal["random", "jaccard", "tfidf", "longer"] | None = None,
    labels: str | None = None,
    strict: bool = False,
    max_length: int | None = None,
    device: Device = "auto",
    json: bool = False,
    trust_remote_code: bool = False,
) -> None:
    """Judge labelled triples by a model's cosines or a baseline, and print accuracy, n and a 95 % Wilson interval.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        model: a folder, a run directory, a checkpoint, a hub id or minilm.
        baseline: judge without a model.
        labels: file of text_a_is_closer, where labels stand apart from stories.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
        max_length: tokens of a story that are read; as the model says if not given.
        device: where to compute.
        json: print one JSON object, and nothing else, to stdout.
        trust_remote_code: run Python files that come with the model.
    """
    if (model is None) == (baseline is None):
        raise OptionError("give one of --model and --baseline")
    reading = read_triples(triples, labels=labels, strict=strict)
    unlabelled = sum(triple.a_is_closer is None for triple in reading.records)
    if unlabelled:
        rows = f"{unlabelled} {'row' if unlabelled == 1 else 'rows'} without a label"
        if labels is None:
            raise OptionError(f"{triples} has {rows}: give --labels FILE")
        raise OptionError(f"{labels} has {rows}: write true or false in each")
    say(reading.summary())
    cut = 0
    if baseline is not None:
        from narrlit.metrics.baselines import BASELINES

        scores = BASELINES[baseline](reading.records)
    else:
        from narrlit.models.embedding import cosine_scores
        from narrlit.models.source import load_encoder

        encoder = load_encoder(str(model), trust_remote_code, max_length).to(pick_device(device))
        scores, cut = cosine_scores(encoder, reading.records)
        say_truncated(cut, encoder.max_length)
    found = summarize(scores, reading.records)
    if json:
        extra = {"dropped": reading.dropped, "truncated": cut, "model": model or baseline, "triples": str(triples)}
        print(json_format.dumps({**found.as_dict(), **extra}))
    else:
        print(f"{model or baseline}: accuracy {found}, {found.ties} ties")


def summarize(scores: list[tuple[float, float]], triples: list[Triple]) -> "AccuracySummary":
    """Accuracy of scores (of A, of B) against the triples' labels."""
    import torch

    from narrlit.metrics.triples import TripleAccuracy

    metric = TripleAccuracy()
    a, b = torch.tensor(scores, dtype=torch.float64).unbind(1)
    metric.update(a, b, torch.tensor([bool(triple.a_is_closer) for triple in triples]))
    return metric.summary()
