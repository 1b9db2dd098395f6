"""Analyses of collections that are computed in the background: groups of retellings."""

from narrlit.explore.pairs import retelling_groups, unrelated_similarity
from narrlit.serving.analysis_models import ChanceAnswer, GroupedStory, RetellingGroup, RetellingsAnswer
from narrlit.serving.results import ResultKey, Results
from narrlit.serving.shelf import Snapshot
from narrlit.serving.workers import Workers


class Analyses:
    """Analyses of a server's collections, each kept until its collection changes."""

    def __init__(self, workers: Workers) -> None:
        """Take the threads that compute the analyses."""
        self._retellings: Results[RetellingsAnswer] = Results(workers)

    def retellings(self, collection: str, snapshot: Snapshot, threshold: float | None) -> RetellingsAnswer | None:
        """Return the groups of retellings of a collection; None while they are computed."""
        option = None if threshold is None else str(threshold)
        return self._retellings.get(ResultKey(collection, snapshot.version, option), retellings, snapshot, threshold)

    def forget(self, collection: str) -> None:
        """Forget the analyses of a collection that is deleted."""
        self._retellings.forget(collection)


def retellings(snapshot: Snapshot, threshold: float | None = None) -> RetellingsAnswer:
    """Group stories that are joined by mutual nearest neighbors with a similarity above a threshold.

    Args:
        snapshot: the collection.
        threshold: the similarity; None: that which less than one pair of unrelated stories would exceed.

    Raises:
        DataError: if there is only one story.
    """
    found = retelling_groups(snapshot.stories, threshold)
    similarities = snapshot.stories.similarities
    median, deviation = unrelated_similarity(similarities)
    groups = []
    for number, stories in found.groups.groupby("group"):
        members = []
        for id, similarity in zip(stories["id"], stories["similarity"], strict=True):
            row = snapshot.row_of(id)
            title, metadata = snapshot.title(row), snapshot.metadata(row)
            members.append(GroupedStory(id=id, title=title, metadata=metadata, similarity=similarity))
        groups.append(RetellingGroup(number=number, stories=members))
    return RetellingsAnswer(
        threshold=found.threshold,
        chosen=threshold is None,
        chance=ChanceAnswer(pairs=len(snapshot) * (len(snapshot) - 1) // 2, median=median, deviation=deviation),
        measure=similarities.fit.measure,
        typical=None if found.groups.empty else float(found.groups["similarity"].median()),
        stories=len(snapshot),
        groups=groups,
    )
