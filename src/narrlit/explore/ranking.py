"""Ranking of an index's stories for a query, and the table of results.

Letters of the shapes: N stories, S sentences of a story, D dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import OptionError
from narrlit.explore.collection import RESERVED
from narrlit.explore.index_storage import IndexStorage
from narrlit.preprocessing.sentences import split_sentences

if TYPE_CHECKING:
    import pandas as pd

RERANKED = 100
"""Number of stories that the second stage of a search ranks."""
WIDENING = 4
"""Factor by which the number of candidates grows if too few are left."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        k: number of stories.
        where: condition on the columns in SQL, such as "country = 'France' AND year < 1900".
        hybrid: rank by vectors and by words (BM25) together, by reciprocal rank fusion.
        rerank: rank the first hundred again, by the cosine plus the Mean-Max similarity of their sentences; takes
            seconds.
        exclude_same: column, such as author; stories with the value of the story that others are like are left out.
        distinct: leave out near-copies, stories whose similarity with a better result, or with the story that others
            are like, reaches this; 0.95 is usual.
        leave_out_text: leave out stories with exactly the text of the query.
        nearest_sentence: show of each result the sentence nearest to the text, which takes most of a search's time;
            otherwise its first sentence.
    """

    k: int = 10
    where: str | None = None
    hybrid: bool = False
    rerank: Literal["meanmax"] | None = None
    exclude_same: str | None = None
    distinct: float | None = None
    leave_out_text: bool = False
    nearest_sentence: bool = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise OptionError(f"`k={self.k}`: at least 1 is needed")


@dataclass(frozen=True, eq=False)
class Query:
    """A text or story that others are compared with.

    Attributes:
        text: the text.
        vector: (D,), of length 1.
        column: column by which stories of the index are recognized as the query itself, and left out; None: none are.
        value: what the query has there.
    """

    text: str
    vector: FloatArray
    column: Literal["id", "text"] | None = None
    value: str = ""


def nearest(
    storage: IndexStorage, query: Query, options: SearchOptions, encoder: StoryEncoder | None = None
) -> "pd.DataFrame":
    """Rank the stories of an index.

    Args:
        storage: the index.
        query: what they are compared with.
        options: how they are ranked.
        encoder: of the sentences, to rerank.

    Returns:
        All columns of up to k stories, the best first, and their similarity (cosine).

    Raises:
        DataError: if the index has no story.
        OptionError: for a wrong condition.
    """
    storage.require_stories()
    if options.where is not None:
        storage.check_condition(options.where)
    words = query.text if options.hybrid else None
    limit = max(RERANKED + 1, 2 * options.k) if options.hybrid or options.rerank else options.k + 1
    while True:
        rows = storage.candidates(query.vector, limit, words, options.where)
        exhausted = len(rows) < limit
        if query.column is not None:
            rows = rows[rows[query.column] != query.value].reset_index(drop=True)
        rows["similarity"] = _vectors(rows, query) @ query.vector
        if encoder is not None:
            rows = _reranked(rows, query.text, encoder)
        if options.distinct is not None:
            rows = _without_copies(rows, query, options.distinct)
        if len(rows) >= options.k or exhausted:
            return rows.head(options.k).reset_index(drop=True)
        limit *= WIDENING


def _vectors(rows: "pd.DataFrame", query: Query) -> FloatArray:
    """Stack the vectors (N, D) of rows."""
    return np.stack(rows["vector"]) if len(rows) else np.empty((0, len(query.vector)), np.float32)


def _reranked(rows: "pd.DataFrame", text: str, encoder: StoryEncoder) -> "pd.DataFrame":
    """Order the first stories by the cosine plus the Mean-Max similarity of their sentences with a text's."""
    first = rows[:RERANKED]
    scores = first["similarity"].to_numpy(float) + _meanmax(encoder, text, first["text"].tolist())
    order = np.argsort(-scores, kind="stable").tolist()
    return rows.iloc[[*order, *range(len(first), len(rows))]].reset_index(drop=True)


def _without_copies(rows: "pd.DataFrame", query: Query, threshold: float) -> "pd.DataFrame":
    """Leave out stories whose similarity with a better one, or with the query's own story, reaches a threshold."""
    better = [] if query.column is None else [query.vector]
    distinct = []
    for row, vector in enumerate(_vectors(rows, query)):
        if all(vector @ other < threshold for other in better):
            distinct.append(row)
            better.append(vector)
    return rows.iloc[distinct]


def _meanmax(encoder: StoryEncoder, text: str, others: Sequence[str]) -> NDArray[np.float64]:
    """Compare a text with others (N,) by Mean-Max of their sentences, the mean of both directions."""
    from narrlit.metrics.meanmax import max_similarity

    encoder.require_text()
    embedded = sentence_vectors(encoder, [split_sentences(story) for story in (text, *others)])
    own, *stories = [vectors.astype(np.float64) for vectors in embedded]
    both = [max_similarity(own, story) + max_similarity(story, own) for story in stories]
    return np.array(both, np.float64) / 2


def sentence_vectors(encoder: StoryEncoder, stories: Sequence[Sequence[str]]) -> list[FloatArray]:
    """Embed the sentences of N stories, (S, D) each, as unit vectors."""
    if not stories:
        return []
    sentences: list[str] = []
    for story in stories:
        sentences += story
    vectors = unit_vectors(encoder.embed_prepared(sentences, ["story"] * len(sentences)))
    ends = np.cumsum([len(story) for story in stories])
    return np.split(vectors, ends[:-1])


def first_sentences(rows: "pd.DataFrame") -> list[str]:
    """Return the first sentence of each story."""
    return [split_sentences(text)[0] for text in rows["text"]]


def nearest_sentences(rows: "pd.DataFrame", query: Query, encoder: StoryEncoder) -> list[str]:
    """Return the sentence of each story that is nearest to a query."""
    stories = [split_sentences(text) for text in rows["text"]]
    snippets = []
    for sentences, vectors in zip(stories, sentence_vectors(encoder, stories), strict=True):
        snippets.append(sentences[int(np.argmax(vectors @ query.vector))])
    return snippets


def result_table(rows: "pd.DataFrame", snippets: Sequence[str]) -> "pd.DataFrame":
    """Tabulate ranked stories: rank from 1, id, title, similarity, snippet, then the metadata."""
    metadata = [name for name in rows if name not in RESERVED and not name.startswith("_")]
    ranked = rows.assign(rank=range(1, len(rows) + 1), snippet=snippets)
    return ranked[["rank", "id", "title", "similarity", "snippet", *metadata]]
