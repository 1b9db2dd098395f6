"""`narrlit.VectorTable`: stories and embeddings in a LanceDB table of any size, on a disk or in an object store."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from narrlit.console import counted
from narrlit.data.rows import Layout
from narrlit.data.schema import FloatArray, normal_form
from narrlit.encoding.loading import load
from narrlit.encoding.options import Device
from narrlit.encoding.story_encoder import StoryEncoder, unit_vectors
from narrlit.errors import DataError, OptionError, printable
from narrlit.json_records import changed_settings
from narrlit.library.conditions import check_condition, quoted
from narrlit.library.index import check_settings, query_encoder
from narrlit.library.index_record import IndexRecord, IndexSettings, identity
from narrlit.library.index_storage import TABLE
from narrlit.library.options import TableOptions, is_address
from narrlit.library.part_source import PartSource
from narrlit.library.ranking import unreserved_columns
from narrlit.library.search_results import SearchResults
from narrlit.library.story_frame import HIDDEN, VECTOR, plain
from narrlit.library.vector_table_writing import (
    FORMAT,
    ROW,
    TableWriter,
    VectorTableRecord,
    guarded_table,
    story_columns,
    write_parts,
)
from narrlit.models.config import DEFAULT_MODEL
from narrlit.optional import require
from narrlit.preprocessing.sentences import split_sentences

RECORD = b"narrlit"
"""Key of the record in the metadata of the table's schema."""
PROBES = 200
"""Number of partitions of the vector index that a search reads."""
REFINED = 30
"""Number of candidates per result whose exact cosines are computed, because the vector index stores rounded vectors."""


class VectorTable:
    r"""Stories with one embedding each, in a LanceDB table that is searched without loading it into memory.

    An `Index` compares passages and loads what it compares; a vector table compares embeddings of whole stories by
    cosine, through the vector index of LanceDB. The table `stories` has the columns id, title, text, row (the row
    number in the input, from 0), vector and the metadata; any LanceDB client can read it.

    Attributes:
        address: address of the LanceDB database.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "stories.csv").write_text("text\nA knight seeks a grail.\nA bank lowers its rates.\n")
    >>> table = VectorTable.create(f"file://{folder}/plots", folder / "stories.csv")
    >>> table.search("A diver seeks a pearl.", k=1).table().id.tolist()
    ['1']
    """

    def __init__(
        self,
        address: str,
        *,
        encoder: str | StoryEncoder | None = None,
        device: Device = "auto",
        trust_remote_code: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """Open a vector table.

        Args:
            address: address of the LanceDB database, such as s3://bucket/plots or file:///data/plots.
            encoder: path of the model, if it was moved; or an encoder with the settings of the table, which is not
                loaded again; None: the recorded path.
            device: device on which queries are encoded.
            trust_remote_code: run Python files that come with the model.
            storage_options: options of the object store, as LanceDB takes them; None: the environment variables of the
                store (AWS_ACCESS_KEY_ID, ...).

        Raises:
            DataError: if there is no vector table.
            OptionError: if `encoder` is not the model of the table.
        """
        table = _open(_connect(address, storage_options), address)
        if table is None:
            raise DataError("no_vector_table", address=address)
        self.address = address
        self._table = table
        self._record = _record(address, table)
        settings = self._record.settings
        if isinstance(encoder, StoryEncoder):
            check_settings(address, settings, IndexSettings.of(encoder).model_dump())
            self._encoder = encoder
            return
        self._encoder = query_encoder(encoder or self._record.model_path, settings, device, trust_remote_code)
        if encoder is not None:
            check_settings(address, settings, identity(encoder))

    @classmethod
    def create(
        cls,
        address: str,
        stories: str | Path,
        encoder: str | Path | StoryEncoder = DEFAULT_MODEL,
        *,
        layout: Layout = Layout(),
        options: TableOptions = TableOptions(),
        storage_options: Mapping[str, str] | None = None,
    ) -> "VectorTable":
        """Embed any number of stories in parts, and commit the parts to one table.

        Repeat the call to resume after an interruption, which loses the parts that are being embedded. Rows without a
        text are dropped and counted. Ids may repeat: they are not compared between parts.

        Args:
            address: address of the LanceDB database, such as s3://bucket/plots or file:///data/plots; new, or started
                with the same stories, model and settings.
            stories: JSON Lines, CSV or Parquet: a file, a folder, a glob pattern or an address in an object store
                (s3://, gs://).
            encoder: a model folder, a run folder, a checkpoint, a hub id, `narrlit-mini` or `minilm`; or an encoder
                from `narrlit.load`.
            layout: columns of text, id and title.
            options: size of the parts, and the workers that embed them.
            storage_options: options of the object store, as LanceDB takes them; None: the environment variables of the
                store (AWS_ACCESS_KEY_ID, ...). Workers of Ray do not get them: they return their parts to this process,
                which alone writes.

        Raises:
            DataError: if a story or a column can't be indexed, or the store can't be written to.
            OptionError: if the table has other stories or settings, or another run writes to it.
        """
        encoder = encoder if isinstance(encoder, StoryEncoder) else load(encoder, cache=None)
        if encoder.postprocessing is not None:
            raise OptionError("postprocessed_table")
        if layout.split != "none":
            raise OptionError("whole_files_in_table")
        if options.engine == "ray":
            require("ray", "ray")  # which includes what reads the files
        source = PartSource(str(stories), encoder, None, layout, part_rows=options.part_rows)
        database = _connect(address, storage_options)
        table = _open(database, address)
        if table is None:
            table = _create(database, address, source)
        changes = changed_settings(_record(address, table).source, source.settings())
        if changes:
            raise OptionError("other_stories_in_table", address=address, change=changes[0])
        write_parts(TableWriter(address, table, options.part_rows), source, options)
        return cls(address, encoder=encoder, storage_options=storage_options)

    def __len__(self) -> int:
        """Return the number of stories."""
        with guarded_table(self.address):
            return int(self._table.count_rows())

    @property
    def settings(self) -> dict[str, str]:
        """Parameters of `narrlit.load` with which the table was made, by name."""
        return self._record.settings.parameters

    @cached_property
    def encoder(self) -> StoryEncoder:
        """Encoder of the queries.

        Raises:
            ModelError: if the model is no longer at its recorded path.
            OptionError: if it has changed.
        """
        check_settings(self.address, self._record.settings, identity(self._encoder.name))
        return self._encoder

    def search(self, text: str | Sequence[str], k: int = 10, *, where: str | None = None) -> SearchResults:
        """Find the stories most similar to a text, or to each of several, by the cosine of whole stories.

        With a vector index, the nearest partitions are searched and their best candidates compared exactly; a few of
        the nearest stories may be missed. Without one, all stories are compared.

        Args:
            text: a query, or a whole story; or several, which are embedded together.
            k: number of results per query.
            where: SQL condition on the columns, such as `year < 1900`.

        Returns:
            The `SearchResults`: `.table()`, `.write(path)`. Their table has up to k rows per query, best first: rank
            from 1, id, title, similarity (cosine), snippet (the first sentence), row, and the metadata columns. For
            several queries, a first column, query, numbers them from 0.

        Raises:
            OptionError: if the text is empty, `k` is less than 1, or the condition is invalid.
        """
        texts = [text] if isinstance(text, str) else list(text)
        if not texts or not all(map(str.strip, texts)):
            raise OptionError("empty_query")
        tables = []
        for vector in unit_vectors(self.encoder.embed(texts)):
            tables.append(self._nearest(vector, k, where))
        if isinstance(text, str):
            return SearchResults(texts, tables[0])
        for number, results in enumerate(tables):
            results.insert(0, "query", number)
        return SearchResults(texts, pd.concat(tables, ignore_index=True))

    def like(self, id: str, k: int = 10, *, where: str | None = None) -> SearchResults:
        """Find the stories most similar to a story of the table, excluding that story; the model is not loaded.

        Args:
            id: id of the story; of several with this id, the first one is taken, and all are excluded.
            k: number of stories.
            where: SQL condition on the columns.

        Returns:
            The `SearchResults`, with the columns of `search`.

        Raises:
            OptionError: if there is no such story, `k` is less than 1, or the condition is invalid.
        """
        with guarded_table(self.address):
            id = normal_form(id)
            story = self._table.search().where(f"id = {quoted(id)}").select([VECTOR]).limit(1).to_arrow()
        if not len(story):
            raise OptionError("unknown_story", path=self.address, id=printable(id, 60), near="")
        others = f"id != {quoted(id)}"
        vector = story[VECTOR].combine_chunks().flatten().to_numpy()
        if where is None:
            return SearchResults([id], self._nearest(vector, k, others))
        check_condition(self._table, normal_form(where))
        return SearchResults([id], self._nearest(vector, k, f"({where}) AND {others}"))

    def _nearest(self, vector: FloatArray, k: int, where: str | None) -> pd.DataFrame:
        """Tabulate the k stories with the highest cosine to a vector (D,)."""
        if k < 1:
            raise OptionError("at_least", option="k", found=k, least=1)
        if where is not None:
            where = normal_form(where)
            check_condition(self._table, where)
        columns = [name for name in self._table.schema.names if name not in HIDDEN]
        with guarded_table(self.address):
            query = self._table.search(vector, vector_column_name=VECTOR).distance_type("cosine")
            query = query.nprobes(PROBES).refine_factor(REFINED).limit(k).select([*columns, "_distance"])
            if where is not None:
                query = query.where(where, prefilter=True)
            stories = plain(query.to_arrow().to_pandas(integer_object_nulls=True))
        ranked = stories.assign(
            rank=range(1, len(stories) + 1),
            similarity=1 - stories["_distance"].astype(float),
            snippet=[split_sentences(text)[0] for text in stories["text"]],
        )
        return ranked[["rank", "id", "title", "similarity", "snippet", *unreserved_columns(columns)]]

    def __repr__(self) -> str:
        return f"VectorTable({self.address!r}, {counted(len(self), 'story')}, {self._record.settings.model})"


def _connect(address: str, storage_options: Mapping[str, str] | None) -> Any:
    """Connect to a LanceDB database; every read sees the newest version of its tables."""
    if not is_address(address):
        raise OptionError("not_an_address", address=address)
    lancedb = require("lancedb", "explore")
    options = None if storage_options is None else dict(storage_options)
    with guarded_table(address):
        return lancedb.connect(address, read_consistency_interval=timedelta(0), storage_options=options)


def _open(database: Any, address: str) -> Any | None:
    """Open the table of a database; return None if there is none."""
    with guarded_table(address):
        try:
            return database.open_table(TABLE)
        except ValueError as error:
            if "not found" in str(error):
                return None
            raise


def _create(database: Any, address: str, source: PartSource) -> Any:
    """Create an empty table with the columns of the first rows, and the record in its schema."""
    import pyarrow as pa

    described = IndexRecord.of(source.encoder)
    record = VectorTableRecord(
        format=FORMAT, model_path=described.model_path, settings=described.settings, source=source.settings()
    )
    columns = story_columns(source.sample, range(len(source.sample)))
    fields = [(name, array.type) for name, array in columns.items()]
    fields[3:3] = [(ROW, pa.int64()), (VECTOR, pa.list_(pa.float32(), described.dimension))]  # after the text
    schema = pa.schema(fields, metadata={RECORD: record.model_dump_json()})
    with guarded_table(address):
        return database.create_table(TABLE, schema=schema)


def _record(address: str, table: Any) -> VectorTableRecord:
    """Read the record from the schema of a table.

    Raises:
        DataError: if there is none, or it is of another version.
    """
    content = (table.schema.metadata or {}).get(RECORD)
    if content is None:
        raise DataError("foreign_table", address=address, table=TABLE)
    try:
        record = VectorTableRecord.model_validate_json(content)
    except ValidationError as error:
        raise DataError("damaged_table", address=address) from error
    if record.format != FORMAT:
        raise DataError("table_of_other_version", address=address, found=printable(record.format, 40), known=FORMAT)
    return record
