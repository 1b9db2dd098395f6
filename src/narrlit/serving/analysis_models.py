"""Answers about analyses of collections."""

from pydantic import BaseModel

from narrlit.explore.analysis_answers import NamedStory
from narrlit.explore.confounds import ConfoundKind


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


class ConcordanceLine(NamedStory):
    """Exact match in a story, with the words before and after it; its place is counted in characters."""

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
