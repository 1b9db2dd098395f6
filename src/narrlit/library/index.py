"""Index of stories: a folder with texts, metadata and embeddings that can be updated and searched."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories
from narrlit.data.schema import FloatArray, normal_form
from narrlit.encoding.exported import can_export, is_exported
from narrlit.encoding.loading import load
from narrlit.encoding.options import Device, Loading
from narrlit.encoding.postprocessing import Postprocessing
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
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
from narrlit.library.collection import Collection
from narrlit.library.index_record import IndexRecord, IndexSettings, identity
from narrlit.library.index_storage import IndexStorage, check_name
from narrlit.library.index_writing import Changes, NewStories, OnProgress, commit_stories
from narrlit.library.options import VectorFormat, index_at
from narrlit.library.search_results import SearchResults
from narrlit.library.story_frame import stories_of
from narrlit.measures.names import DEFAULT_MEASURE, MeasureName
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
        self._collection: Collection | None = None
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
        """Find the stories most similar to a text, or to each of several, as `Collection.search` does.

        An index of up to 1,000 stories is searched exhaustively. In a larger one, measures based on passages or words
        rank about 200 candidates: the stories with the nearest passages, reduced to principal components, and the best
        by BM25.
        """
        stories = replace(self.collection(), encoder=self._query_encoder)
        return stories.search(text, k, where=where, measure=measure, distinct=distinct, leave_out_text=leave_out_text)

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
        """Find the stories most similar to a story of the index, as `Collection.like` does; the model is not loaded."""
        return self.collection().like(id, k, where=where, measure=measure, exclude_same=exclude_same, distinct=distinct)

    def _fit(self) -> None:
        """Update the fit of the default measure."""
        if len(self):
            self._storage.set_fit(self.collection().measured().fit.record)

    def collection(self) -> Collection:
        """Return all stories at the newest version with their embeddings and passages, without loading the model."""
        self._storage.require_stories()
        store, record = self._storage.snapshot(), self._storage.record
        if self._collection is None or self._collection.store is not store:
            about = {
                "source": str(self.path),
                "model": record.settings.model,
                "dimension": record.dimension,
                "long": record.settings.long,
                "share_read": self.coverage.share,
                "languages": record.languages or {},
            }
            self._collection = Collection(store, self._encoder, about, DEFAULT_MEASURE if record.passages else "csls")
        return self._collection

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
