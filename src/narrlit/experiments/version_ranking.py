"""Ranking of versions of a story by measures, and confounders that may make versions similar.

Letters in shapes: N stories, Q stories with another version, K metrics.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import Floats, IntArray
from narrlit.experiments.relevance import Relevance
from narrlit.experiments.retrieval_report import Confounds, Retrieval, VersionFacts, compare_systems, estimates_of
from narrlit.metrics.diagnostics import similarity_diagnostics, word_counts
from narrlit.metrics.retrieval import METRICS_OF_VERSIONS, ranks
from narrlit.metrics.versions import Strata, Versions, permuted_figures
from narrlit.metrics.words import stop_words_of


@dataclass(frozen=True, eq=False)
class VersionedStories:
    """N stories, some of which are versions of each other.

    Attributes:
        ids: N ids.
        texts: N texts.
        column: column in which versions have the same value.
        values: (N,) values of this column; None for an empty cell.
        control: column of a confounder that may make versions similar; None without one.
        controls: (N,) values of this column; empty without one.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    column: str
    values: Sequence[Hashable | None]
    control: str | None = None
    controls: Sequence[Hashable | None] = ()

    def strata(self) -> list[Strata]:
        """Return strata within which values are permuted: all stories, similar lengths, values of the control."""
        everything = Strata("the collection", np.zeros(len(self.texts), dtype=np.int64))
        strata = [everything, Strata.of_lengths(self.texts)]
        if self.control is not None:
            strata.append(Strata.of_values(self.control, self.controls))
        return strata


def rank_versions(systems: Iterable[tuple[str, Floats]], stories: VersionedStories) -> Retrieval:
    """Evaluate how high systems rank the other versions of each story that has other versions.

    Args:
        systems: names, and similarities (N, N) of all stories; each system is compared with the first.
        stories: N stories, some of which are versions of each other.
    """
    versions = Versions(stories.values)
    relevance = Relevance.of_versions(versions)
    words = word_counts(stories.texts)[versions.queries]
    median_words = float(np.median(words))
    is_short = words < median_words
    values: dict[str, NDArray[np.float64]] = {}
    confounds: dict[str, Confounds] = {}
    for name, similarities in systems:
        metrics = relevance.metrics(similarities.__getitem__, METRICS_OF_VERSIONS)
        story_ranks = ranks_of_others(similarities)
        confounds[name] = Confounds(
            permuted=[permuted_figures(story_ranks, versions, strata) for strata in stories.strata()],
            short=estimates_of(metrics[is_short], versions.groups[is_short]),
            long=estimates_of(metrics[~is_short], versions.groups[~is_short]),
            diagnostics=similarity_diagnostics(similarities),
        )
        values[name] = metrics
    facts = VersionFacts(stories.column, len(np.unique(versions.groups)), median_words, stories.control)
    ids = [stories.ids[row] for row in versions.queries.tolist()]
    systems_compared = compare_systems(values, versions.groups)
    stop_words = stop_words_of(stories.texts)
    return Retrieval(systems_compared, ids, len(stories.ids), None, facts, confounds, stop_words)


def ranks_of_others(similarities: Floats) -> IntArray:
    """Rank all stories for each story, (N, N): the most similar has rank 1, the story itself the last rank.

    >>> ranks_of_others(np.array([[1.0, 0.2, 0.7], [0.2, 1.0, 0.4], [0.7, 0.4, 1.0]])).tolist()
    [[3, 2, 1], [2, 3, 1], [1, 2, 3]]
    """
    others = np.where(np.eye(len(similarities), dtype=bool), -np.inf, similarities)
    return ranks(others)
