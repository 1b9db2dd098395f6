"""`narrlit.check_data`: stories that files share, and shortcuts that solve their triples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from pathlib import Path
from typing import Any

import pandas as pd

from narrlit.console import say
from narrlit.data.readers import read_any
from narrlit.data.rows import Layout
from narrlit.data.schema import Story
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import OptionError
from narrlit.experiments.report import keep_report
from narrlit.measures.collection import sample_rows
from narrlit.metrics.diagnostics import SimilarityDiagnostics, similarity_diagnostics
from narrlit.metrics.set_checks import CheckedSet, check_sets, check_tables, read_set
from narrlit.submission import check_independence
from narrlit.tables import markdown_table


@dataclass(frozen=True, eq=False)
class DataCheck:
    """Stories shared by training, validation and test data, and shortcuts that solve their triples.

    Attributes:
        record: all findings as plain data, with the lines of shared stories and near-duplicates.
        tables: rows by title.
        threshold: Jaccard index of three-word shingles at or above which two stories count as near-duplicates.
        independence: by file, a sentence about the independence of embeddings from other stories; empty without an
            encoder.
        diagnostics: by file, hubness of the cosines of its stories; empty without an encoder.
    """

    record: dict[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, object]]]
    threshold: float
    independence: Mapping[str, str]
    diagnostics: Mapping[str, SimilarityDiagnostics]

    @property
    def findings(self) -> list[str]:
        """Sentences about shared stories, shortcuts, and accuracies that a system must beat."""
        return list(self.record["verdict"])

    def table(self) -> pd.DataFrame:
        """Tabulate all findings; the column `table` contains the title of their table."""
        findings: list[dict[str, object]] = []
        for title, rows in self.tables.items():
            findings += [{"table": title, **row} for row in rows]
        return pd.DataFrame(findings)

    def write(self, folder: str | Path) -> None:
        """Write check_data.json and check_data.md."""
        keep_report(Path(folder), "check_data", self.record, f"{self._markdown()}\n")

    def _markdown(self) -> str:
        """Format findings and tables."""
        findings = [f"- {sentence}" for sentence in self.findings]
        tables = starmap(markdown_table, self.tables.items())
        note = (
            f"Near-duplicates have a Jaccard index of three-word shingles of at least {self.threshold}. Intervals are "
            "95 % (Wilson)."
        )
        return "\n".join([*findings, "", *tables, note])

    def __str__(self) -> str:
        """Format findings and tables in Markdown, and what was measured with the encoder."""
        lines = [self._markdown()]
        for path, sentence in self.independence.items():
            lines.append(f"{path}: {sentence}")
        for path, diagnostics in self.diagnostics.items():
            lines.append(f"{path}: {diagnostics}")
            for warning in diagnostics.warnings:
                lines.append(f"{path}: {warning}")
        return "\n".join(lines)


def check_data(
    train: str | Path,
    validation: str | Path,
    test: str | Path | None = None,
    *,
    labels: str | Path | None = None,
    threshold: float = 0.5,
    encoder: StoryEncoder | None = None,
    layout: Layout = Layout(),
    progress: bool = False,
) -> DataCheck:
    """Check files for shared stories, and for triples that word overlap, length or position alone can solve.

    Args:
        train: file of training examples, triples or stories.
        validation: file of triples, training examples or stories.
        test: file of triples, with or without labels, or of stories.
        labels: file of text_a_is_closer for the validation triples, if they are in a separate file.
        threshold: Jaccard index of three-word shingles at or above which two stories count as near-duplicates, above 0,
            at most 1.
        encoder: encoder to check as well: as Track B requires, its embedding of a validation or test story must be the
            same whatever other stories are embedded with it; its cosines are examined for length bias and hubness.
        layout: how files of stories are read.
        progress: print on stderr how files were read.

    Returns:
        A `DataCheck`: `.findings`, `.table()`, `.write(folder)`.

    Raises:
        DataError: if a file can't be read.
        ModelError: if an embedding depends on other stories.
        OptionError: if the threshold is out of range.

    >>> folder = getfixture("tmp_path")
    >>> for name, thing in (("train", "grail"), ("dev", "pearl")):
    ...     _ = (folder / f"{name}.jsonl").write_text(f'{{"text": "A knight seeks a {thing}."}}')
    >>> check_data(folder / "train.jsonl", folder / "dev.jsonl").findings
    ['No validation story is in train; 1 more have near-duplicates there.']
    """
    if not 0 < threshold <= 1:
        raise OptionError(f"`threshold={threshold}`: must be above 0 and at most 1")
    sets = [
        read_set("train", str(train), layout=layout),
        read_set("validation", str(validation), None if labels is None else str(labels), layout),
    ]
    if test is not None:
        sets.append(read_set("test", str(test), layout=layout))
    if progress:
        _say_summaries(sets)
    record = check_sets(sets, threshold)
    independence: dict[str, str] = {}
    diagnostics: dict[str, SimilarityDiagnostics] = {}
    if encoder is not None:
        evaluated = [validation] if test is None else [validation, test]
        stories = {str(path): list(read_any(path, layout=layout)) for path in evaluated}
        fitted = encoder.fitted_for(list(chain.from_iterable(stories.values())))
        for path, stories_of_file in stories.items():
            independence[path] = check_independence(fitted, stories_of_file)
        record["diagnostics"] = {}
        for path, stories_of_file in stories.items():
            diagnostics[path] = diagnose_stories(fitted, stories_of_file, progress)
            record["diagnostics"][path] = diagnostics[path].record
    return DataCheck(record, check_tables(record), threshold, independence, diagnostics)


def _say_summaries(sets: Sequence[CheckedSet]) -> None:
    """Print on stderr how each file was read."""
    for checked in sets:
        if checked.report is not None:
            say(checked.report.summary())


def diagnose_stories(encoder: StoryEncoder, stories: Sequence[Story], progress: bool = False) -> SimilarityDiagnostics:
    """Measure length bias and hubness of the cosines of different stories, at most 1,000."""
    by_text = {story.text: story for story in stories}
    different = list(by_text.values())
    sample = [different[row] for row in sample_rows(len(different))]
    vectors = unit_vectors(encoder.embed(sample, progress=progress))
    return similarity_diagnostics(vectors @ vectors.T)
