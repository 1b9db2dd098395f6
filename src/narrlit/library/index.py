"""Index of stories: a folder with texts, metadata and embeddings that can be updated and searched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories
from narrlit.data.schema import FloatArray, normal_form
from narrlit.encoding.exported import can_export, is_exported
from narrlit.encoding.loading import load
from narrlit.encoding.options import Device, Loading
from narrlit.encoding.postprocessing import Postprocessing
from narrlit.encoding.story_encoder import Passages, StoryEncoder, unit_vectors
from narrlit.encoding.story_texts import story_texts
from narrlit.errors import (
    DataError,
    ModelError,
    OptionError,
    nearest,
    printable,
    reading,
)
from narrlit.files import exclusive
from narrlit.library.collection import Collection, passage_vectors, stories_of
from narrlit.library.conditions import quoted
from narrlit.library.index_fit import IndexFit, all_contents
from narrlit.library.index_record import IndexRecord, IndexSettings, identity
from narrlit.library.index_snapshot import IndexSnapshot
from narrlit.library.index_storage import IndexStorage, check_name
from narrlit.library.index_writing import Changes, NewStories, OnProgress, commit_stories
from narrlit.library.options import SearchOptions, VectorFormat, index_at
from narrlit.library.ranking import MeasuredIndex, Query
from narrlit.library.search_results import SearchResults
from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.names import DEFAULT_MEASURE, READ_PASSAGES, MeasureName, check_measure
from narrlit.measures.representations import Contents
from narrlit.models.config import DEFAULT_MODEL, parse_fusion
from narrlit.models.coverage import Coverage
from narrlit.preprocessing.pseudonyms import PseudonymOptions


class Index:
    """Stories and their embeddings in a LanceDB folder, with a record of the encoder.

    The folder contains the table `stories` (id, title, text, vector, passages, the metadata columns), which any LanceDB
    client can read; index.json with the model and its settings, so that queries are encoded like the stories; and fits/
    with the fitted state of measures.

    Attributes:
        path: the folder.

    >>> index = Index.create(getfixture("tmp_path") / "i", ["A knight seeks a grail.", "A bank lowers its rates."])
    >>> index.search("A diver seeks a pearl.", k=1).table().id.tolist()
    ['1']
    """

    def __init__(
        self,
        path: str | Path,
        *,
        encoder: str | StoryEncoder | None = None,
        device: Device = "auto",
        trust_remote_code: bool = False,
    ) -> None:
        """Open an index.

        Args:
            path: the folder.
            encoder: path of the model, if it was moved; or an encoder with the settings of the index, which is not
                loaded again; None: the recorded path.
            device: device on which queries are encoded.
            trust_remote_code: run Python files that come with the model.

        Raises:
            DataError: if there is no index, or it is damaged.
            OptionError: if `encoder` is not the model of the index.
        """
        self._storage = IndexStorage(path)
        self._measures: dict[MeasureName, MeasuredIndex] = {}
        self.path = self._storage.path
        record = self._storage.record
        if isinstance(encoder, StoryEncoder):
            self._check_settings(IndexSettings.of(encoder).model_dump())
            self._encoder = encoder
            return
        with reading("unreadable_index", path):
            self._encoder = query_encoder(encoder or record.model_path, record.settings, device, trust_remote_code)
        if encoder is not None:
            self._check_settings(identity(encoder))

    @classmethod
    def create(
        cls,
        path: str | Path,
        stories: Stories | pd.DataFrame | Sequence[str],
        encoder: str | Path | StoryEncoder = DEFAULT_MODEL,
        *,
        vectors: VectorFormat | None = None,
        overwrite: bool = False,
        update: bool = False,
        progress: bool = False,
        on_progress: OnProgress = lambda _: None,
    ) -> "Index":
        """Create an index, or add stories to it; a story replaces the one with the same id.

        Stories are committed every second or two, and unchanged ones are not embedded again: repeat the call to resume
        after an interruption. Meanwhile other processes may search the index, but not write to it.

        Args:
            path: the folder; new, or an index made with the same model and settings.
            stories: texts, a DataFrame with a column text (and id, title, metadata), or the result of `read_stories`.
            encoder: a model folder, a run folder, a checkpoint, a hub id, `narrlit-mini` or `minilm`; or an
                encoder from `narrlit.load`.
            vectors: number format of the stories' vectors: `float32`, `float16`, or `int8` or `binary`, which are
                `float16` with an index of 8 bits or 1 bit per dimension that selects candidates in a large index; None:
                `float32`, or the format of the index.
            overwrite: replace an index by one of these stories alone.
            update: remove the stories of an index that are not among these, as the method `update` does.
            progress: print messages and a progress bar on stderr.
            on_progress: function that is called with the number of stories and words in the index, at the beginning and
                whenever stories are committed.

        Raises:
            DataError: if a story or a column can't be indexed.
            OptionError: if `path` contains something else or an index made with another model, or another process
                writes to it.
        """
        check_name(path)
        encoder = encoder if isinstance(encoder, StoryEncoder) else load(encoder)
        if encoder.postprocessing is not None and encoder.postprocessing.is_fitted:
            raise OptionError("postprocessed_index", steps=encoder.postprocessing.steps)
        new = NewStories.of(stories, encoder)
        record = IndexRecord.of(encoder, vectors or "float32")
        if not index_at(path):
            IndexStorage.create(path, new.frame, record)
        elif overwrite:
            with exclusive(path):
                IndexStorage.create(path, new.frame, record, overwrite=True)
        with exclusive(path):
            index = cls(path)
            index._check_settings(record.settings.model_dump())
            index._check_format(vectors)
            index._encoder = encoder
            index._write(new, update, progress, on_progress)
        return index

    def _write(self, new: NewStories, removes_others: bool, progress: bool, on_progress: OnProgress) -> Changes:
        """Embed and commit new and changed stories, and remove others if they are to be removed."""
        changes = commit_stories(
            self._storage,
            self._encoder,
            new,
            removes_others=removes_others,
            progress=progress,
            on_progress=on_progress,
        )
        self._fit()
        if progress:
            if removes_others:
                say(f"{self.path}: {changes}")
            facts = self._encoder.facts
            say_truncated(self.coverage, facts.max_length, *facts.unit)
        return changes

    @property
    def about(self) -> dict[str, Any]:
        """Contents of index.json, as plain data."""
        return self._storage.record.as_dict()

    @property
    def settings(self) -> dict[str, str]:
        """Parameters of `narrlit.load` with which the index was made, by name."""
        return self._storage.record.settings.parameters

    def __len__(self) -> int:
        """Return the number of stories."""
        return len(self._storage)

    def __contains__(self, id: str) -> bool:
        """Return True if there is a story with this id."""
        return id in self._storage

    @property
    def version(self) -> int:
        """Number of the newest version of the stories: it grows when stories are added, replaced or deleted."""
        return self._storage.version

    @property
    def coverage(self) -> Coverage:
        """Share of the text of the stories that was embedded."""
        return self._storage.coverage

    @cached_property
    def encoder(self) -> StoryEncoder:
        """Encoder of the queries.

        Raises:
            ModelError: if the model is no longer at its recorded path.
            OptionError: if it has changed.
        """
        self._check_settings(identity(self._encoder.name))
        return self._encoder

    @cached_property
    def _query_encoder(self) -> StoryEncoder:
        """The encoder without torch, if `prepare_search` has exported it."""
        return self.encoder.exported()

    def encode(self, text: str) -> FloatArray:
        """Encode a text like the stories of the index: (D,) unit vector."""
        vector: FloatArray = unit_vectors(self._query_encoder.embed([text]))[0]
        return vector

    def prepare_search(self) -> bool:
        """Make later searches start faster: in new processes they need no torch and, in a small index, no LanceDB.

        The encoder is exported to ONNX once per model and settings, to the user's cache (`$NARRLIT_CACHE`, by
        default ~/.cache/narrlit). The stories of an index of up to 1,000 are copied to the file
        search.arrow of the index, and again whenever they change. `narrlit index` calls this method.

        Returns:
            False if nothing was prepared: the extra `onnx` is not installed, the model can't be exported (one that
            reads views or sentences, in half precision or quantized, or with `fusion`), or the export failed, which is
            printed on stderr.

        Raises:
            OptionError: if another process writes to the index, or the model has changed.
        """
        folder = self.encoder.export_folder
        if folder is None or not (is_exported(folder) or self._export()):
            return False
        with exclusive(self.path):
            self._storage.store_snapshot()
        return True

    def _export(self) -> bool:
        """Export the encoder if the extra `onnx` is installed; print a failure on stderr, and return False."""
        if not can_export():
            return False
        from narrlit.exporting.onnx import export_for_search  # a slow import, for the first index of a model only

        try:
            return export_for_search(self.encoder) is not None
        except (ModelError, OptionError) as error:
            say(f"{error}; searches load the model with torch")
            return False

    def upsert(
        self,
        stories: Stories | pd.DataFrame | Sequence[str],
        *,
        progress: bool = False,
        on_progress: OnProgress = lambda _: None,
    ) -> int:
        """Add stories, or replace those with the same ids; unchanged ones are not embedded again.

        Args:
            stories: texts, a DataFrame with a column text (and id, title, metadata), or the result of `read_stories`.
            progress: print messages and a progress bar on stderr.
            on_progress: as in `create`.

        Returns:
            Number of new stories.

        Raises:
            DataError: if a story or a column can't be indexed.
            OptionError: if another process writes to the index, or the model has changed.
        """
        return self._rewrite(stories, False, progress, on_progress).added

    def update(
        self,
        stories: Stories | pd.DataFrame | Sequence[str],
        *,
        progress: bool = False,
        on_progress: OnProgress = lambda _: None,
    ) -> Changes:
        """Make these stories the only ones of the index: add new ones, replace changed ones, and remove all others.

        Unchanged stories are not embedded again. Others are removed at the end: after an interruption, repeat the call.

        Args:
            stories: texts, a DataFrame with a column text (and id, title, metadata), or the result of `read_stories`.
            progress: print messages and a progress bar on stderr.
            on_progress: as in `create`.

        Returns:
            Numbers of stories: `.added`, `.replaced`, `.removed`, `.unchanged`.

        Raises:
            DataError: if a story or a column can't be indexed.
            OptionError: if another process writes to the index, or the model has changed.
        """
        return self._rewrite(stories, True, progress, on_progress)

    def _rewrite(
        self,
        stories: Stories | pd.DataFrame | Sequence[str],
        removes_others: bool,
        progress: bool,
        on_progress: OnProgress,
    ) -> Changes:
        """Write stories to the newest version of the index, which another process may have changed."""
        new = NewStories.of(stories, self.encoder)
        with exclusive(self.path):
            self._storage = IndexStorage(self.path)
            return self._write(new, removes_others, progress, on_progress)

    def add(self, stories: Stories | pd.DataFrame | Sequence[str], *, progress: bool = False) -> int:
        """Add new stories, as `upsert` does.

        Raises:
            DataError: if the index already has a story with the same id.
        """
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        for id in rows.story_ids:
            if id in self:
                raise DataError("id_in_index", path=self.path, id=printable(id, 60))
        return self.upsert(rows, progress=progress)

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove stories by their ids.

        Returns:
            Number of stories that were removed.

        Raises:
            OptionError: if there is no such story, or another process writes to the index.
        """
        chosen = [ids] if isinstance(ids, str) else list(ids)
        stored = {normal_form(id): id for id in self._storage.digests()}
        for id in chosen:
            if normal_form(id) not in stored:
                raise OptionError("no_story_to_remove", path=self.path, id=printable(id, 60), near=nearest(id, stored))
        chosen = [stored[normal_form(id)] for id in chosen]
        with exclusive(self.path):
            self._storage.delete(chosen)
            self._storage.finish(changed=True)
            self._fit()
        return len(set(chosen))

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

        An index of up to 1,000 stories is searched exhaustively. In a larger one, measures based on passages or words
        rank about 200 candidates: the stories with the nearest passages, reduced to principal components, and the best
        by BM25.

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
        stories = self._measured(options)
        contents = self._contents_of(texts)
        tables = []
        for number in range(len(texts)):
            query = Query(contents.take(np.array([number])))
            tables.append(stories.table(query, options))
        if isinstance(text, str):
            return SearchResults(texts, tables[0])
        if "query" in tables[0].columns:
            raise DataError("reserved_query_column", path=self.path)
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
        """Find the stories most similar to a story of the index, excluding that story; the model is not loaded.

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
        if id not in self:
            raise OptionError(
                "unknown_story", path=self.path, id=printable(id, 60), near=nearest(id, self._storage.digests())
            )
        stories = self._measured(options)
        row = stories.snapshot.row_of[normal_form(id)]
        if exclude_same is not None:
            options = replace(options, where=self._others(stories.snapshot, row, exclude_same, where))
        query = Query(all_contents(stories.snapshot, np.array([row])), row)
        return SearchResults([id], stories.table(query, options))

    def _others(self, snapshot: IndexSnapshot, row: int, column: str, where: str | None) -> str | None:
        """Extend a condition to exclude stories with the same value in a column as the given story."""
        [story] = snapshot.frame(np.array([row])).to_dict("records")
        column = normal_form(column)
        if column not in story:
            raise OptionError("unknown_column_of_index", column=column, columns=self._storage.column_list)
        if story[column] is None:
            return where
        others = f"(`{column}` != {quoted(story[column])} OR `{column}` IS NULL)"
        return others if where is None else f"({where}) AND {others}"

    def _contents_of(self, texts: Sequence[str]) -> Contents:
        """Embed queries and, if the index has passages, their passages."""
        encoder = self._query_encoder
        if not self._storage.record.passages:
            return Contents(unit_vectors(encoder.embed(texts)), texts)
        vectors, passages = encoder.embed_with_passages(texts)
        return Contents(unit_vectors(vectors), texts, passage_vectors(passages))

    def _measure(self, name: str | None) -> MeasureName:
        """Choose a measure as `Collection` does, without loading the model."""
        has_passages = self._storage.record.passages
        if name is None:
            return DEFAULT_MEASURE if has_passages else "csls"
        measure = check_measure(name)
        if measure in READ_PASSAGES and not has_passages:
            raise ModelError("measure_without_passages", measure=measure, path=self.path)
        return measure

    def _measured(self, options: SearchOptions) -> MeasuredIndex:
        """Return the latest version of the index, prepared for a measure.

        Raises:
            DataError: if the index is empty.
            OptionError: if the condition or the measure is invalid.
        """
        self._storage.require_stories()
        if options.where is not None:
            self._storage.check_condition(options.where)
        measure, snapshot = self._measure(options.measure), self._storage.snapshot()
        measured = self._measures.get(measure)
        if measured is None or measured.snapshot is not snapshot:
            measured = MeasuredIndex(snapshot, IndexFit.current(measure, snapshot))
            self._measures[measure] = measured
        return measured

    def _fit(self) -> None:
        """Update the fit of the default measure."""
        if len(self):
            self._storage.set_fit(self._measured(SearchOptions()).fit.record)

    def collection(self) -> "IndexedCollection":
        """Return all stories with their embeddings and passages, without loading the model."""
        self._storage.require_stories()
        snapshot = self._storage.snapshot()
        record = self._storage.record
        about = {
            "source": str(self.path),
            "model": record.settings.model,
            "dimension": record.dimension,
            "long": record.settings.long,
            "share_read": self.coverage.share,
            "languages": record.languages or {},
        }
        measure = self._measure(None)
        return IndexedCollection(snapshot.frame(), snapshot.vectors, self._encoder, about, measure, snapshot=snapshot)

    def _check_settings(self, settings: Mapping[str, object]) -> None:
        """Refuse settings that differ from those of the index."""
        check_settings(self.path, self._storage.record.settings, settings)

    def _check_format(self, vectors: VectorFormat | None) -> None:
        """Refuse a number format of vectors other than that of the index."""
        recorded = self._storage.record.vectors
        if vectors is not None and vectors != recorded:
            raise OptionError("format_of_index", path=self.path, recorded=recorded, vectors=vectors)

    def __repr__(self) -> str:
        model = self._storage.record.settings.model
        return f"Index({str(self.path)!r}, {counted(len(self), 'story')}, {model})"

    def _repr_html_(self) -> str:
        first = self._storage.first_stories(5)
        return f"<p>{escape(repr(self))}</p>{first.to_html(index=False)}"


@dataclass(frozen=True, eq=False, kw_only=True)
class IndexedCollection(Collection):
    """Collection of the stories of an index, which provides their passages.

    Attributes:
        snapshot: snapshot of the index.
    """

    snapshot: IndexSnapshot

    @cached_property
    def passages(self) -> list[Passages]:
        """Passages of each story.

        Raises:
            ModelError: if the model can't embed single texts.
        """
        if not self.snapshot.has_passages:
            self.encoder.require_text()
        return self.snapshot.passages()

    def similarities_by(self, measure: MeasureName) -> CollectionSimilarity:
        """Compute similarities by a measure with its fit on the index."""
        if measure in READ_PASSAGES and not self.snapshot.has_passages:
            self.encoder.require_text()
        return MeasuredIndex(self.snapshot, IndexFit.current(measure, self.snapshot)).similarities


def check_settings(path: str | Path, index_settings: IndexSettings, settings: Mapping[str, object]) -> None:
    """Compare settings with those of an index.

    Args:
        path: the index, for messages.
        index_settings: settings with which it was made.
        settings: some settings by name, such as the result of `identity`.

    Raises:
        OptionError: if one differs.
    """
    recorded = index_settings.model_dump()
    for name, value in settings.items():
        if recorded.get(name) == value:
            continue
        raise _other_setting(path, name, recorded.get(name), value)


def _other_setting(path: str | Path, name: str, recorded: object, found: object) -> OptionError:
    """Make the error for a setting that differs from that of an index; None and False are the default."""
    if name == "files":
        return OptionError("other_files", path=path)
    shown = ["" if value is True else value for value in (recorded, found)]
    if recorded in (None, False):
        return OptionError("not_the_default", path=path, option=name, found=shown[1])
    if found in (None, False):
        return OptionError("default_of_other", path=path, option=name, recorded=shown[0])
    return OptionError("other_setting", path=path, option=name, recorded=shown[0], found=shown[1])


def query_encoder(model: str, settings: IndexSettings, device: Device, trust_remote_code: bool) -> StoryEncoder:
    """Return the encoder for the queries of an index; the model is loaded at the first query."""
    pseudonyms = settings.pseudonyms
    missing_views: Literal["positional", "refuse"] = "positional" if settings.views else "refuse"
    return StoryEncoder(
        model,
        texts=story_texts(None, missing_views, False if pseudonyms is None else PseudonymOptions(**pseudonyms)),
        loading=Loading(settings.max_length, settings.long, settings.precision, device, trust_remote_code),
        fusion=None if settings.fusion is None else parse_fusion(settings.fusion),
        postprocessing=None if settings.postprocess is None else Postprocessing(settings.postprocess),
    )
