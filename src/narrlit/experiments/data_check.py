"""`narrlit.check_data`: stories that files share, and shortcuts that solve their triples."""

import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from narrlit.console import say
from narrlit.data.readers import read_any
from narrlit.data.rows import Layout
from narrlit.data.schema import Story
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import OptionError
from narrlit.measures.collection import sample_rows
from narrlit.results import Estimate, Note, Result
from narrlit.results.findings import data_findings
from narrlit.statistics.diagnostics import similarity_diagnostics
from narrlit.statistics.set_checks import check_sets, read_set
from narrlit.submission import check_independence


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
) -> Result:
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
        A `Result`, whose notes begin with the findings. Its figures are the accuracies of probes, with a subset for
        each set; its answers are the lines of shared stories and near-duplicates.

    Raises:
        DataError: if a file can't be read.
        ModelError: if an embedding depends on other stories.
        OptionError: if the threshold is out of range.

    >>> folder = getfixture("tmp_path")
    >>> for name, thing in (("train", "grail"), ("dev", "pearl")):
    ...     _ = (folder / f"{name}.jsonl").write_text(f'{{"text": "A knight seeks a {thing}."}}')
    >>> print(*check_data(folder / "train.jsonl", folder / "dev.jsonl").notes[:2])
    No validation story is in train. Further validation stories with near-duplicates in train: 1.
    """
    if not 0 < threshold <= 1:
        raise OptionError("share_above_zero", option="threshold", found=threshold)
    files = {"train": train, "validation": validation} | ({} if test is None else {"test": test})
    sets = []
    for name, path in files.items():
        labels_of_set = str(labels) if labels is not None and name == "validation" else None
        sets.append(read_set(name, str(path), labels_of_set, layout))
    if progress:
        for checked in sets:
            if checked.report is not None:
                say(checked.report.summary())
    check = check_sets(sets, threshold)

    figures = []
    for row in (*check["probes"], *check["sources"]):
        low, high = row["interval"]
        accuracy = Estimate(row["accuracy"], low, high, row["n"], "wilson")
        subset = f"{row['set']}, {row['column']}: {row['value']}" if "column" in row else row["set"]
        figures.append(accuracy.row(row["probe"], subset=subset))
    notes = data_findings(check)
    for row in check["files"]:
        notes.append(Note.of("checked_set", **row | {"stop_words": row["stop_words"] or "none"}))
    notes.append(Note.of("near_duplicates", threshold=threshold))

    if encoder is not None:
        stories = {name: list(read_any(path, layout=layout)) for name, path in files.items() if name != "train"}
        fitted = encoder.fitted_for(list(chain.from_iterable(stories.values())))
        for name, stories_of_set in stories.items():
            figure, notes_of_set = _check_embeddings(fitted, stories_of_set, str(files[name]), progress)
            figures.append(figure.row(fitted.name, "hub skewness", subset=f"stories: {name}"))
            notes += notes_of_set
    return Result.of(
        "check_data",
        figures,
        answers=check["duplicates"],
        settings={"threshold": threshold, "files": check["files"]},
        notes=notes,
    )


def _check_embeddings(
    encoder: StoryEncoder, stories: Sequence[Story], path: str, progress: bool
) -> tuple[Estimate, list[Note]]:
    """Check that embeddings don't depend on other stories; return their hub skewness.

    Raises:
        ModelError: if an embedding does.
    """
    notes = [Note.of("independent", file=path, independence=check_independence(encoder, stories))]
    different = list({story.text: story for story in stories}.values())
    sample = [different[row] for row in sample_rows(len(different))]  # at most 1,000
    vectors = unit_vectors(encoder.embed(sample, progress=progress))
    hubs = similarity_diagnostics(vectors @ vectors.T)
    skewness = math.nan if hubs.hub_skewness is None else hubs.hub_skewness
    if hubs.warnings:
        notes.append(Note.of("hubs", system=path, skewness=f"{skewness:.1f}"))
    return Estimate(skewness, math.nan, math.nan, hubs.stories), notes
