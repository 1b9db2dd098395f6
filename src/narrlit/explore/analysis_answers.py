"""Analyses of a collection as the page shows them, in the server's answers and in map.html."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel

from narrlit.explore.agreement import Agreement
from narrlit.explore.map_answer import Metadata
from narrlit.explore.pairs import ComparedStories, retelling_groups, unrelated_similarity


class NamedStory(BaseModel):
    """Story by its id, title and metadata; of a story that is no longer in the collection, the id is the title."""

    id: str
    title: str
    metadata: Metadata


class ChanceAnswer(BaseModel):
    """Pairs of stories, and the median and deviation of the similarities of unrelated ones."""

    pairs: int
    median: float
    deviation: float


class GroupedStory(NamedStory):
    """Story of a group, and its similarity to the nearest story of the group."""

    similarity: float


class RetellingGroup(BaseModel):
    """Group of retellings, numbered from 1."""

    number: int
    stories: list[GroupedStory]


class RetellingsAnswer(BaseModel):
    """Groups of retellings, the largest first.

    Attributes:
        threshold: similarity above which mutual neighbors are retellings.
        chosen: the threshold was chosen, so that less than one pair of unrelated stories would be above it.
        chance: similarities of unrelated stories.
        measure: measure of similarity.
        typical: median similarity of grouped stories to the nearest of their group; null without a group.
        stories: number of stories of the collection.
        groups: the groups.
    """

    threshold: float
    chosen: bool
    chance: ChanceAnswer
    measure: str
    typical: float | None
    stories: int
    groups: list[RetellingGroup]


class NeighborShare(BaseModel):
    """Share of nearest neighbors with the same value, and that of permuted values with the middle 95 %."""

    neighbors: int
    share: float
    possible: float
    chance: float
    low: float
    high: float
    p: float


class ValueAnswer(BaseModel):
    """Value of a column: its stories, the share with a nearest neighbor of this value, and mean similarities."""

    value: str
    stories: int
    share: float
    within: float
    to_others: float


class SurpriseSide(NamedStory):
    """Story of a pair of similar stories with different values."""

    value: str


class SurpriseAnswer(BaseModel):
    """Pair of similar stories with different values."""

    left: SurpriseSide
    right: SurpriseSide
    similarity: float


class ColumnAgreementAnswer(BaseModel):
    """Agreement of nearest neighbors with a column.

    Attributes:
        column: name of the column.
        stories: number of stories with a value.
        partners: number of them that share it with another story; shares refer to these.
        shares: shares of the nearest neighbor, and of several.
        values: values that several stories share, those with the least similar stories first.
        surprises: the most similar pairs of stories with different values.
    """

    column: str
    stories: int
    partners: int
    shares: list[NeighborShare]
    values: list[ValueAnswer]
    surprises: list[SurpriseAnswer]


def retellings_answer(
    stories: ComparedStories, threshold: float | None, named: Callable[[int], NamedStory]
) -> RetellingsAnswer:
    """Group stories that are joined by mutual nearest neighbors with a similarity above a threshold.

    Args:
        stories: N stories with their similarities.
        threshold: the similarity; None: that which less than one pair of unrelated stories would exceed.
        named: returns the story of a row.

    Raises:
        DataError: if there is only one story.
    """
    found = retelling_groups(stories, threshold)
    median, deviation = unrelated_similarity(stories.similarities)
    row_of = {id: row for row, id in enumerate(stories.frame["id"])}
    groups = []
    for number, members in found.groups.groupby("group"):
        grouped = []
        for id, similarity in zip(members["id"], members["similarity"], strict=True):
            grouped.append(GroupedStory(**dict(named(row_of[id])), similarity=similarity))
        groups.append(RetellingGroup(number=number, stories=grouped))
    n = len(stories.frame)
    return RetellingsAnswer(
        threshold=found.threshold,
        chosen=threshold is None,
        chance=ChanceAnswer(pairs=n * (n - 1) // 2, median=median, deviation=deviation),
        measure=stories.similarities.fit.measure,
        typical=None if found.groups.empty else float(found.groups["similarity"].median()),
        stories=n,
        groups=groups,
    )


def agreement_answer(
    agreement: Agreement, values: Sequence[str], named: Callable[[int], NamedStory]
) -> ColumnAgreementAnswer:
    """Describe the agreement of nearest neighbors with a column.

    Args:
        agreement: the agreement.
        values: (N,) values of the column.
        named: returns the story of a row.
    """
    surprises = []
    for first, second, similarity in agreement.surprises:
        left, right = (SurpriseSide(**dict(named(row)), value=values[row]) for row in (first, second))
        surprises.append(SurpriseAnswer(left=left, right=right, similarity=similarity))
    return ColumnAgreementAnswer(
        column=agreement.column,
        stories=agreement.stories,
        partners=agreement.partners,
        shares=[NeighborShare.model_validate(share, from_attributes=True) for share in agreement.shares],
        values=[ValueAnswer.model_validate(value, from_attributes=True) for value in agreement.values],
        surprises=surprises,
    )
