"""narrlit evaluate: measure accuracy on labeled triples."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LabelOptions, ModelOptions, ScorerOptions, StoryOptions
from narrlit.commands.systems import model_or_baseline
from narrlit.console import print_result, say
from narrlit.files import Output
from narrlit.metrics.names import BaselineName


def evaluate(
    triples: str,
    *,
    loading: ModelOptions,
    reading: StoryOptions,
    labels: LabelOptions,
    baseline: BaselineName | None = None,
    scoring: ScorerOptions,
    json: bool = False,
    out: Annotated[str | None, Output.folder("evaluate.json", "evaluate.md", "answers.csv")] = None,
) -> None:
    """Evaluate a model or a baseline on labeled triples: accuracy, number of triples and 95 % Wilson interval.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        loading: the model.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        labels: labels of the triples.
        baseline: lexical baseline to evaluate instead of a model.
        scoring: measure of similarity.
        json: print one JSON object to stdout, and nothing else.
        out: folder for evaluate.json, evaluate.md and answers.csv, which lists the scores and the margin of each
            triple.
    """
    system = model_or_baseline(loading, reading, scoring, baseline)
    result = narrlit.evaluate(triples, system, labels=labels.labels, strict=labels.strict, progress=True)
    if out is not None:
        result.write(out)
        say(f"{out}: evaluate.json, .md, and answers.csv")
    print_result(result, json)
