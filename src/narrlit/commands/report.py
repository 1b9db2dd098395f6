"""narrlit report: what systems answered, as one HTML file."""

from pathlib import Path
from typing import Annotated, Literal

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.options import ComparedTripleOptions, LoadOptions, StoryOptions, listed


def report(
    runs: tuple[str, ...],
    *,
    triples: str | None = None,
    use: LoadOptions,
    read: StoryOptions,
    given: ComparedTripleOptions,
    by: str = "overlap,length",
    projection: Literal["auto", "umap", "pca"] = "auto",
    out: Annotated[str, Output()],
) -> None:
    """Write a report of runs or other systems: accuracy, training, maps, distances, errors and data, in one HTML file.

    Args:
        runs: runs, models, baselines or files of answers, as `narrlit compare --models` takes them; differences are
            taken from the first.
        triples: labeled triples; by default those that the first run was validated by.
        use: how models are loaded.
        read: what models read of the stories.
        given: the triples' labels, and what vectors and submissions are of.
        by: accuracy by quartile of overlap (of words) or length, or by a column of the triples' file; several with
            commas between.
        projection: of embeddings to the plane; auto is UMAP where it is installed and there are 60 stories.
        out: the HTML file.
    """
    from narrlit.commands.systems import named_systems
    from narrlit.experiments.system_report import report as write_report

    if Path(out).suffix not in (".html", ".htm"):
        raise OptionError(f"--out {out}: a report is an .html file")
    systems = named_systems(runs, use, read)
    result = write_report(systems, triples, by=listed(by), **vars(given), projection=projection, progress=True)
    result.write(out)
    say(f"{out}: {len(result.html) / 1e6:.1f} MB")
