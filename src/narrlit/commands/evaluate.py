"""narrlit evaluate: accuracy on labeled triples."""

from typing import Annotated

from narrlit.console import print_result, say
from narrlit.files import Output
from narrlit.options import Baseline, LabelOptions, ModelOptions, ScorerOptions, StoryOptions


def evaluate(
    triples: str,
    *,
    use: ModelOptions,
    read: StoryOptions,
    given: LabelOptions,
    baseline: Baseline | None = None,
    scoring: ScorerOptions,
    json: bool = False,
    out: Annotated[str | None, Output.folder("evaluate.json", "evaluate.md", "answers.csv")] = None,
) -> None:
    """Evaluate a model or a baseline on labeled triples: accuracy, n and a 95 % Wilson interval.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        use: the model.
        read: what it reads of their stories.
        given: the triples' labels.
        baseline: evaluate a baseline in place of a model.
        scoring: similarity of stories.
        json: print one JSON object, and nothing else, to stdout.
        out: folder for evaluate.json and .md, and answers.csv with the scores and margin of each triple.
    """
    from narrlit.commands.systems import model_or_baseline
    from narrlit.experiments.evaluation import evaluate as evaluate_system

    system = model_or_baseline(use, read, scoring, baseline)
    result = evaluate_system(triples, system, labels=given.labels, strict=given.strict, progress=True)
    if out is not None:
        result.write(out)
        say(f"{out}: evaluate.json, .md, and answers.csv")
    print_result(result, json)
