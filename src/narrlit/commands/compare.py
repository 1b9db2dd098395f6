"""narrlit compare: compare systems on the same labeled triples by paired tests."""

from typing import Annotated

import narrlit
from narrlit.commands.options import ComparedTripleOptions, LoadOptions, StoryOptions, listed
from narrlit.commands.systems import SystemOptions
from narrlit.console import say
from narrlit.data.schema import Track
from narrlit.files import Output
from narrlit.measures.meanmax import MeanMax


def compare(  # noqa: PLR0913 (options)
    triples: str,
    *,
    systems: SystemOptions,
    loading: LoadOptions,
    reading: StoryOptions,
    labels: ComparedTripleOptions,
    meanmax: MeanMax,
    by: str | None = None,
    board: Track | None = None,
    out: Annotated[str | None, Output.result("compare")] = None,
) -> None:
    """Compare systems with the first one named, on the same labeled triples, by paired tests.

    Embeddings are cached in runs/embeddings, so that a repeated comparison loads no model.

    Args:
        triples: JSON Lines or CSV of anchor_text, text_a, text_b and text_a_is_closer.
        systems: the systems to compare.
        loading: how models are loaded.
        reading: how the models read a story: views, pseudonyms, fusion and post-processing.
        labels: labels of the triples, and the stories and track of embeddings and submissions.
        meanmax: settings of Mean-Max.
        by: comma-separated breakdowns of the accuracy: by quartile of overlap (of words), length or margin, or by a
            column of the file of triples.
        board: place the systems among the teams of SemEval-2026 Task 4, in Track A (a) or Track B (b); only for the 400
            test triples of the track.
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
        board=board,
        progress=True,
    )
    if out is not None:
        result.write(out)
        say(f"{out}: compare.json, .csv, .md, .tex, .svg, and answers.csv")
    print(result)
