"""Index of stories: a LanceDB folder of texts, metadata and vectors that is searched by meaning."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from tqdm import tqdm

from narrlit.cache.storage import model_identity
from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories
from narrlit.data.schema import FloatArray, Story
from narrlit.encoding.loading import load, story_texts
from narrlit.encoding.model_loading import Device, Loading
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import (
    DataError,
    NarrlitError,
    OptionError,
    did_you_mean,
    on_interrupt,
    printable,
    reading,
    reason,
    system_error,
)
from narrlit.explore.collection import RESERVED, Collection, languages, plain, stories_of, story_frame
from narrlit.files import atomic_folder, atomic_path, exclusive
from narrlit.json_records import read_json
from narrlit.models.config import parse_fusion
from narrlit.models.coverage import Coverage
from narrlit.optional import require
from narrlit.preprocessing.pseudonyms import PseudonymOptions
from narrlit.preprocessing.sentences import split_sentences

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT, RECORD, TABLE = "narrlit index 1", "index.json", "stories"
DIGEST = "content_sha256"
_LITERAL, _PLACEHOLDER = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\""), re.compile(r"[$?]|(?<!:):(?!:)")
"""Texts and names in SQL, and signs of a parameter, whose value nobody gives."""
BATCH, SPAN = 1000, 250
"""Stories that are committed together, and those embedded between two steps of the progress bar."""
ANN_FROM = 50_000
"""Stories from which the vectors get an approximate index; below, exact search takes milliseconds."""
ROWS_PER_PROBE = 8192
"""Half of the partitions, of 4,096 rows each, are searched: recall at 10 was .96 with 10 of 24, .999 with 20."""

FIRST_PRINTABLE = 32
"""Code of the first character that is no control character."""
RERANKED = 100
"""Stories that the second stage of a search ranks."""

MOST = 2**53
"""Largest number of words or stories: beyond it, shares could not be computed."""
Count = Annotated[int, Field(ge=0, le=MOST)]


class IndexSettings(BaseModel):
    """Model of an index, and how it reads stories."""

    model_config = ConfigDict(extra="allow")

    model: str
    files: str | None
    max_length: int | None
    long: str
    precision: str | None = None
    views: bool
    fusion: Any
    pseudonyms: dict[str, Any] | None


class CoverageRecord(BaseModel):
    """Fields of `models.coverage.Coverage`, whose module needs seconds to import."""

    model_config = ConfigDict(extra="forbid")

    words: Count
    read: float = Field(ge=0, le=MOST)
    texts: Count
    long: Count
    least: float = Field(ge=0, le=1)


class IndexRecord(BaseModel):
    """Contents of index.json; an index without stories has no coverage and languages yet."""

    model_config = ConfigDict(extra="allow")

    format: str
    model_path: str
    settings: IndexSettings
    dimension: int
    coverage: CoverageRecord | None = None
    languages: dict[str, int] | None = None


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        k: number of stories.
        where: condition on the columns in SQL, such as "country = 'France' AND year < 1900".
        hybrid: rank by vectors and by words (BM25) together, by reciprocal rank fusion.
        rerank: rank the first hundred again, by the cosine plus the Mean-Max similarity of their sentences; takes
            seconds.
        exclude_same: column, such as author; stories with the value of the story of --like are left out.
        distinct: leave out near-copies, stories whose similarity with a better result, or with the story of --like,
            reaches this; 0.95 is usual.
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


class Index:
    """Stories in a LanceDB folder, with the model that their vectors are from.

    The folder holds the table `stories` (id, title, text, vector, the metadata columns), which any LanceDB client
    reads, and index.json (the model and its settings), by which queries are encoded as the stories were.

    Attributes:
        path: the folder.
        about: contents of index.json.

    >>> index = Index.create(getfixture("tmp_path") / "i", ["A knight seeks a grail.", "A bank lowers its rates."])
    >>> index.search("A diver seeks a pearl.", k=1).id.tolist()
    ['1']
    """

    def __init__(
        self, path: str | Path, *, model: str | None = None, device: Device = "auto", trust_remote_code: bool = False
    ) -> None:
        """Open an index.

        Args:
            path: the folder.
            model: where the model is now; None: where it was.
            device: where queries are encoded.
            trust_remote_code: run Python files that come with the model.

        Raises:
            DataError: if there is no index, or it is broken.
            OptionError: if `model` is another than the index was made with.
        """
        lancedb = require("lancedb", "explore")
        self.path = Path(path)
        if not index_at(path):
            raise DataError(f"{path} is no index; make one: narrlit index STORIES --model M --out {path}")
        remedy = "remove the folder and index again"
        record = read_json(self.path / RECORD, IndexRecord, "index", remedy)
        self.about: dict[str, Any] = record.model_dump(exclude_unset=True)
        with reading("index", path, remedy):
            if self.about["format"] != FORMAT:
                raise DataError(f"index {path}: its format is {self.about['format']}, not {FORMAT}; index again")
            settings = self.about["settings"]
            pseudonyms = settings["pseudonyms"]
            self._encoder = StoryEncoder(  # the model is looked for when a query is encoded
                model or self.about["model_path"],
                texts=story_texts(
                    None,
                    "positional" if settings["views"] else "refuse",
                    False if pseudonyms is None else PseudonymOptions(**pseudonyms),
                ),
                loading=Loading(
                    settings["max_length"], settings["long"], settings.get("precision"), device, trust_remote_code
                ),
                fusion=None if settings["fusion"] is None else parse_fusion(settings["fusion"]),
            )
        if model is not None:
            self._check_settings(_identity(model))
        _check_name(path)
        with self._guard():
            # Another process may add stories: each call sees the newest version.
            database = lancedb.connect(str(path), read_consistency_interval=timedelta(0))
            self._table = database.open_table(TABLE)

    @classmethod
    def create(
        cls,
        path: str | Path,
        stories: "Stories | pd.DataFrame | Sequence[str]",
        model: str | Path | StoryEncoder = "minilm",
        *,
        progress: bool = False,
    ) -> "Index":
        """Create an index, or add stories to it; a story replaces the one with its id.

        Stories are committed by the thousand, and one that is there unchanged is not embedded again: after an
        interruption, the same call goes on. Another process may search the index meanwhile, but not write it.

        Args:
            path: the folder: new, or an index made with the same model and settings.
            stories: texts, a table with a column text (and id, title, metadata), or what `read_stories` returns.
            model: a model folder, a run folder, a checkpoint, a hub id or `minilm`; or an encoder from `narrlit.load`.
            progress: print what is done, with a progress bar, on stderr.

        Raises:
            DataError: if a story or a column can't be indexed.
            OptionError: if `path` holds something else, or an index made with another model, or another process
                writes it.
        """
        _check_name(path)
        encoder = model if isinstance(model, StoryEncoder) else load(model)
        if encoder.postprocessing is not None:
            raise OptionError("`postprocess`: write a model with it (narrlit export), and index with that")
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        frame = story_frame(rows)
        encoder.require_one_prompt("narrlit index")
        settings = _settings(encoder)
        reads_views = encoder.texts.views is not None
        attached = encoder.prepare(list(rows)) if reads_views else list(rows)
        frame[DIGEST] = _digests(frame, attached)
        if not index_at(path):
            name = encoder.name
            place = str(Path(name).absolute()) if Path(name).exists() else name
            record = {"format": FORMAT, "model_path": place, "settings": settings, "dimension": encoder.dimension}
            try:
                _create_empty(Path(path), frame, record)
            except (OptionError, OSError):
                if not index_at(path):  # another process has made it meanwhile
                    raise
        with exclusive(path):
            index = cls(path)
            index._check_settings(settings)
            index._encoder = encoder

            def prepare(batch: list[int]) -> Sequence[Story]:
                """Prepare the stories of some rows for the model."""
                chosen = [attached[row] for row in batch]
                return chosen if reads_views else encoder.prepare(chosen)

            index._add(frame, rows, prepare, encoder, progress)
        return index

    def _add(
        self,
        frame: "pd.DataFrame",
        rows: Stories,
        prepare: Callable[[list[int]], Sequence[Story]],
        encoder: StoryEncoder,
        progress: bool,
    ) -> None:
        """Embed and commit the stories of a frame that are not there unchanged; `prepare` returns those of rows."""
        known = frame["id"].map(self._digests())
        fresh = np.flatnonzero(frame[DIGEST] != known)
        if not any(rows.ids) and known.notna().any() and len(fresh) == len(frame):
            raise DataError(
                f"{rows.report.path} has no column of ids, and its numbers from 1 are ids of other stories in "
                f"{self.path}: give the stories ids, or make a new index"
            )
        if progress and len(fresh) < len(frame):
            say(f"{self.path}: {len(frame) - len(fresh):,} of {counted(len(frame), 'story')} are there unchanged")
        self.about["languages"] = languages(encoder, frame["text"].tolist())
        columns = self._columns(frame)
        bar = tqdm(total=len(fresh), desc="indexing", unit="story", disable=not progress, delay=0.5)
        with bar, on_interrupt("finished batches are kept: the same command goes on"):
            try:
                for start in range(0, len(fresh), BATCH):
                    batch = fresh[start : start + BATCH].tolist()
                    self._commit(columns.take(batch), *_vectors(encoder, prepare(batch), bar.update))
            except NarrlitError:
                if not len(self):  # its settings would refuse the remedy, such as --long windows
                    shutil.rmtree(self.path)
                raise
        self._finish(changed=len(fresh) > 0)
        if progress:
            say_truncated(self.coverage, encoder.facts.max_length, *encoder.facts.unit)

    @property
    def settings(self) -> str:
        """Options that the index was made with, as the command line has them."""
        made = self.about["settings"]
        options = [f"--model {made['model']}", f"--long {made['long']}"]
        if made["max_length"] is not None:
            options.append(f"--max-length {made['max_length']}")
        if made["views"]:
            options.append("--views")
        if made["fusion"] is not None:
            options.append(f"--fusion {made['fusion']}")
        if made["pseudonyms"] is not None:
            options.append("--pseudonymize")
        return " ".join(options)

    def __len__(self) -> int:
        """Count the stories."""
        with self._guard():
            return int(self._table.count_rows())

    def __contains__(self, id: str) -> bool:
        """Return whether there is a story with this id."""
        with self._guard():
            return bool(self._table.count_rows(f"id = {_quoted(id)}"))

    @property
    def coverage(self) -> Coverage:
        """Share of the embedded stories that was read."""
        return Coverage(**(self.about.get("coverage") or {}))

    @cached_property
    def encoder(self) -> StoryEncoder:
        """Encoder of the queries.

        Raises:
            ModelError: if the model is not where it was.
            OptionError: if it has changed.
        """
        self._check_settings(_identity(self._encoder.name))
        return self._encoder

    def encode(self, text: str) -> FloatArray:
        """Encode a text as the stories were: (D,), of length 1."""
        vector: FloatArray = unit_vectors(self.encoder.embed([text]))[0]
        return vector

    def upsert(self, stories: "Stories | pd.DataFrame | Sequence[str]", *, progress: bool = False) -> int:
        """Add stories; one replaces the story with its id, one that is there unchanged is not embedded again.

        Args:
            stories: texts, a table with a column text (and id, title, metadata), or what `read_stories` returns.
            progress: print what is done, with a progress bar, on stderr.

        Returns:
            Number of stories that were not there before.

        Raises:
            DataError: if a story or a column can't be indexed.
            OptionError: if another process writes the index, or the model has changed.
        """
        before = len(self)
        Index.create(self.path, stories, self.encoder, progress=progress)
        return len(self) - before

    def add(self, stories: "Stories | pd.DataFrame | Sequence[str]", *, progress: bool = False) -> int:
        """Add new stories, as `upsert` does.

        Raises:
            DataError: if a story's id is there.
        """
        rows = stories if isinstance(stories, Stories) else stories_of(stories)
        known = self._digests()
        taken = next((id for id in rows.story_ids if id in known), None)
        if taken is not None:
            raise DataError(f"{self.path} has a story {printable(taken, 60)!r}: give others, or call upsert")
        return self.upsert(rows, progress=progress)

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove stories by their ids.

        Returns:
            Number of stories that were removed.

        Raises:
            OptionError: if there is no such story, or another process writes the index.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        known = self._digests()
        absent = next((id for id in wanted if id not in known), None)
        if absent is not None:
            raise OptionError(
                f"{self.path} has no story {printable(absent, 60)!r}{did_you_mean(absent, known)}; none was removed"
            )
        with exclusive(self.path), self._guard():
            for start in range(0, len(wanted), BATCH):
                listed = ", ".join(_quoted(id) for id in wanted[start : start + BATCH])
                self._table.delete(f"id IN ({listed})")
            self._finish(changed=True)
        return len(set(wanted))

    def search(
        self,
        text: str | Sequence[str],
        k: int = 10,
        *,
        where: str | None = None,
        hybrid: bool = False,
        rerank: Literal["meanmax"] | None = None,
        distinct: float | None = None,
        leave_out_text: bool = False,
        nearest_sentence: bool = True,
    ) -> "pd.DataFrame":
        """Find the stories most similar to a text, or to each of several.

        Args:
            text: a query, or a whole story; or several, which are embedded together.
            k: number of stories for each.
            where: condition on the columns in SQL, such as `year < 1900`.
            hybrid: rank by vectors and by words (BM25) together.
            rerank: rank the first hundred again, by their sentences too.
            distinct: leave out stories whose similarity with a better result reaches this.
            leave_out_text: leave out stories with exactly the text of the query.
            nearest_sentence: show of each result the sentence nearest to the text, which takes most of a search's time;
                otherwise its first sentence.

        Returns:
            Up to k rows for each text, the best first: rank from 1, id, title, similarity (cosine), snippet, and the
            metadata columns; of several texts, their number from 0 in a first column, query.

        Raises:
            ModelError: if the model is to rerank and embeds no single sentences.
            OptionError: for an empty text or a wrong condition.
        """
        import pandas as pd

        how = SearchOptions(k, where, hybrid, rerank, None, distinct, leave_out_text, nearest_sentence)
        texts = [text] if isinstance(text, str) else list(text)
        if not texts or not all(one.strip() for one in texts):
            raise OptionError("the query is empty: write what the stories are about")
        vectors = unit_vectors(self.encoder.embed(texts))
        found = [self._found(one, vector, how) for one, vector in zip(texts, vectors, strict=True)]
        if isinstance(text, str):
            return found[0]
        for number, results in enumerate(found):
            results.insert(0, "query", number)
        return pd.concat(found, ignore_index=True)

    def _found(self, text: str, vector: FloatArray, how: SearchOptions) -> "pd.DataFrame":
        """Return the results of one query, of which the vector (D,) is known."""
        rows = self._nearest(vector, text, ("text", text) if how.leave_out_text else None, how)
        if self.encoder.facts.reads != "text" or not how.nearest_sentence:
            return _results(rows, _first_sentences(rows))
        pieces = [split_sentences(story) for story in rows["text"]]
        vectors = self._sentence_vectors(pieces)
        return _results(rows, [own[int(np.argmax(v @ vector))] for own, v in zip(pieces, vectors, strict=True)])

    def like(
        self,
        id: str,
        k: int = 10,
        *,
        where: str | None = None,
        hybrid: bool = False,
        rerank: Literal["meanmax"] | None = None,
        exclude_same: str | None = None,
        distinct: float | None = None,
    ) -> "pd.DataFrame":
        """Find the stories most similar to one of the index, without that story; only reranking needs the model.

        Args:
            id: id of the story.
            k: number of stories.
            where: condition on the columns in SQL.
            hybrid: rank by vectors and by words (BM25) together.
            rerank: rank the first hundred again, by their sentences too.
            exclude_same: column, such as author; stories with this story's value are left out.
            distinct: leave out stories whose similarity with a better result, or with this story, reaches this.

        Returns:
            As `search`; the snippet is the first sentence.

        Raises:
            OptionError: if there is no such story or column, or the condition is wrong.
        """
        how = SearchOptions(k, where, hybrid, rerank, exclude_same, distinct)
        with self._guard():
            found = self._table.search().where(f"id = {_quoted(id)}").limit(1).to_arrow().to_pylist()
            ids = [] if found else self._table.search().select(["id"]).to_arrow()["id"].to_pylist()
        if not found:
            raise OptionError(f"{self.path} has no story {printable(id, 60)!r}{did_you_mean(id, ids)}")
        story, column = found[0], how.exclude_same
        if column is not None and column not in story:
            raise OptionError(f"`exclude_same={column}`: no such column; {self._column_list}")
        if column is not None and story[column] is not None:
            other = f"(`{column}` != {_quoted(story[column])} OR `{column}` IS NULL)"
            how = replace(how, where=other if how.where is None else f"({how.where}) AND {other}")
        rows = self._nearest(np.array(story["vector"], np.float32), story["text"], ("id", id), how)
        return _results(rows, _first_sentences(rows))

    def collection(self) -> Collection:
        """Return all stories with their vectors; the model is not looked at."""
        self._require_stories()
        with self._guard():
            table = self._table.to_arrow()
            vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
            frame = plain(table.drop_columns(["vector", DIGEST]).to_pandas(integer_object_nulls=True))
        settings = self.about["settings"]
        about = {
            "source": str(self.path),
            "model": settings["model"],
            "dimension": vectors.shape[1],
            "long": settings["long"],
            "share_read": self.coverage.share,
            "languages": self.about.get("languages") or {},
        }
        return Collection(frame, vectors, self._encoder, about)

    def _nearest(
        self, vector: FloatArray, text: str, itself: tuple[str, str] | None, how: SearchOptions
    ) -> "pd.DataFrame":
        """Return up to k rows, the best first, with their similarity; a row is left out that has the value `itself`."""
        from lancedb.query import MatchQuery
        from lancedb.rerankers import RRFReranker

        self._require_stories()
        if how.where is not None:
            self._check_condition(how.where)
        limit = max(RERANKED + 1, 2 * how.k) if how.hybrid or how.rerank else how.k + 1
        while True:
            with self._guard():
                query = self._table.search(vector, query_type="vector")
                if how.hybrid:
                    query = self._table.search(query_type="hybrid").vector(vector).text(MatchQuery(text, "text"))
                    query = query.rerank(RRFReranker())
                if how.where is not None:  # few rows may be left: an approximate search could miss them
                    query = query.where(how.where).bypass_vector_index()
                query = query.distance_type("cosine").nprobes(max(20, len(self) // ROWS_PER_PROBE))
                found = query.limit(limit).to_arrow()
                rows = plain(found.to_pandas(integer_object_nulls=True))
            fewer = len(rows) < limit
            if itself is not None:
                rows = rows[rows[itself[0]] != itself[1]].reset_index(drop=True)
            vectors = np.stack(rows["vector"]) if len(rows) else np.empty((0, len(vector)), np.float32)
            rows["similarity"] = vectors @ vector
            order = list(range(len(rows)))
            if how.rerank is not None:
                first = rows["similarity"][:RERANKED] + self._meanmax(text, rows["text"][:RERANKED].tolist())
                order[:RERANKED] = np.argsort(-first.to_numpy(float), kind="stable").tolist()
            chosen, better = [], [] if itself is None else [vector]
            for row in order:
                if how.distinct is None or all(vectors[row] @ other < how.distinct for other in better):
                    chosen.append(row)
                    better.append(vectors[row])
            if len(chosen) >= how.k or fewer:
                return rows.iloc[chosen[: how.k]].reset_index(drop=True)
            limit *= 4

    def _meanmax(self, text: str, others: Sequence[str]) -> Any:
        """Compare a text with others (N,) by Mean-Max of their sentences, the mean of both directions."""
        from narrlit.metrics.meanmax import max_similarity

        self.encoder.require_text()
        own, *stories = self._sentence_vectors([split_sentences(story) for story in (text, *others)])
        return np.array([max_similarity(own, story) + max_similarity(story, own) for story in stories]) / 2

    def _sentence_vectors(self, pieces: Sequence[Sequence[str]]) -> list[Any]:
        """Embed the sentences of stories, (S, D) each."""
        sentences = [sentence for own in pieces for sentence in own]
        vectors = unit_vectors(self.encoder.embed_prepared(sentences, ["story"] * len(sentences)))
        return np.split(vectors, np.cumsum([len(own) for own in pieces])[:-1]) if pieces else []

    def _require_stories(self) -> None:
        if not len(self):
            raise DataError(
                f"index {self.path} has no story yet: its first run was interrupted; give narrlit index again"
            )

    def _check_condition(self, where: str) -> None:
        if _PLACEHOLDER.search(_LITERAL.sub("", where)):  # LanceDB panics
            raise OptionError(f"`where={printable(where, 80)!r}`: write a value in place of $, ? or :, a text in '...'")
        try:
            self._table.count_rows(where)
        except Exception as error:
            message = str(error).removeprefix("Invalid input, ").partition(" Valid fields")[0].partition(", /")[0]
            advice = "; compare a column of text with '...', or write CAST(column AS INT)" * ("literal" in message)
            raise OptionError(
                f"`where={printable(where, 80)!r}`: {printable(message, 150).rstrip('. ')}{advice}; {self._column_list}"
            ) from error

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings other than the index was made with."""
        made: dict[str, Any] = self.about["settings"]
        for name, value in settings.items():
            if made.get(name) != value:
                what = f"{name.replace('_', '-')} {made.get(name)}, not {value}"
                what = "a model whose files have changed" if name == "files" else what
                raise OptionError(f"{self.path} was made with {what}: give the same, or make a new index")

    @property
    def _column_list(self) -> str:
        fields = [
            f"{field.name} ({field.type})" for field in self._table.schema if field.name not in ("vector", DIGEST)
        ]
        return f"columns: {', '.join(fields)}"

    def _digests(self) -> dict[str, str]:
        with self._guard():
            table = self._table.search().select(["id", DIGEST]).to_arrow()
        return dict(zip(table["id"].to_pylist(), table[DIGEST].to_pylist(), strict=True))

    def _columns(self, frame: "pd.DataFrame") -> "pa.Table":
        """Return a frame as an Arrow table of the index's types; new columns are added to the index."""
        import pyarrow as pa

        arrays = {name: _array(values.tolist()) for name, values in frame.items()}
        with self._guard():
            new = [pa.field(n, array.type) for n, array in arrays.items() if n not in self._table.schema.names]
            if new:
                self._table.add_columns(new)
            fields = [field for field in self._table.schema if field.name != "vector"]
        for field in fields:
            array = arrays.get(field.name, pa.nulls(len(frame)))
            try:
                arrays[field.name] = array.cast(field.type)
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"column {field.name} is {field.type} in {self.path} and can't be {array.type}: rename it, or "
                    "make a new index"
                ) from error
        return pa.table(arrays)

    def _commit(self, rows: "pa.Table", vectors: FloatArray, coverage: Coverage) -> None:
        import pyarrow as pa

        array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        with self._guard():
            rows = rows.append_column("vector", array).select(self._table.schema.names)
            self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        self.about["coverage"] = asdict(self.coverage + coverage)
        _write_record(self.path, self.about)

    def _finish(self, changed: bool) -> None:
        """Join the batches' files, and bring the indexes of words and vectors up to date."""
        from lancedb.index import FTS, IvfFlat

        with self._guard():
            if changed:
                self._table.optimize(cleanup_older_than=timedelta(minutes=10))
            there = {column for index in self._table.list_indices() for column in index.columns}
            if "text" not in there:
                counts = self.about.get("languages") or {}
                most_frequent = max(counts, key=lambda language: int(counts[language]), default="en")
                english = most_frequent == "en"  # stems and stop words are
                self._table.create_index("text", config=FTS(stem=english, remove_stop_words=english))
            if "vector" not in there and len(self) >= ANN_FROM:
                self._table.create_index("vector", config=IvfFlat(distance_type="cosine"))

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn LanceDB's exceptions into one line."""
        try:
            yield
        except NarrlitError:
            raise
        except UnicodeEncodeError as error:
            raise OptionError(f"index {self.path}: a value is not text ({reason(error)}); write it in UTF-8") from error
        except Exception as error:
            problem = system_error(error)
            if problem is not None:
                raise DataError(
                    f"index {self.path}: {problem}; finished batches are kept: run the command again"
                ) from error
            message = printable(str(error).partition(", /")[0] or reason(error), 150)
            raise DataError(f"index {self.path} is broken; remove the folder and index again ({message})") from error

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, {counted(len(self), 'story')}, {self.about['settings']['model']})"

    def _repr_html_(self) -> str:
        with self._guard():
            head = self._table.search().select(["id", "title", "text"]).limit(5).to_arrow().to_pandas()
        return f"<p>{escape(repr(self))}</p>{head.to_html(index=False)}"


def index_at(path: str | Path) -> bool:
    """Return whether a folder is an index."""
    return (Path(path) / RECORD).is_file()


def _vectors(
    encoder: StoryEncoder, stories: Sequence[Story], step: Callable[[int], object]
) -> tuple[FloatArray, Coverage]:
    """Embed stories that are prepared: unit vectors (N, D), and what was read.

    Now and then `step` is called with the number embedded.
    """
    vectors, coverage = np.empty((len(stories), encoder.dimension), np.float32), Coverage()
    for start in range(0, len(stories), SPAN):
        span = stories[start : start + SPAN]
        vectors[start : start + SPAN], read = encoder.read(span, ["story"] * len(span))
        coverage += read
        step(len(span))
    return unit_vectors(vectors), coverage


def _first_sentences(rows: "pd.DataFrame") -> list[str]:
    return [split_sentences(text)[0] for text in rows["text"]]


def _results(rows: "pd.DataFrame", snippets: Sequence[str]) -> "pd.DataFrame":
    metadata = [name for name in rows if name not in RESERVED and not name.startswith("_")]
    ranked = rows.assign(rank=range(1, len(rows) + 1), snippet=snippets)
    return ranked[["rank", "id", "title", "similarity", "snippet", *metadata]]


def _settings(encoder: StoryEncoder) -> dict[str, Any]:
    """Model of an index, and how it reads stories, as `IndexSettings` has them."""
    record = encoder.record
    return {
        **{name: record[name] for name in ("model", "files", "max_length", "long", "precision")},
        "views": "views" in record,  # a query has none of those files: its own are cut by position
        "fusion": record["fusion"],
        "pseudonyms": record.get("pseudonyms"),
    }


def _identity(model: str) -> dict[str, str | None]:
    name, files = model_identity(model)
    return {"model": name, "files": files}


def _digests(frame: "pd.DataFrame", stories: Sequence[Story]) -> list[str]:
    """Hash each row: id, title, text, metadata, and the story's views."""
    rows = [{name: value for name, value in row.items() if value is not None} for row in frame.to_dict("records")]
    return [
        hashlib.sha256(json.dumps([row, story.views and story.views.texts], default=str).encode()).hexdigest()
        for row, story in zip(rows, stories, strict=True)
    ]


def _check_name(path: str | Path) -> None:
    """Refuse a folder whose name LanceDB can't take."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OptionError(f"{printable(path)}: LanceDB needs a name in UTF-8; name another folder") from None
    if any(ord(character) < FIRST_PRINTABLE for character in str(path)):
        raise OptionError(f"{printable(path)}: LanceDB needs a name without control characters; name another folder")


def _create_empty(path: Path, frame: "pd.DataFrame", record: Mapping[str, Any]) -> None:
    """Make an index without stories, whole or not at all."""
    import lancedb
    import pyarrow as pa

    fields = [(name, _array(values.tolist()).type) for name, values in frame.items()]
    fields.insert(3, ("vector", pa.list_(pa.float32(), record["dimension"])))
    with atomic_folder(path) as temporary:
        lancedb.connect(str(temporary)).create_table(TABLE, schema=pa.schema(fields))
        _write_record(temporary, record)


def _write_record(path: Path, record: Mapping[str, Any]) -> None:
    with atomic_path(path / RECORD) as temporary:
        temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _array(values: list[Any]) -> "pa.Array":
    """Return a column as an Arrow array; lists, objects and mixed values become text."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        array = None
    if array is None or pa.types.is_nested(array.type):
        array = pa.array([v if isinstance(v, str | None) else json.dumps(v, default=str) for v in values])
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _quoted(value: Any) -> str:
    """Write a value in SQL."""
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"
