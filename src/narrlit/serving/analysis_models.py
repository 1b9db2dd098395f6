"""Answers about analyses of collections."""

from pydantic import BaseModel

from narrlit.explore.confounds import ConfoundKind
from narrlit.explore.map_answer import Metadata


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


class SurpriseSide(BaseModel):
    """Story of a pair of similar stories with different values."""

    id: str
    title: str
    metadata: Metadata
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


class ConfoundAnswer(BaseModel):
    """Property that stories may share with their nearest neighbor: length, language or a column.

    Attributes:
        kind: what it is.
        name: name of the column; else the kind.
        share: share of stories with the value of their nearest neighbor, among those that share it with another story.
        chance: mean of this share for permuted values.
        p: share of permutations that agree at least as much, adjusted for the number of properties.
        is_warning: it is no part of a plot, and explains nearest neighbors more than chance does.
    """

    kind: ConfoundKind
    name: str
    share: float
    chance: float
    p: float
    is_warning: bool


class ConfoundsAnswer(BaseModel):
    """What nearest neighbors share, the largest excess over chance first."""

    confounds: list[ConfoundAnswer]


class RankingFigure(BaseModel):
    """Figure of a system for a subset, with its 95 % interval; null where it has none."""

    system: str
    subset: str
    metric: str
    value: float
    low: float | None
    high: float | None
    n: int


class RankingDifference(BaseModel):
    """Difference of a system to another one, with its interval and p."""

    system: str
    against: str
    subset: str
    metric: str
    value: float
    low: float | None
    high: float | None
    p: float | None


class RankingAnswer(BaseModel):
    """How high other versions of each story are ranked, as `narrlit.retrieval` evaluates it.

    Attributes:
        column: column of which stories with the same value are versions.
        control: column of a confounder; null: none.
        queries: number of stories with another version.
        stories: number of stories.
        figures: recall@1 and @10, MRR and nDCG@10 of each system; with values permuted within strata; by length.
        differences: of the lexical baseline to the measure, and of permuted values to the real ones.
    """

    column: str
    control: str | None
    queries: int
    stories: int
    figures: list[RankingFigure]
    differences: list[RankingDifference]


class ConcordanceLine(BaseModel):
    """Exact match in a story, with the words before and after it; its place is counted in characters."""

    id: str
    title: str
    metadata: Metadata
    start: int
    end: int
    before: str
    match: str
    after: str


class ConcordanceAnswer(BaseModel):
    """Matches of a phrase, by story and place, up to a limit; numbers of all matches and of their stories."""

    total: int
    stories: int
    lines: list[ConcordanceLine]
