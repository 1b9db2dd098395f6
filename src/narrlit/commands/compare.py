"""narrlit compare: systems on the same labeled triples, with paired tests."""

from typing import Annotated

import narrlit
from narrlit.commands.options import ComparedTripleOptions, LoadOptions, StoryOptions, listed
from narrlit.commands.systems import SystemOptions
from narrlit.console import say
from narrlit.files import Output
from narrlit.metrics.meanmax import MeanMax

FILES = ("compare.json", "compare.csv", "compare.md", "compare.tex", "compare.svg", "answers.csv")


def compare(
    triples: str,
    *,
    systems: SystemOptions,
    loading: LoadOptions,
    reading: StoryOptions,
    labels: ComparedTripleOptions,
    meanmax: MeanMax,
    by: str | None = None,
    out: Annotated[str | None, Output.folder(*FILES)] = None,
) -> None:
    """Compare systems with the first of them, on the same labeled triples, by paired tests.

    Embeddings are kept in runs/embeddings, so that a repeated comparison loads no model.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        systems: what is compared.
        loading: how models are loaded.
        reading: what they read of stories.
        labels: of the triples, and what vectors and submissions are of.
        meanmax: settings of Mean-Max.
        by: also the accuracy by quartile of overlap (of words), length or margin, or by a column of the triples' file;
            several with commas between.
        out: folder for the report (compare.json, .csv, .md, .tex, .svg) and answers.csv.
    """
    result = narrlit.compare(
        triples,
        systems.open(loading, reading, meanmax),
        by=listed(by),
        labels=labels.labels,
        strict=labels.strict,
        stories=labels.stories,
        track=labels.track,
        progress=True,
    )
    if out is not None:
        result.write(out)
        say(f"{out}: compare.json, .csv, .md, .tex, .svg, and answers.csv")
    print(result)
