"""Requests and answers about collections."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from narrlit.explore.map_answer import Metadata, Value
from narrlit.explore.matched_pair import Likeness
from narrlit.explore.passages import PlacedPassage
from narrlit.measures.names import MeasureName
from narrlit.serving.bodies import RequestBody

MOST_HITS = 500
MOST_LISTED = 1000


def check_one_of(first: str | None, second: str | None, message: str) -> None:
    """Raise ValueError with the message unless exactly one of two fields has a value."""
    if (first is None) == (second is None):
        raise ValueError(message)


class CountedValue(BaseModel):
    """Value of a column, and the number of stories that have it."""

    value: Value
    count: int


class ColumnAnswer(BaseModel):
    """Metadata column with its most frequent values."""

    name: str
    kind: Literal["text", "number"]
    values: list[CountedValue]
    distinct: int


class CollectionAnswer(BaseModel):
    """Collection; `import` is the id of the import that writes to it.

    Attributes:
        label: the column that tells most stories with the same title apart; null if there is none.
    """

    name: str
    stories: int
    model: str
    measure: str
    columns: list[ColumnAnswer]
    label: str | None = None
    import_id: Annotated[str | None, Field(serialization_alias="import")] = None


class SettingsAnswer(BaseModel):
    """Settings of the server that the page needs."""

    version: str
    model: str
    writable: bool
    extensions: list[str]
    limits: dict[str, int]


class StorySummary(BaseModel):
    """Story in a list."""

    id: str
    title: str
    words: int
    characters: int | None = None
    metadata: Metadata


class StoryList(BaseModel):
    """Part of a list of stories, and the number of all."""

    total: int
    stories: list[StorySummary]


class Standing(BaseModel):
    """Place of a story among those that are compared with another story or with a text.

    Attributes:
        rank: its rank, 1 for the nearest.
        of: number of ranked stories.
        alike: word for the similarity of two stories; null for a text, and of fewer than ten others.
    """

    rank: int
    of: int
    alike: Likeness | None


class NearStory(BaseModel):
    """Story near to another one, its rank, and the passage that matches it best."""

    id: str
    title: str
    similarity: float
    standing: Standing
    snippet: str
    metadata: Metadata


class StoryAnswer(StorySummary):
    """Story in full, with the nearest ones."""

    text: str
    nearest: list[NearStory]


class SearchBody(RequestBody):
    """Search by a text or by a story of the collection; `filters` names the values that columns may have."""

    query: str | None = None
    like: str | None = None
    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = 10
    filters: dict[str, list[Value]] = Field(default_factory=dict)
    measure: MeasureName | None = None
    fold_copies: bool = True

    @model_validator(mode="after")
    def _one_of_both(self) -> "SearchBody":
        check_one_of(self.query, self.like, "give either query, a text, or like, the id of a story")
        return self


class Copy(BaseModel):
    """Near-copy of a hit."""

    id: str
    title: str
    metadata: Metadata


class Hit(BaseModel):
    """Story that a search found, its rank, its passage that matches best with the words around it, and near-copies."""

    id: str
    title: str
    similarity: float
    standing: Standing
    passage: PlacedPassage
    before: str
    after: str
    copies: list[Copy]
    metadata: Metadata


class SearchAnswer(BaseModel):
    """Hits, the most similar first, the measure, and the time that the search took."""

    hits: list[Hit]
    measure: str
    seconds: float


class ComparedSide(RequestBody):
    """Story of an explanation: the id of one in the collection, or a text."""

    id: str | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "ComparedSide":
        check_one_of(self.id, self.text, "give either the id of a story, or a text")
        return self


class ExplainBody(RequestBody):
    """Two stories to compare."""

    left: ComparedSide
    right: ComparedSide


class ExplainedSide(BaseModel):
    """Story with its passages; a text has no metadata."""

    title: str
    metadata: Metadata
    passages: list[PlacedPassage]


class ExplainedLink(BaseModel):
    """Link between passages, which are counted from 0; the shares add up to the score.

    A link leads from a passage to its best match: `a to b` from the left one, or `both`.
    """

    left: int
    right: int
    similarity: float
    share: float
    direction: Literal["both", "a to b", "b to a"]


class ExplainAnswer(BaseModel):
    """Similarity of two stories, and the links that it consists of.

    Attributes:
        similarity: the score, minus the mean hubness of both stories.
        score: sum of the shares.
        hubness: mean similarity of each story with its ten nearest ones.
        alike: word for the similarity of two stories; null for a text, and of fewer than ten others.
        closer: numbers of other stories that are more similar to the left one than the right one is, and to the right.
        others: number of other stories.
        left: the left story.
        right: the right story.
        links: links between their passages, largest share first.
    """

    similarity: float
    score: float
    hubness: tuple[float, float] | None
    alike: Likeness | None
    closer: tuple[int, int]
    others: int
    left: ExplainedSide
    right: ExplainedSide
    links: list[ExplainedLink]


class Computing(BaseModel):
    """Answer about work that is not done yet: ask again."""

    status: Literal["computing"] = "computing"


class ExportBody(RequestBody):
    """Stories to export, all if there are no ids, the format of the file, and its name; default: the collection's."""

    ids: list[str] | None = None
    name: Annotated[str, Field(max_length=100)] = ""
    format: Literal["csv", "xlsx", "graphml", "palladio", "svg", "bibtex", "ris", "csl", "txt"]
