"""Indexes of stories: a LanceDB folder of texts, metadata and vectors that is searched by meaning."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrlit.cache.storage import model_identity
from narrlit.console import counted, say
from narrlit.data.readers import ReadReport, Stories
from narrlit.data.schema import FloatArray, Story, StoryTable
from narrlit.errors import DataError, NarrlitError, OptionError, did_you_mean, on_interrupt, printable, reading, reason
from narrlit.files import atomic_path, check_writable
from narrlit.optional import require
from narrlit.options import Device, LoadOptions, ModelOptions, StoryOptions
from narrlit.preprocessing.sentences import split_sentences

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from narrlit.explore.collection import Collection
    from narrlit.models.encoder import Encoder

FORMAT, RECORD, TABLE = "narrlit index 1", "index.json", "stories"
BATCH, SPAN = 1000, 250
"""Stories that are committed together, and those embedded between two steps of the progress bar."""
ANN_FROM = 50_000
"""Rows from which an approximate index of the vectors is built; below, the exact search takes milliseconds."""
DIGEST = "content_sha256"
RESERVED = ("id", "title", "text", "vector", DIGEST, "rank", "similarity", "snippet")


class Index:
    """Stories in a LanceDB folder, with the model that their vectors are from.

    The folder holds the table `stories` (id, title, text, vector, the metadata columns), which any LanceDB client
    reads, and index.json (the model and its settings), by which queries are encoded like the stories.

    >>> index = Index.create(getfixture("tmp_path") / "i", ["A knight seeks a grail.", "A bank lowers its rates."])
    >>> index.search("A diver seeks a pearl.", k=1).id.tolist()
    ['1']
    """

    def __init__(
        self, path: str | Path, *, model: str | None = None, device: Device = "auto", trust_remote_code: bool = False
    ) -> None:
        """Open an index.

        Args:
            path: the index folder.
            model: where the model is now; None: where it was.
            device: where queries are encoded.
            trust_remote_code: run Python files that come with the model.

        Raises:
            DataError: if there is no index, or it is broken.
            OptionError: if `model` is another than the index was made with.
        """
        self.path = Path(path)
        if not index_at(path):
            raise DataError(f"{path} is no index; make one: narrlit index STORIES --model M --out {path}")
        with reading("index", self.path, "remove the folder and index again"):
            self.about: dict[str, Any] = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
            if self.about["format"] != FORMAT:
                raise DataError(f"{path} has the format {self.about['format']!r}, not {FORMAT!r}: index again")
            settings = self.about["settings"]
            self._use = ModelOptions(
                settings["max_length"], device, trust_remote_code, model or self.about["model_path"]
            )
            self._read = StoryOptions(
                missing_views="positional" if settings["views"] else "refuse",
                pseudonymize=settings["pseudonyms"] is not None,
                **{name: value for name, value in (settings["pseudonyms"] or {}).items() if name != "backend"},
                fusion=settings["fusion"],
            )
        if model is not None:
            _check_same(self.path, settings, {**settings, **_identity(model)})

    @classmethod
    def create(
        cls,
        path: str | Path,
        stories: "Stories | pd.DataFrame | Sequence[str]",
        model: str = "minilm",
        *,
        use: LoadOptions = LoadOptions(),
        read: StoryOptions = StoryOptions(),
        progress: bool = False,
    ) -> "Index":
        """Create an index, or add stories to it; a story whose id is there replaces that one.

        Stories are committed by the thousand, and those that are there unchanged are not embedded again: after an
        interruption, the same call goes on.

        Args:
            path: the index folder, new or made with the same model and settings.
            stories: texts, a table with a column text (and id, title, metadata), or stories as `read_stories` returns.
            model: a model folder, a run folder, a checkpoint, a hub id, or minilm.
            use: how the model is loaded.
            read: what the model reads of a story.
            progress: show a progress bar, and what is done, on stderr.

        Raises:
            DataError: if a story or column can't be indexed.
            OptionError: if `path` holds something else, or an index by another model.
        """
        require("lancedb", "explore")
        path, tell = Path(path), say if progress else lambda message: None
        if read.postprocess is not None:
            raise OptionError("--postprocess: export the model with it (narrlit export), and index with that folder")
        rows = stories if isinstance(stories, Stories) else _stories(stories)
        frame = story_frame(rows)
        attached = read.stories(rows) if read.reads_views else list(rows)
        frame[DIGEST] = _digests(frame, attached)
        use = ModelOptions(use.max_length, use.device, use.trust_remote_code, model)
        identity, encoder = _identity(model), None
        if identity["files"] is None:  # a hub's model: its revision is known when it is here
            encoder = read.encoder(use)
            identity = _identity(model)
        pseudonyms = asdict(read.pseudonyms) if read.pseudonymize else None
        settings = {
            **identity,
            "max_length": use.max_length,
            "views": read.reads_views,
            "fusion": read.fusion,
            "pseudonyms": pseudonyms,
        }
        if index_at(path):
            index = cls(path, device=use.device, trust_remote_code=use.trust_remote_code)
            _check_same(path, index.about["settings"], settings)
            known = index._digests()
        else:
            check_writable(path, folder=True)
            known = {}
        fresh = [row for row, (id, digest) in enumerate(zip(frame.id, frame[DIGEST])) if known.get(id) != digest]
        if len(fresh) < len(frame):
            tell(f"{path}: {len(frame) - len(fresh)} of {counted(len(frame), 'story')} are there unchanged")
        if fresh:
            encoder = encoder or read.encoder(use)
            encoder.require_one_prompt("narrlit index")
            place = Path(model).absolute() if Path(model).exists() else model
            if not index_at(path):
                _write_record(path, {"format": FORMAT, "model_path": str(place), "settings": settings})
                index = cls(path, device=use.device, trust_remote_code=use.trust_remote_code)
            index._add(rows, attached, frame, fresh, encoder, read, progress)
        index._build_indexes(changed=bool(fresh))
        return index

    def _add(self, rows, attached, frame, fresh, encoder, read, progress) -> None:
        """Embed the fresh rows and commit them batch by batch."""
        from tqdm import tqdm

        from narrlit.models.embedding import embed

        kept = "finished batches are kept: the same command goes on"
        columns = self._columns(frame, encoder.dimension)
        bar = tqdm(total=len(fresh), desc="indexing", unit="story", disable=not progress, delay=0.5)
        with bar, on_interrupt(kept), self._guard():
            for start in range(0, len(fresh), BATCH):
                batch = fresh[start : start + BATCH]
                stories = [attached[row] for row in batch] if read.reads_views else read.stories(_subset(rows, batch))
                vectors = np.empty((len(batch), encoder.dimension), np.float32)
                for place in range(0, len(batch), SPAN):
                    span = stories[place : place + SPAN]
                    vectors[place : place + SPAN] = unit_vectors(embed(encoder, span, progress=False).embeddings)
                    bar.update(len(span))
                self._commit(columns, batch, vectors)

    def _columns(self, frame: "pd.DataFrame", dimension: int) -> "pa.Table":
        """Return the frame as an Arrow table of the index's types; new columns are added to the index."""
        import pyarrow as pa

        arrays = {name: _array(values.tolist()) for name, values in frame.items()}
        if self._table is None:
            types = {name: array.type for name, array in arrays.items()}
            order = [*("id", "title", "text"), "vector", *list(arrays)[3:]]
            schema = pa.schema([(n, types.get(n) or pa.list_(pa.float32(), dimension)) for n in order])
            self._database.create_table(TABLE, schema=schema, exist_ok=True)
            self.__dict__.pop("_table")
        new = [pa.field(name, array.type) for name, array in arrays.items() if name not in self._table.schema.names]
        if new:
            self._table.add_columns(new)
        for field in self._table.schema:
            if field.name in arrays:
                arrays[field.name] = self._cast(arrays[field.name], field)
            elif field.name != "vector":
                arrays[field.name] = pa.nulls(len(frame), field.type)
        return pa.table(arrays)

    def _cast(self, array: "pa.Array", field: "pa.Field") -> "pa.Array":
        import pyarrow as pa

        try:
            if pa.types.is_string(field.type) and not pa.types.is_string(array.type):
                return pa.array([_text(value) for value in array.to_pylist()], pa.string())
            return array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"column {field.name} is {field.type} in {self.path}, but {array.type} here ({printable(error, 80)}): "
                "rename it, or make a new index"
            ) from error

    def _commit(self, columns: "pa.Table", batch: list[int], vectors: FloatArray) -> None:
        import pyarrow as pa

        part = columns.take(batch)
        array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        part = part.append_column("vector", array).select(self._table.schema.names)
        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(part)

    def _build_indexes(self, changed: bool) -> None:
        """Bring the full-text index and, for many rows, that of the vectors up to date."""
        from lancedb.index import FTS, IvfFlat

        with self._guard():
            if changed:
                self._table.optimize(cleanup_older_than=timedelta(minutes=1))
            there = {column for index in self._table.list_indices() for column in index.columns}
            if "text" not in there:
                self._table.create_index("text", config=FTS())
            if "vector" not in there and len(self) >= ANN_FROM:
                self._table.create_index("vector", config=IvfFlat(distance_type="cosine"))

    def __len__(self) -> int:
        """Count the stories."""
        with self._guard():
            return 0 if self._table is None else int(self._table.count_rows())

    @cached_property
    def encoder(self) -> "Encoder":
        """Encoder of the queries, the one of the stories.

        Raises:
            ModelError: if the model is not where it was, or has changed.
        """
        encoder = self._read.encoder(self._use)
        _check_same(self.path, self.about["settings"], {**self.about["settings"], **_identity(str(self._use.model))})
        return encoder

    def search(
        self,
        text: str,
        k: int = 10,
        *,
        where: str | None = None,
        hybrid: bool = False,
        distinct: float | None = None,
    ) -> "pd.DataFrame":
        """Find the stories most similar to a text.

        Args:
            text: a query or a whole story.
            k: number of stories.
            where: condition on the columns in SQL, such as "country = 'France' AND year < 1900".
            hybrid: rank by vectors and by words (BM25) together, by reciprocal rank fusion.
            distinct: leave out stories whose similarity with a better one reaches this, from 0 to 1.

        Returns:
            Up to k rows, the most similar first: rank from 1, id, title, similarity (cosine), snippet (the sentence
            nearest to the text), and the metadata columns.

        Raises:
            OptionError: for an empty text or a wrong condition.
        """
        if not text.strip():
            raise OptionError("the query is empty: write what the stories are about")
        vector = self.encode(text)
        rows = self._nearest(vector, text, k, where, hybrid, distinct)
        return self._results(rows, vector, snippets=True)

    def like(
        self,
        id: str,
        k: int = 10,
        *,
        where: str | None = None,
        hybrid: bool = False,
        exclude_same: str | None = None,
        distinct: float | None = None,
    ) -> "pd.DataFrame":
        """Find the stories most similar to one of the index, without that story.

        Args:
            id: id of the story.
            k: see `search`, as where and hybrid.
            where: condition on the columns.
            hybrid: rank by vectors and by words together.
            exclude_same: a metadata column, such as author; stories with this story's value are left out.
            distinct: leave out stories whose similarity with this one, or a better result, reaches this.

        Raises:
            OptionError: if there is no such story or column.
        """
        story = self.story(id)
        if exclude_same is not None:
            where = self._excluding(exclude_same, story.get(exclude_same), where)
        vector = np.array(story["vector"], np.float32)
        rows = self._nearest(vector, story["text"], k, where, hybrid, distinct, itself=("id", id))
        return self._results(rows, vector, snippets=False)

    def encode(self, text: str) -> FloatArray:
        """Encode a text like the stories: (D,), unit length."""
        from narrlit.models.embedding import embed

        vector: FloatArray = unit_vectors(embed(self.encoder, self._read.stories(_stories([text])), progress=False).embeddings)[0]
        return vector

    def story(self, id: str) -> dict[str, Any]:
        """Return the row of an id; raise OptionError if there is none."""
        with self._guard():
            rows = self._table.search().where(f"id = {_quoted(id)}").limit(1).to_arrow().to_pylist()
            if not rows:
                ids = self._table.search().select(["id"]).to_arrow()["id"].to_pylist()
                raise OptionError(f"{self.path} has no story {printable(id, 60)!r}{did_you_mean(id, ids)}")
        return dict(rows[0])

    def collection(self) -> "Collection":
        """Return all stories with their vectors."""
        from narrlit.explore.collection import Collection

        with self._guard():
            table = self._table.to_arrow()
            vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
            frame = table.drop_columns(["vector", DIGEST]).to_pandas()
        settings = self.about["settings"]
        about = {"source": str(self.path), "model": settings["model"], "dimension": vectors.shape[1]}
        return Collection(frame, vectors, about)

    def _nearest(
        self,
        vector: FloatArray,
        text: str,
        k: int,
        where: str | None,
        hybrid: bool,
        distinct: float | None,
        itself: tuple[str, str] = ("id", ""),
    ) -> "pd.DataFrame":
        """Return up to k rows with their similarity, the best first; rows with the column's value `itself` are left out."""
        from lancedb.query import MatchQuery
        from lancedb.rerankers import RRFReranker

        if k < 1:
            raise OptionError(f"--k {k}: at least 1 is needed")
        self._check_condition(where)
        limit = max(100, 4 * k) if hybrid else k + 1
        while True:
            with self._guard():
                if hybrid:
                    query = self._table.search(query_type="hybrid").vector(vector).text(MatchQuery(text, "text"))
                    query = query.rerank(RRFReranker())
                else:
                    query = self._table.search(vector, query_type="vector")
                query = query.distance_type("cosine").limit(limit)
                if where is not None:
                    query = query.where(where).bypass_vector_index()
                rows = query.to_arrow().to_pandas()
            vectors = np.array(rows.vector.tolist(), np.float32).reshape(len(rows), -1)
            rows["similarity"] = vectors @ vector
            allowed = np.flatnonzero(rows[itself[0]] != itself[1]).tolist()
            if distinct is not None:
                allowed = _distinct(allowed, vectors, distinct, vector if itself[1] else None)
            if len(allowed) >= k or len(rows) < limit:
                return rows.iloc[allowed[:k]].reset_index(drop=True)
            limit *= 4

    def _results(self, rows: "pd.DataFrame", vector: FloatArray, snippets: bool) -> "pd.DataFrame":
        sentences = [split_sentences(text) or [text] for text in rows.text]
        chosen = [own[0] for own in sentences]
        if snippets and self.encoder.reads == "text" and chosen:
            from narrlit.models.embedding import embed

            flat = embed(self.encoder, [sentence for own in sentences for sentence in own], progress=False).embeddings
            cosines = np.split(unit_vectors(flat) @ vector, np.cumsum([len(own) for own in sentences])[:-1])
            chosen = [own[int(np.argmax(cosine))] for own, cosine in zip(sentences, cosines, strict=True)]
        metadata = [name for name in rows if name not in RESERVED and not name.startswith("_")]
        return rows.assign(rank=range(1, len(rows) + 1), snippet=chosen)[
            ["rank", "id", "title", "similarity", "snippet", *metadata]
        ]

    def _excluding(self, column: str, value: Any, where: str | None) -> str | None:
        names = self._metadata
        if column not in names:
            raise OptionError(f"--exclude-same {column}: no such column{did_you_mean(column, names)}; {self._listed}")
        if value is None:
            return where
        condition = f"(`{column}` != {_quoted(value)} OR `{column}` IS NULL)"
        return condition if where is None else f"({where}) AND {condition}"

    def _check_condition(self, where: str | None) -> None:
        if where is None:
            return
        try:
            self._table.count_rows(where)
        except (ValueError, RuntimeError) as error:
            message = printable(str(error).partition("Valid fields")[0].partition(", /")[0], 150).rstrip(". ")
            raise OptionError(f"--where {printable(where, 80)!r}: {message}; {self._listed}") from error

    @property
    def _metadata(self) -> list[str]:
        return [name for name in self._table.schema.names if name not in RESERVED]

    @property
    def _listed(self) -> str:
        fields = [f"{f.name} ({f.type})" for f in self._table.schema if f.name not in ("vector", DIGEST)]
        return f"columns: {', '.join(fields)}"

    def _digests(self) -> dict[str, str]:
        if self._table is None:
            return {}
        with self._guard():
            table = self._table.search().select(["id", DIGEST]).to_arrow()
            return dict(zip(table["id"].to_pylist(), table[DIGEST].to_pylist(), strict=True))

    @cached_property
    def _database(self) -> Any:
        lancedb = require("lancedb", "explore")
        return lancedb.connect(str(self.path), read_consistency_interval=timedelta(0))

    @cached_property
    def _table(self) -> Any:
        """The table; None where the first batch was not finished."""
        if not (self.path / f"{TABLE}.lance").exists():
            return None
        with self._guard():
            return self._database.open_table(TABLE)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn LanceDB's exceptions into one line."""
        try:
            yield
        except (NarrlitError, KeyboardInterrupt):
            raise
        except Exception as error:
            if "No space left" in str(error):
                raise DataError(f"{self.path}: the disk is full; finished batches are kept: make room and run again") from error
            message = printable(str(error).partition(", /")[0] or reason(error), 150)
            raise DataError(f"index {self.path} is broken ({message}); remove the folder and index again") from error

    def _repr_html_(self) -> str:
        return f"<pre>{self!r}</pre>"

    def __repr__(self) -> str:
        settings = self.about["settings"]
        return f"Index({str(self.path)!r}: {counted(len(self), 'story')} by {settings['model']})"


def index_at(path: str | Path) -> bool:
    """Return whether a folder is an index."""
    return (Path(path) / RECORD).is_file()


def story_frame(stories: Stories) -> "pd.DataFrame":
    """Tabulate stories: id, title, text, then the metadata columns.

    Raises:
        DataError: for a metadata column that an index can't have.
    """
    import pandas as pd

    values = [value if isinstance(value, dict) else {} for value in stories.values]
    rows = [
        {"id": str(value.get("id") or n), "title": str(value.get("title") or ""), "text": story.source_text}
        | {name: cell for name, cell in value.items() if name not in ("id", "title", "text", "story")}
        for n, (value, story) in enumerate(zip(values, stories, strict=True), 1)
    ]
    frame = pd.DataFrame.from_records(rows).astype(object)
    frame = frame.where(frame.notna(), None)
    wrong = [str(n) for n in frame.columns[3:] if n in RESERVED or "." in str(n) or str(n).startswith("_")]
    if wrong:
        raise DataError(f"{stories.report.path}: rename its column {wrong[0]}: an index has one of this name, or can't have it")
    return frame


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """Scale vectors (N, D) to length 1."""
    unit: FloatArray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _stories(stories: "pd.DataFrame | Sequence[str]") -> Stories:
    """Stories of a table or of texts."""
    table, values = StoryTable(), list(stories) if not hasattr(stories, "to_dict") else stories.to_dict("records")
    indices = [table.add(value if isinstance(value, str) else value["text"]) for value in values]
    return Stories(table, indices, ReadReport(Path("stories"), len(values)), [None] * len(values), list(range(1, len(values)+1)), values)


def _subset(stories: Stories, chosen: list[int]) -> Stories:
    pick = lambda values: [values[row] for row in chosen]
    return replace(stories, rows=pick(stories.rows), ids=pick(stories.ids), lines=pick(stories.lines), values=pick(stories.values))


def _identity(model: str) -> dict[str, str | None]:
    name, files = model_identity(model)
    return {"model": name, "files": files}


def _check_same(path: Path, recorded: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse other settings than an index was made with."""
    for name, value in recorded.items():
        if now[name] != value:
            what = "the model has changed" if name == "files" else f"{name} was {value}, not {now[name]}"
            raise OptionError(f"{path} is an index by {recorded['model']}, and {what}: name another --out")


def _digests(frame: "pd.DataFrame", stories: Sequence[Story]) -> list[str]:
    """Hash what a row is made of: text, views, title and metadata."""
    rows = frame.to_dict("records")
    return [
        hashlib.sha256(
            json.dumps([row, story.views and story.views.texts], default=str).encode("utf-8", "surrogatepass")
        ).hexdigest()
        for row, story in zip(rows, stories, strict=True)
    ]


def _write_record(path: Path, record: dict[str, Any]) -> None:
    with atomic_path(path / RECORD) as temporary:
        temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _array(values: list[Any]) -> "pa.Array":
    """Return an Arrow array of a column; values of several types become text."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        array = pa.array([_text(value) for value in values])
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _quoted(value: Any) -> str:
    """Write a value in SQL."""
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def _distinct(rows: list[int], vectors: FloatArray, threshold: float, query: FloatArray | None) -> list[int]:
    """Leave out rows whose cosine with an earlier row, or with the query, reaches the threshold."""
    chosen: list[int] = []
    for row in rows:
        others = vectors[chosen] if query is None else np.vstack([query, vectors[chosen]])
        if not (others @ vectors[row] >= threshold).any():
            chosen.append(row)
    return chosen
