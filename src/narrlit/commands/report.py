"""narrlit report: what systems answered, as one HTML file."""

from typing import Annotated

import narrlit
from narrlit.commands.options import ComparedTripleOptions, LoadOptions, StoryOptions, listed
from narrlit.commands.systems import open_systems
from narrlit.console import say
from narrlit.experiments.options import Projection
from narrlit.files import PAGE_SUFFIXES, Output


def report(
    runs: tuple[str, ...],
    *,
    triples: str | None = None,
    loading: LoadOptions,
    reading: StoryOptions,
    labels: ComparedTripleOptions,
    by: str = "overlap,length",
    projection: Projection = "auto",
    out: Annotated[str, Output(suffixes=PAGE_SUFFIXES)],
) -> None:
    """Write a report of runs or other systems: accuracy, training, maps, distances, errors and data, in one HTML file.

    Args:
        runs: runs, models, baselines or files of answers, as `narrlit compare --models` takes them; differences are
            taken from the first.
        triples: labeled triples; by default those that the first run was validated by.
        loading: how models are loaded.
        reading: what models read of the stories.
        labels: of the triples, and what vectors and submissions are of.
        by: accuracy by quartile of overlap (of words) or length, or by a column of the triples' file; several with
            commas between.
        projection: of the embeddings to the plane; auto is UMAP if it is installed and there are 60 stories.
        out: the HTML file.
    """
    result = narrlit.report(
        open_systems(runs, loading, reading),
        triples,
        by=listed(by),
        labels=labels.labels,
        strict=labels.strict,
        stories=labels.stories,
        track=labels.track,
        projection=projection,
        progress=True,
    )
    result.write(out)
    say(f"{out}: {len(result.html) / 1e6:.1f} MB")
