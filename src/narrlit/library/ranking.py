"""Ranking of stories for a query, and the table of results.

Letters in shapes: N stories, R rows of some of them, S passages of a story, D dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from narrlit.data.schema import Floats, IntArray, normal_text
from narrlit.library.options import COMPARED_ALL, SearchOptions
from narrlit.library.stories_fit import StoriesFit
from narrlit.library.story_frame import RESERVED
from narrlit.library.story_store import READ_WORDS, StoryStore
from narrlit.measures.candidates import Candidates, highest_of
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.corrections import centered
from narrlit.measures.matching import Matching, matches
from narrlit.measures.readers import passage_reader
from narrlit.measures.representations import Contents
from narrlit.preprocessing.sentences import split_sentences
from narrlit.preprocessing.words import num_words

OF_VECTORS = ("csls", "centered", "cosine")
"""Measures by which a query is compared with all stories, however large the index is."""
CANDIDATES = 200
"""Number of stories of a larger index that are compared with a query."""
CANDIDATES_BY_WORDS = 100
"""Number of additional candidates, by BM25, for a measure that compares words."""
WORDS_OF_QUERY = 100
"""Maximum number of words in a query for which BM25 chooses candidates; a whole story would take half a second."""
WIDENING = 4
"""Factor by which the number of candidates grows if too few are left."""


@dataclass(frozen=True, eq=False)
class Query:
    """Text, or one of the stories, with which stories are compared.

    Attributes:
        contents: contents of this single story, with passages if the stories have them.
        row: row of the story; None for a text.
    """

    contents: Contents
    row: int | None = None


@dataclass(frozen=True, eq=False)
class MeasuredStories:
    """N stories with a fitted measure, by which they are compared with queries.

    Attributes:
        store: the stories.
        fit: the fitted measure.
    """

    store: StoryStore
    fit: StoriesFit

    def nearest(self, query: Query, options: SearchOptions) -> tuple[IntArray, Floats]:
        """Find the stories most similar to a query, excluding the query itself.

        Returns:
            Rows of up to k stories, best first, and their similarities.
        """
        allowed = self._allowed(query, options)
        limit = max(CANDIDATES, 2 * options.k)
        while True:
            rows = self._candidates(query, allowed, limit, options.where)
            exhausted = len(rows) == len(allowed)
            similarities = self._similarities(query, rows)
            order = np.argsort(-similarities, kind="stable")
            if options.distinct is not None:
                order = self._without_copies(query, rows, order, options)
            if len(order) >= options.k or exhausted:
                best = order[: options.k]
                return rows[best], similarities[best]
            limit *= WIDENING

    @cached_property
    def similarities(self) -> CollectionSimilarity:
        """Similarities of all stories."""
        return self._of(None)

    @cached_property
    def _hubs(self) -> Floats:
        return self.fit.hubs_of(self.store.digests)

    @cached_property
    def _centered(self) -> Floats:
        return centered(self.store.vectors, self.fit.measure.mean)

    @cached_property
    def _by_passages(self) -> Candidates | None:
        """Candidates by passages; None for a measure without passages."""
        reader, passages = passage_reader(self.fit.measure.reader), self.fit.passages_of(self.store.digests)
        return None if reader is None or passages is None else Candidates(reader, passages, self._hubs)

    @property
    def _compares_all(self) -> bool:
        """True if a query is compared with all stories instead of candidates."""
        if len(self.store) <= COMPARED_ALL:
            return True
        measure = self.fit.measure.measure
        if measure == "lexical":  # nearest vectors are no candidates for words
            return not self.store.has_word_index
        return measure in OF_VECTORS and not self.store.has_vector_index

    def _of(self, rows: IntArray | None) -> CollectionSimilarity:
        """Return the similarities of the stories in `rows`; None: of all stories."""
        hubs = self._hubs if rows is None else self._hubs[rows]
        stories = self.store.contents(self.fit.measure.measure, rows)
        return CollectionSimilarity(self.fit.measure, stories, hubs)

    def _allowed(self, query: Query, options: SearchOptions) -> IntArray:
        """Return the rows of the stories that may be results."""
        is_allowed = np.ones(len(self.store), dtype=bool)
        if options.where is not None:
            is_allowed = self.store.matching(options.where)
        if options.leave_out_text:
            query_text = normal_text(query.contents.texts[0])
            is_allowed &= [normal_text(text) != query_text for text in self.store.texts()]
        if query.row is not None:
            is_allowed[query.row] = False
        return np.flatnonzero(is_allowed)

    def _candidates(self, query: Query, allowed: IntArray, limit: int, where: str | None) -> IntArray:
        """Return the rows of the stories that are compared with a query, in ascending order."""
        if self._compares_all or len(allowed) <= limit:
            return allowed
        nearest = self._nearest_candidates(query, allowed, limit, where)
        text = query.contents.texts[0]
        uses_words = self.fit.measure.measure in READ_WORDS and self.store.has_word_index
        if not uses_words or num_words(text) > WORDS_OF_QUERY:
            return nearest
        by_words = self.store.by_words(text, limit * CANDIDATES_BY_WORDS // CANDIDATES, where)
        return np.union1d(nearest, np.intersect1d(by_words, allowed))

    def _nearest_candidates(self, query: Query, allowed: IntArray, limit: int, where: str | None) -> IntArray:
        """Choose candidates by passages or, for a measure without passages, by vectors; in ascending order.

        LanceDB compares the vectors as they are stored, not centered. A centered query has about the same neighbors
        among them, because subtracting the mean changes the cosines of a query with all stories by about the same.
        """
        if self._by_passages is not None:
            return self._by_passages.nearest(query.contents, allowed, limit)
        if self.fit.measure.measure == "cosine":
            query_vector = query.contents.vectors[0]
        else:
            query_vector = centered(query.contents.vectors, self.fit.measure.mean)[0]
        if self.store.has_vector_index:
            return np.intersect1d(self.store.by_vector(query_vector, limit, where), allowed)
        cosines = self._centered[allowed] @ query_vector
        return np.sort(allowed[highest_of(cosines, limit)])

    def _similarities(self, query: Query, rows: IntArray) -> Floats:
        """Return the similarities (R,) of a query with the stories in `rows`."""
        if not len(rows):
            return np.empty(0, np.float32)
        similarities: Floats
        if self._compares_all and query.row is None:
            similarities = self.similarities.of_queries(query.contents)[0, rows]
        elif self._compares_all:
            similarities = self.similarities.rows(np.array([query.row]))[0, rows]
        elif query.row is None:
            similarities = self._of(rows).of_queries(query.contents)[0]
        else:
            with_query = self._of(np.array([query.row, *rows]))
            similarities = with_query.between(np.array([0]), np.arange(1, len(rows) + 1))[0]
        return similarities

    def _without_copies(self, query: Query, rows: IntArray, order: IntArray, options: SearchOptions) -> IntArray:
        """Exclude stories whose cosine with a better story, or with the story of the query, reaches the threshold."""
        is_story = query.row is not None or options.leave_out_text
        better = [query.contents.vectors[0]] if is_story else []
        distinct: list[int] = []
        for start in range(0, len(order), CANDIDATES):
            positions = order[start : start + CANDIDATES]
            vectors = self.store.vectors_at(rows[positions])
            for position, vector in zip(positions.tolist(), vectors, strict=True):
                if all(vector @ other < options.distinct for other in better):
                    distinct.append(position)
                    better.append(vector)
                if len(distinct) == options.k:
                    return np.array(distinct, dtype=np.int64)
        return np.array(distinct, dtype=np.int64)

    def snippets(self, query: Query, rows: IntArray) -> list[str]:
        """Return the best matching passage of each story in `rows` (R,) or, without passages, its first sentence."""
        if query.contents.passages is None:
            return [split_sentences(text)[0] for text in self.store.texts(rows)]
        reader = passage_reader(self.fit.measure.reader)
        mean = np.zeros_like(self.fit.measure.mean) if reader is None else reader.mean
        matching = Matching() if reader is None else reader.matching
        query_vectors = centered(query.contents.passages.vectors.astype(np.float32), mean)
        snippets = []
        for story in self.store.passages(rows):
            weights = matches(query_vectors, centered(story.vectors, mean), matching)
            best = int(weights.max(axis=0).argmax())
            snippets.append(story.texts[best])
        return snippets

    def table(self, query: Query, options: SearchOptions) -> pd.DataFrame:
        """Tabulate the results: rank from 1, id, title, similarity, snippet, then the metadata."""
        rows, similarities = self.nearest(query, options)
        frame = self.store.frame(rows)
        ranked = frame.assign(
            rank=range(1, len(rows) + 1),
            similarity=similarities.astype(float),
            snippet=np.array(self.snippets(query, rows), dtype=object),
        )
        return ranked[["rank", "id", "title", "similarity", "snippet", *unreserved_columns(frame)]]


def unreserved_columns(columns: Sequence[str]) -> list[str]:
    """List the columns that contain metadata."""
    return [name for name in columns if name not in RESERVED]
