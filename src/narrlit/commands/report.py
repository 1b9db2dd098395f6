"""narrlit report: write a report on systems and their answers as one HTML file."""

from typing import Annotated

import narrlit
from narrlit.commands.options import ComparedTripleOptions, LoadOptions, StoryOptions, listed
from narrlit.commands.systems import open_systems
from narrlit.console import say
from narrlit.experiments.options import ProjectionMethod
from narrlit.files import PAGE_SUFFIXES, Output


def report(  # noqa: PLR0913 (options)
    runs: tuple[str, ...],
    *,
    triples: str | None = None,
    loading: LoadOptions,
    reading: StoryOptions,
    labels: ComparedTripleOptions,
    by: str = "overlap,length",
    projection: ProjectionMethod = "auto",
    margin: float | None = None,
    out: Annotated[str, Output(suffixes=PAGE_SUFFIXES)],
) -> None:
    """Write a report on runs or other systems to one HTML file: accuracy, training, maps, distances, errors and data.

    Args:
        runs: runs, models, baselines or files of answers, as in `narrlit compare --models`; each is compared with the
            first.
        triples: labeled triples; default: the validation triples of the first run.
        loading: how models are loaded.
        reading: how the models read a story: views, pseudonyms, fusion and post-processing.
        labels: labels of the triples, and the stories and track of embeddings and submissions.
        by: comma-separated breakdowns of the accuracy: by quartile of overlap (of words) or length, or by a column of
            the file of triples.
        projection: projection of the embeddings to two dimensions; auto is UMAP if it is installed and there are at
            least 60 stories.
        margin: cosine distance by which the closer candidate of a triple must be nearer for its triangle on the map to
            be green; default: the triangles of right answers are green.
        out: HTML file to write.
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
        margin=margin,
        progress=True,
    )
    result.write(out)
    say(f"{out}: {len(result.html) / 1e6:.1f} MB")
