"""narrlit report: what systems answered, as one HTML file."""

from functools import partial
from typing import Annotated

from narrlit.commands.options import ComparedTripleOptions, LoadOptions, StoryOptions, listed
from narrlit.console import say
from narrlit.experiments.html_report import Projection
from narrlit.experiments.system_report import report as report_systems
from narrlit.experiments.systems import open_systems
from narrlit.files import Output
from narrlit.pages import PAGE_SUFFIXES


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
    result = report_systems(
        open_systems(runs, partial(reading.load, loading=loading), texts=reading.texts),
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
