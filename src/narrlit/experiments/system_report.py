"""`narrlit.report`: report on systems and their answers as one HTML file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from narrlit.data.readers import read_labeled_triples
from narrlit.data.schema import StoryTable, Track, Triples
from narrlit.data.storyworld import StoryWorld, synthetic_triples
from narrlit.errors import OptionError
from narrlit.experiments.evaluation import answers_of_all, compare_answers, named_systems
from narrlit.experiments.facets import read_facets
from narrlit.experiments.html_report import html_report
from narrlit.experiments.options import ProjectionMethod
from narrlit.experiments.run import Run
from narrlit.experiments.systems import System
from narrlit.files import PAGE_SUFFIXES, atomic_path, check_suffix
from narrlit.models.checkpoints import find_record
from narrlit.models.run_file import RunFile
from narrlit.pages import in_frame
from narrlit.results import Result
from narrlit.results.findings import with_verdict
from narrlit.statistics.set_checks import CheckedSet, check_sets


@dataclass(frozen=True, eq=False)
class SystemReport(Result):
    """Comparison of systems, with a page: accuracy, training, maps, distances, errors and data.

    Attributes:
        html: the page.
    """

    html: str

    def write(self, path: str | Path) -> None:
        """Write the page (.html)."""
        check_suffix(path, PAGE_SUFFIXES)
        with atomic_path(Path(path)) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return in_frame(self.html)


def report(  # noqa: PLR0913 (options)
    systems: Mapping[str, System] | Sequence[System],
    *,
    triples: str | Path | Triples | None = None,
    by: Sequence[str] = ("overlap", "length"),
    labels: str | Path | None = None,
    strict: bool = False,
    stories: str | Path | None = None,
    track: Track | None = None,
    projection: ProjectionMethod = "auto",
    margin: float | None = None,
    progress: bool = False,
) -> SystemReport:
    """Report on runs or other systems in one page: accuracy, training, maps, distances, errors and data.

    Args:
        systems: systems as for `narrlit.compare`; each is compared with the first.
        triples: labeled triples; None: the validation triples of the first run.
        by: breakdowns of the accuracy: by quartile of `overlap` (of words) or `length`, or by a column of the file of
            triples.
        labels: a file of `text_a_is_closer`, if the labels are not in the file of triples.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        stories: file of the embedded stories, in the same order as the embeddings of an .npy file or a submission.
        track: track of the triples; a submission is scored by its Track A answers (`a`) or its Track B embeddings
            (`b`); None: `b` if `stories` contains every story of the triples, else `a`.
        projection: projection of the embeddings to two dimensions; `auto` is UMAP if it is installed and there are at
            least 60 stories.
        margin: cosine distance, 0 to 2, by which the closer candidate of a triple must be nearer than the other one for
            its triangle on the map to be green; None: the triangles of right answers are green.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `SystemReport`, the `Result` of `narrlit.compare` with a page: `.html`, `.write(path)`. A notebook shows it.

    Raises:
        DataError: if a file can't be read.
        ModelError: if a model can't be loaded.
        OptionError: if there are no triples, a system is named twice, or `margin` is not a distance.
    """
    if margin is not None and not 0 <= margin <= 2:
        raise OptionError("margin_of_distances", margin=margin)
    named = named_systems(systems)
    runs = _runs(named)
    source, found = _triples(triples, runs)
    labeled = read_labeled_triples(found, labels, strict=strict, progress=progress)
    facets = read_facets(["margin", *by], labeled)
    answers = answers_of_all(named, labeled, stories=stories, track=track, progress=progress)
    comparison = compare_answers(answers, labeled, facets, {})
    checks = {name: run.record.data_check for name, run in runs.items() if run.record.data_check}
    if not checks:
        checks[source] = _check_sides(labeled)
    page = html_report(answers, comparison, runs, labeled, source, checks, projection, margin)
    return SystemReport(**vars(comparison), html=page)


def _check_sides(triples: Triples) -> dict[str, object]:
    """Check triples for duplicate texts and shortcuts, as a fit checks its data."""
    checked = CheckedSet("validation", triples.texts(), (triples.labels == 1).tolist(), sided=True)
    return with_verdict(check_sets([checked]))


def _runs(systems: Mapping[str, System]) -> dict[str, Run]:
    """Read the records of the systems that are runs."""
    runs = {}
    for name, system in systems.items():
        if isinstance(system, str | PathLike):
            model = fspath(system)
        else:
            encoder = getattr(system, "encoder", system)
            model = getattr(encoder, "name", name)
        path = find_record(model)
        if path is not None:
            runs[name] = Run(path.parent, RunFile.read(path))
    return runs


def _triples(triples: str | Path | Triples | None, runs: Mapping[str, Run]) -> tuple[str, str | Path | Triples]:
    """Return the name of the triples, and the triples; None: the validation triples of the first run."""
    if isinstance(triples, Triples):
        source = "the triples" if triples.report is None else Path(triples.report.path).name
        return source, triples
    if triples is not None:
        return Path(triples).name, triples
    for name, run in runs.items():
        data = run.record.data_of("validation")
        if data.storyworld is not None:
            rows = StoryWorld(data.storyworld.seed).triples(data.storyworld.triples, "validation")
            return "StoryWorld", synthetic_triples(rows, StoryTable(), False)
        for file in data.files:
            if not Path(file.path).is_file():
                raise OptionError("triples_of_run_gone", name=name, path=file.path)
            return Path(file.path).name, file.path
    raise OptionError("no_recorded_triples")
