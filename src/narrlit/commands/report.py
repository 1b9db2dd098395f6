"""narrlit report: what systems answered, as one HTML file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output, atomic_path
from narrlit.options import LabelOptions, LoadOptions, StoryOptions, SubmissionOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrlit.data.schema import Triples
    from narrlit.experiments.html_report import Run


def report(  # noqa: PLR0913 (options)
    runs: tuple[str, ...],
    *,
    triples: str | None = None,
    use: LoadOptions,
    read: StoryOptions,
    given: LabelOptions,
    submitted: SubmissionOptions,
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
        given: the triples' labels.
        submitted: what vectors and submissions are of.
        by: accuracy by quartile of overlap (of words) or length, or by a column of the triples' file; several with
            commas between.
        projection: of embeddings to the plane; auto is UMAP where it is installed and there are 60 stories.
        out: the HTML file.
    """
    from narrlit.commands.systems import named_systems
    from narrlit.experiments.comparison import compare_systems, read_facets
    from narrlit.experiments.html_report import Run, html_report
    from narrlit.experiments.systems import answers_of
    from narrlit.metrics.data_check import CheckedSet, check_sets
    from narrlit.models.registry import find_record, read_record

    if len(set(runs)) < len(runs):
        raise OptionError("give different systems: one is named twice")
    if Path(out).suffix not in (".html", ".htm"):
        raise OptionError(f"--out {out}: a report is an .html file")
    records = {name: path for name in runs if (path := find_record(name)) is not None}
    found = [Run(name, path.parent, read_record(path)) for name, path in records.items()]
    source, labeled = _triples(triples, given, found)
    systems = [
        answers_of(system, labeled, name=name, stories=submitted.stories, track=submitted.track, progress=True)
        for name, system in named_systems(runs, use, read).items()
    ]
    facets = read_facets(["margin", *filter(None, by.split(","))], labeled)
    comparison = compare_systems(systems, labeled, facets, {})
    checks = {run.name: run.record["data_check"] for run in found if run.record.get("data_check")}
    name = "StoryWorld" if source is None else Path(source).name
    if not checks:
        own = CheckedSet("validation", labeled.texts(), (labeled.labels == 1).tolist(), sided=True)
        checks[name] = check_sets([own], None)
    page = html_report(systems, comparison, found, labeled, name, checks, projection)
    with atomic_path(out) as temporary:
        temporary.write_text(page, encoding="utf-8")
    say(f"{out}: {len(page) / 1e6:.1f} MB")


def _triples(path: str | None, given: LabelOptions, runs: "Sequence[Run]") -> tuple[str | None, "Triples"]:
    """Read the labeled triples: of the file, else those that the first run was validated by; with the file's path."""
    if path is not None:
        return path, given.read(path)
    for run in runs:
        data = (run.record.get("data") or {}).get("validation") or {}
        if "storyworld" in data:
            from narrlit.data.schema import StoryTable
            from narrlit.data.storyworld import StoryWorld, synthetic_triples

            world = StoryWorld(data["storyworld"]["seed"])
            triples = world.triples(data["storyworld"]["triples"], "validation")
            return None, synthetic_triples(triples, StoryTable(), False)
        for file in data.get("files", []):
            if not Path(file["path"]).is_file():
                raise OptionError(f"{run.name}: its validation triples {file['path']} are gone: give --triples FILE")
            return str(file["path"]), given.read(file["path"])
    raise OptionError("no run with a record of its validation triples is named: give --triples FILE")
