"""Requests and answers about pairs to check and catalogs."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from narrlit.explore.map_answer import Metadata
from narrlit.explore.matched_pair import Likeness
from narrlit.explore.pair_decisions import ANONYMOUS, Decision
from narrlit.serving.bodies import RequestBody
from narrlit.statistics.estimates import Estimate

MOST_PAIRS = 200
LONGEST_NAME = 200
Id = Annotated[str, Field(min_length=1, max_length=1000)]
ReaderName = Annotated[str, Field(max_length=LONGEST_NAME)]


class PairSide(BaseModel):
    """Story of a pair; `closer` is the number of other stories that are more similar to it than its partner is."""

    id: str
    title: str
    text: str
    metadata: Metadata
    closer: int


class PairAnswer(BaseModel):
    """Pair that the reader has not decided; `decision` is null.

    Attributes:
        left: one of its stories.
        right: the other.
        similarity: their similarity.
        alike: word for the similarity; null of fewer than ten other stories.
        others: number of other stories.
        decision: always null.
    """

    left: PairSide
    right: PairSide
    similarity: float
    alike: Likeness | None
    others: int
    decision: Decision | None = None


class PairsAnswer(BaseModel):
    """Pairs for a reader, the most similar first, and how many are decided and not decided."""

    pairs: list[PairAnswer]
    decided: int
    remaining: int


class UndoBody(RequestBody):
    """Pair whose decision is withdrawn."""

    left: Id
    right: Id
    reader: ReaderName = ANONYMOUS


class DecisionBody(UndoBody):
    """Decision of a reader on a pair."""

    decision: Decision


class AgreementAnswer(BaseModel):
    """Agreement of readers: Krippendorff's alpha with its 95 % interval; null where it is undefined."""

    readers: list[str]
    pairs: int
    equal: int
    alpha: float | None
    low: float | None
    high: float | None


class AccuracyAnswer(BaseModel):
    """Share of right answers with its 95 % interval."""

    n: int
    correct: int
    accuracy: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, estimate: Estimate) -> Self:
        """Convert an accuracy."""
        correct = round(estimate.value * estimate.n)
        return cls(n=estimate.n, correct=correct, accuracy=estimate.value, interval=(estimate.low, estimate.high))


class SpeakingStory(BaseModel):
    """Story that has a proposed value."""

    id: str
    title: str
    metadata: Metadata = {}
    similarity: float


class ProposedValueAnswer(BaseModel):
    """Proposed value with its probability, and the stories that have it, nearest first."""

    value: str
    probability: float
    stories: list[SpeakingStory]


class ProposalAnswer(BaseModel):
    """Proposed values of a story, the most probable first."""

    id: str
    title: str
    metadata: Metadata = {}
    values: list[ProposedValueAnswer]


class ReliabilityAnswer(BaseModel):
    """Most probable values with a probability in an interval, and how many of them are right."""

    low: float
    high: float
    mean: float
    right: AccuracyAnswer


class CatalogAnswer(BaseModel):
    """Proposals for stories that are not decided, and how often such proposals are right.

    Attributes:
        column: the column.
        accuracy: cross-validated accuracy.
        baseline: share of the most frequent value.
        most_frequent: this value.
        reliability: the same stories by probability.
        proposals: proposed values of stories without one, the most probable first.
        decided: number of stories whose value has been accepted or rejected.
    """

    column: str
    accuracy: AccuracyAnswer
    baseline: float
    most_frequent: str
    reliability: list[ReliabilityAnswer]
    proposals: list[ProposalAnswer]
    decided: int


class StoryColumn(RequestBody):
    """Column of a story, for which a value is decided or a decision withdrawn."""

    id: Id
    column: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class ValueBody(StoryColumn):
    """Decision on a proposed value; without a value, none of the proposed ones is right."""

    value: Annotated[str | None, Field(max_length=1000)] = None
    accepted: bool
