"""Ranking of versions of a story by systems, and confounders that may make versions similar.

Letters in shapes: N stories, Q stories with another version, K metrics.
"""

from collections.abc import Iterable
from math import nan

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.data.schema import Floats, IntArray
from narrlit.errors import DataError, printable
from narrlit.experiments.relevance import Relevance, query_rows, ranking_differences, ranking_figures
from narrlit.results import Estimate, Note, Result
from narrlit.statistics.diagnostics import LARGE_SKEWNESS, similarity_diagnostics, word_counts
from narrlit.statistics.retrieval import METRICS_OF_VERSIONS, ranks
from narrlit.statistics.versions import PERMUTATIONS, Strata, Versions, permuted_figures
from narrlit.statistics.words import stop_words_of, stop_words_text


def rank_versions(
    systems: Iterable[tuple[str, Floats]], stories: pd.DataFrame, same: str, control: str | None = None
) -> Result:
    """Evaluate how high systems rank the other versions of each story that has other versions.

    Args:
        systems: names, and similarities (N, N) of all stories; each system is compared with the first.
        stories: N stories, with columns id and text.
        same: column in which versions of the same story have the same value; an empty cell has no other version.
        control: column of a confounder, within whose values `same` is permuted.

    Returns:
        A `Result`: metrics of all versions, with values permuted within strata, and of short and long stories; hubs.

    Raises:
        DataError: if no story has another version.
    """
    versions = Versions(_texts_of_column(stories, same))
    if not len(versions.queries):
        raise DataError("no_same_value", option="same", column=same)
    texts = stories["text"].tolist()
    strata = [Strata("the collection", np.zeros(len(texts), dtype=np.int64)), Strata.of_lengths(texts)]
    if control is not None:
        strata.append(Strata.of_values(printable(control, 60), _texts_of_column(stories, control)))

    values: dict[str, NDArray[np.float64]] = {}
    skewness: dict[str, float] = {}
    permuted, differences_to_real = [], []
    relevance = Relevance.of_versions(versions)
    for system, similarities in systems:
        values[system] = relevance.metrics(similarities.__getitem__, METRICS_OF_VERSIONS)
        hub_skewness = similarity_diagnostics(similarities).hub_skewness
        skewness[system] = nan if hub_skewness is None else hub_skewness
        story_ranks = ranks_of_others(similarities)
        for within in strata:
            subset, movable = f"permuted within: {within.name}", within.movable(versions)
            for metric, (figure, to_real) in permuted_figures(story_ranks, versions, within).items():
                permuted.append(figure.row(system, metric, subset, movable=movable))
                differences_to_real.append(to_real.row(system, f"{system}, not permuted", metric, subset))

    groups = versions.groups
    words = word_counts(texts)[versions.queries]
    median_words = float(np.median(words))
    figures = ranking_figures(values, groups) + permuted
    for length, rows in (("short", words < median_words), ("long", words >= median_words)):
        if rows.any():
            of_length = {system: metrics[rows] for system, metrics in values.items()}
            figures += ranking_figures(of_length, groups[rows], f"length: {length}")
    for system, value in skewness.items():
        figures.append(Estimate(value, nan, nan, len(texts)).row(system, "hub skewness", "hubs: skewness"))

    counts = {"queries": len(versions.queries), "stories": len(texts), "values": len(np.unique(groups))}
    stop_words = stop_words_of(texts)
    notes = [
        Note.of("versions", column=printable(same, 60), **counts),
        Note.of("stop_words", words=stop_words_text(stop_words)),
        Note.of("permuted", column=printable(same, 60), n=PERMUTATIONS),
        Note.of("short_stories", words=f"{median_words:g}"),
        Note.of("hub_skewness"),
    ]
    first = next(iter(skewness))
    if skewness[first] > LARGE_SKEWNESS:
        notes.append(Note.of("hubs", system=first, skewness=f"{skewness[first]:.1f}"))
    return Result.of(
        "retrieval",
        figures,
        ranking_differences(values, groups) + differences_to_real,
        answers=query_rows(stories["id"].iloc[versions.queries].tolist(), values),
        settings={"same": same, "control": control, **counts, "median_words": median_words, "stop_words": stop_words},
        notes=notes,
    )


def _texts_of_column(stories: pd.DataFrame, column: str) -> list[str | None]:
    """Return the values (N,) of a column as text; None for an empty cell."""
    values = stories[column]
    return [None if empty else str(value) for value, empty in zip(values, values.isna(), strict=True)]


def ranks_of_others(similarities: Floats) -> IntArray:
    """Rank all stories for each story, (N, N): the most similar has rank 1, the story itself the last rank.

    >>> ranks_of_others(np.array([[1.0, 0.2, 0.7], [0.2, 1.0, 0.4], [0.7, 0.4, 1.0]])).tolist()
    [[3, 2, 1], [2, 3, 1], [1, 2, 3]]
    """
    others = np.where(np.eye(len(similarities), dtype=bool), -np.inf, similarities)
    return ranks(others)
