"""Collections of stories with their embeddings, in memory or in an index."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories, read_stories
from narrlit.data.rows import Layout
from narrlit.data.schema import FloatArray, Story, normal_form
from narrlit.encoding.loading import load
from narrlit.encoding.story_encoder import Passages, StoryEncoder, unit_vectors
from narrlit.errors import DataError, ModelError, OptionError, did_you_mean, nearest, printable
from narrlit.library.conditions import check_condition, column_list, quoted
from narrlit.library.options import SearchOptions
from narrlit.library.ranking import MeasuredStories, Query
from narrlit.library.search_results import SearchResults
from narrlit.library.stories_fit import StoriesFit
from narrlit.library.story_frame import content_digests, metadata_columns, passage_vectors, stories_of, story_frame
from narrlit.library.story_store import StoriesInMemory, StoryStore
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.names import DEFAULT_MEASURE, READ_PASSAGES, MeasureName, check_measure
from narrlit.measures.representations import Contents
from narrlit.models.config import DEFAULT_MODEL
from narrlit.models.coverage import language_warning
from narrlit.preprocessing.languages import detect_languages


@dataclass(frozen=True, eq=False)
class Collection:
    """N stories with metadata, unit embeddings and the encoder that computed them.

    The stories are in memory, or in an index at one version (`Index.collection()`), whose later changes they ignore.

    Attributes:
        store: the stories, in memory or in an index.
        encoder: encoder of the embeddings.
        about: source, model, dimension, long, share_read (share of words read, 0 to 1) and languages (number of texts
            by ISO code).
        measure: measure of similarity: `passages`, `fused`, `csls`, `centered`, `cosine` or `lexical`.

    >>> tales = Collection.of(["A knight seeks a grail.", "A diver seeks a pearl.", "A bank lowers its rates."])
    >>> len(tales), tales.vectors.shape, tales["2"].text
    (3, (3, 384), 'A diver seeks a pearl.')
    """

    store: StoryStore
    encoder: StoryEncoder
    about: dict[str, Any]
    measure: MeasureName = DEFAULT_MEASURE
    _measured: dict[MeasureName, MeasuredStories] = field(default_factory=dict, repr=False)
    _other_frame: pd.DataFrame | None = field(default=None, repr=False)

    @classmethod
    def read(
        cls,
        source: str | Path,
        encoder: StoryEncoder | str | Path = DEFAULT_MODEL,
        *,
        measure: MeasureName | None = None,
        layout: Layout = Layout(),
        progress: bool = False,
    ) -> "Collection":
        """Read the stories of a file or folder and embed them.

        Args:
            source: a folder with one story per file, a table (CSV, TSV, Excel, Parquet, JSON Lines), a text file or a
                document.
            encoder: encoder from `narrlit.load`, or the name of a model.
            measure: measure of similarity; None: `passages`, or `csls` for a model that can't embed passages.
            layout: columns and lines of the stories.
            progress: print how files were read, and show a progress bar, on stderr.

        Raises:
            DataError: if the stories can't be read, or two have the same id.
            ModelError: if the model can't be loaded, or has separate prompts for anchors and candidates.
        """
        stories = read_stories(str(source), layout=layout)
        if progress:
            say(stories.report.summary())
        return cls.of(stories, encoder, measure=measure, source=str(source), progress=progress)

    @classmethod
    def of(
        cls,
        stories: Stories | pd.DataFrame | Sequence[str],
        encoder: StoryEncoder | str | Path = DEFAULT_MODEL,
        *,
        measure: MeasureName | None = None,
        source: str = "stories",
        progress: bool = False,
    ) -> "Collection":
        """Embed stories.

        Args:
            stories: texts, a DataFrame with a column text (and id, title, metadata), or the result of `read_stories`.
            encoder: encoder from `narrlit.load`, or the name of a model.
            measure: measure of similarity; None: `passages`, or `csls` for a model that can't embed passages.
            source: origin of the stories, for reports.
            progress: show a progress bar on stderr.

        Raises:
            DataError: if two stories have the same id.
            ModelError: if the model can't be loaded, or has separate prompts for anchors and candidates.
        """
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        frame, texts = story_frame(rows), list(rows)
        model = encoder if isinstance(encoder, StoryEncoder) else load(encoder)
        model = model.fitted_for(texts)
        model.require_one_prompt("a collection")
        chosen = measure_for(model, measure)
        vectors = model.embed(texts, progress=progress)
        if progress:
            say_truncated(model.coverage, model.facts.max_length, *model.facts.unit)
        about = {
            "source": source,
            "model": model.name,
            "dimension": model.dimension,
            "long": model.loading.long,
            "share_read": model.coverage.share,
            "languages": languages(model, frame["text"].tolist()),
        }
        digests = content_digests(frame, texts if model.texts.views is None else model.prepare(texts))
        return cls(StoriesInMemory(frame, digests, unit_vectors(vectors), model), model, about, chosen)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per story: id, title (may be empty), text, then the metadata columns."""
        return self.store.frame() if self._other_frame is None else self._other_frame

    def with_frame(self, frame: pd.DataFrame) -> "Collection":
        """Return the collection with other metadata; searches still read those of its store."""
        return replace(self, _other_frame=frame)

    @property
    def vectors(self) -> FloatArray:
        """Embeddings (N, D); row i belongs to row i of the frame."""
        return self.store.vectors

    @cached_property
    def passages(self) -> list[Passages]:
        """Passages of each story, which are embedded on first access if the stories are in memory.

        Raises:
            ModelError: if the model can't embed single texts.
        """
        if not self.store.has_passages:
            self.encoder.require_text()
        return self.store.passages()

    @property
    def similarities(self) -> CollectionSimilarity:
        """Similarities of the stories by the measure of the collection."""
        return self.measured().similarities

    def similarities_by(self, measure: MeasureName) -> CollectionSimilarity:
        """Compare the stories by another measure."""
        return self.measured(measure).similarities

    def measured(self, measure: MeasureName | None = None) -> MeasuredStories:
        """Return the stories with a measure that is fitted on them; None: the measure of the collection.

        Raises:
            ModelError: if the measure needs passages, and the stories have none.
            OptionError: if there is no such measure.
        """
        name = self.measure if measure is None else check_measure(measure)
        if name in READ_PASSAGES and not self.store.has_passages:
            raise ModelError("measure_without_passages", measure=name, path=self.about["source"])
        if name not in self._measured:
            self._measured[name] = MeasuredStories(self.store, StoriesFit.current(name, self.store))
        return self._measured[name]

    def search(
        self,
        text: str | Sequence[str],
        k: int = 10,
        *,
        where: str | None = None,
        measure: MeasureName | None = None,
        distinct: float | None = None,
        leave_out_text: bool = False,
    ) -> SearchResults:
        """Find the stories most similar to a text, or to each of several.

        A collection of up to 1,000 stories is searched exhaustively. In a larger one, measures based on passages or
        words rank about 200 candidates: the stories with the nearest passages, reduced to principal components, and the
        best by BM25 if they are in an index. Conditions on stories in memory need the extra `explore`.

        Args:
            text: a query, or a whole story; or several, which are embedded together.
            k: number of results per query.
            where: SQL condition on the columns, such as `year < 1900`.
            measure: `passages`, `fused`, `csls`, `centered`, `cosine` or `lexical`; None: `passages`, or `csls` for a
                model that can't embed passages.
            distinct: exclude stories with at least this cosine to a better result.
            leave_out_text: exclude stories with the text of the query, whatever its case and white space.

        Returns:
            The `SearchResults`: `.table()`, `.write(path)`. Their table has up to k rows per query, best first: rank
            from 1, id, title, similarity (by the measure), snippet (the best matching passage), and the metadata
            columns. For several queries, a first column, query, numbers them from 0.

        Raises:
            ModelError: if the measure needs passages, and the model can't embed them.
            OptionError: if the text is empty or the condition is invalid.
            DataError: if there are several texts, and the index has a column query.
        """
        options = SearchOptions(k, where, measure, None, distinct, leave_out_text)
        texts = [text] if isinstance(text, str) else list(text)
        if not texts or not all(map(str.strip, texts)):
            raise OptionError("empty_query")
        stories = self._prepared(options)
        contents = self._contents_of(texts)
        tables = []
        for number in range(len(texts)):
            query = Query(contents.take(np.array([number])))
            tables.append(stories.table(query, options))
        if isinstance(text, str):
            return SearchResults(texts, tables[0])
        if "query" in tables[0].columns:
            raise DataError("reserved_query_column", path=self.about["source"])
        for number, table in enumerate(tables):
            table.insert(0, "query", number)
        return SearchResults(texts, pd.concat(tables, ignore_index=True))

    def like(
        self,
        id: str,
        k: int = 10,
        *,
        where: str | None = None,
        measure: MeasureName | None = None,
        exclude_same: str | None = None,
        distinct: float | None = None,
    ) -> SearchResults:
        """Find the stories most similar to one of these stories, excluding that story; the model is not loaded.

        Args:
            id: id of the story.
            k: number of stories.
            where: SQL condition on the columns.
            measure: as in `search`.
            exclude_same: column, such as author; stories with the same value as this story are excluded.
            distinct: exclude stories with at least this cosine to a better result or to this story.

        Returns:
            The `SearchResults`, with the columns of `search`.

        Raises:
            ModelError: if the measure needs passages, and the model can't embed them.
            OptionError: if there is no such story or column, or the condition is invalid.
        """
        options = SearchOptions(k, where, measure, exclude_same, distinct)
        row = self.store.row_of.get(normal_form(id))
        if row is None:
            path, near = self.about["source"], nearest(id, self.store.ids)
            raise OptionError("unknown_story", path=path, id=printable(id, 60), near=near)
        stories, rows = self._prepared(options), np.array([row])
        if exclude_same is not None:
            options = replace(options, where=self._others(row, exclude_same, where))
        passages = self.store.passage_vectors(rows) if self.store.has_passages else None
        contents = Contents(self.store.vectors_at(rows), self.store.texts(rows), passages)
        return SearchResults([id], stories.table(Query(contents, row), options))

    def _others(self, row: int, column: str, where: str | None) -> str | None:
        """Extend a condition to exclude stories with the same value in a column as the given story."""
        [story] = self.store.frame(np.array([row])).to_dict("records")
        column = normal_form(column)
        if column not in story:
            raise OptionError("unknown_column_of_index", column=column, columns=column_list(self.store.table))
        if story[column] is None:
            return where
        others = f"(`{column}` != {quoted(story[column])} OR `{column}` IS NULL)"
        return others if where is None else f"({where}) AND {others}"

    def _contents_of(self, texts: Sequence[str]) -> Contents:
        """Embed queries and, if the stories have passages, their passages."""
        encoder = self._query_encoder
        if not self.store.has_passages:
            return Contents(unit_vectors(encoder.embed(texts)), texts)
        vectors, passages = encoder.embed_with_passages(texts)
        return Contents(unit_vectors(vectors), texts, passage_vectors(passages))

    @cached_property
    def _query_encoder(self) -> StoryEncoder:
        """The encoder without torch, if it was exported."""
        return self.encoder.exported()

    def _prepared(self, options: SearchOptions) -> MeasuredStories:
        """Check the options of a search, and return the stories with its measure."""
        if options.where is not None:
            check_condition(self.store.table, options.where)
        return self.measured(options.measure)

    def compared_by(self, measure: MeasureName | None) -> "Collection":
        """Return the collection with another measure; None returns it unchanged.

        Raises:
            ModelError: if the measure needs passages, and the encoder can't embed them.
            OptionError: if there is no such measure.
        """
        if measure is None:
            return self
        return replace(self, measure=measure_for(self.encoder, measure))

    def contents(self, measure: MeasureName) -> Contents:
        """Return what a measure needs of the stories."""
        return self.store.contents(measure)

    @property
    def stories(self) -> list[Story]:
        """The stories, with their ids."""
        return list(map(Story, self.frame["id"], self.frame["text"]))

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self.store)

    def __contains__(self, id: str) -> bool:
        """Return True if there is a story with this id."""
        return normal_form(id) in self.store.row_of

    def __getitem__(self, id: str) -> Story:
        """Return the story with an id.

        Raises:
            KeyError: if there is none.
        """
        if id not in self:
            raise KeyError(f"no story {id!r}{did_you_mean(id, self.store.ids)}")
        row = self.frame.iloc[self.store.row_of[normal_form(id)]]
        return Story(row["title"] or row["id"], row["text"])

    def table(self) -> pd.DataFrame:
        """Return a copy of the frame."""
        return self.frame.copy()

    def __repr__(self) -> str:
        return f"Collection({counted(len(self), 'story')} of {self.about['source']}, {self.encoder.name})"

    def _repr_html_(self) -> str:
        shown = self.frame.head().to_html(index=False)
        return f"<p>{escape(repr(self))}</p>{shown}"


def measure_for(encoder: StoryEncoder, measure: MeasureName | None) -> MeasureName:
    """Choose a measure for an encoder: `passages`, or `csls` if it can't embed passages.

    Raises:
        ModelError: if the requested measure needs passages, and the encoder can't embed them.
        OptionError: if there is no such measure.
    """
    if measure is None:
        return DEFAULT_MEASURE if encoder.facts.reads == "text" else "csls"
    if check_measure(measure) in READ_PASSAGES:
        encoder.require_text()
    return measure


def column_values(collection: Collection, column: str, option: str) -> list[object]:
    """Return the value (N,) of each story in a metadata column; None for an empty cell.

    Args:
        collection: N stories.
        column: name of the column.
        option: option that has the name, for messages.

    Raises:
        OptionError: if there is no such column.
    """
    columns = metadata_columns(collection.frame)
    column = normal_form(column)
    if column not in columns:
        raise OptionError(
            "unknown_column",
            option=option,
            column=column,
            source=collection.about["source"],
            near=nearest(column, columns),
            known=columns or "none",
        )
    return list(collection.frame[column])


def languages(encoder: StoryEncoder, texts: Sequence[str]) -> dict[str, int]:
    """Count the texts of a sample by language; warn of languages that the encoder does not support."""
    counts = detect_languages(texts)
    warning = language_warning(encoder.facts.vocabulary, counts)
    if warning:
        say(warning)
    return dict(counts)
