"""Answers about analyses of collections."""

from pydantic import BaseModel

from narrlit.serving.collection_models import Metadata


class ChanceAnswer(BaseModel):
    """Pairs of stories, and the median and deviation of the similarities of unrelated ones."""

    pairs: int
    median: float
    deviation: float


class GroupedStory(BaseModel):
    """Story of a group, and its similarity to the nearest story of the group."""

    id: str
    title: str
    metadata: Metadata
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
