"""Read collections and indexes with the options of a command."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import narrlit
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.library.options import index_at, is_address
from narrlit.measures.names import MeasureName
from narrlit.models.config import DEFAULT_MODEL

if TYPE_CHECKING:
    from narrlit.library.collection import Collection
    from narrlit.library.index import Index
    from narrlit.library.vector_table import VectorTable

APPLICABLE = ("model", "device", "trust_remote_code")
"""Loading options that also apply to an index."""


def read_collection(
    source: str, loading: ModelOptions, reading: StoryOptions, files: Layout, measure: MeasureName | None = None
) -> "Collection":
    """Read the stories of an index with their embeddings, or embed the stories of a file or folder.

    Args:
        source: an index, a file or a folder.
        loading: the model that embeds the stories, if the source is not an index.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files.
        measure: measure of similarity; None: the default of `Collection.read`.

    Raises:
        DataError: if the stories or the index can't be read.
        OptionError: if an option does not apply to an index.
    """
    if index_at(source):
        return open_index(source, loading, reading, files).collection().compared_by(measure)
    encoder = reading.load(loading.model or DEFAULT_MODEL, loading)
    return narrlit.Collection.read(source, encoder, measure=measure, layout=files, progress=True)


def open_index(
    path: str | Path,
    loading: ModelOptions = ModelOptions(),
    reading: StoryOptions = StoryOptions(),
    files: Layout = Layout(),
) -> "Index":
    """Open an index with the options of a command.

    Args:
        path: folder of the index.
        loading: path of the model, if it has moved, and device; all other options must have their defaults.
        reading: must have its defaults, because the stories were read when the index was made.
        files: must have its defaults, for the same reason.

    Raises:
        DataError: if there is no index, or it is damaged.
        OptionError: if an option does not apply to an index, such as --max-length, or the model is not that of the
            index.
    """
    index = narrlit.Index(
        path, encoder=loading.model, device=loading.device, trust_remote_code=loading.trust_remote_code
    )
    _refuse_changed(path, index.settings, loading, reading, files)
    return index


def open_searchable(
    source: str, loading: ModelOptions = ModelOptions(), files: Layout = Layout()
) -> "Index | VectorTable":
    """Open an index or, at an address, a vector table.

    Args:
        source: folder of the index, or address of the table.
        loading: as in `open_index`.
        files: as in `open_index`.

    Raises:
        DataError: if there is no index, or it is damaged.
        OptionError: as in `open_index`.
    """
    if not is_address(source):
        return open_index(source, loading, files=files)
    table = narrlit.VectorTable(
        source, encoder=loading.model, device=loading.device, trust_remote_code=loading.trust_remote_code
    )
    _refuse_changed(source, table.settings, loading, StoryOptions(), files)
    return table


def _refuse_changed(
    path: str | Path, settings: Mapping[str, str], loading: ModelOptions, reading: StoryOptions, files: Layout
) -> None:
    """Raise OptionError if an option is given that does not apply to an index, which has settings of its own."""
    options = []
    for name in [*changed_options(loading), *changed_options(reading), *changed_options(files)]:
        if name not in APPLICABLE:
            options.append(name)
    if options:
        raise OptionError("options_of_made_index", path=path, settings=settings, options=options)


def changed_options(options: ModelOptions | StoryOptions | Layout) -> list[str]:
    """List the options that differ from their defaults.

    >>> changed_options(ModelOptions(model="minilm", max_length=64))
    ['max_length', 'model']
    """
    return [option.name for option in fields(options) if getattr(options, option.name) != option.default]


def read_collections(
    sources: Sequence[str], loading: ModelOptions, reading: StoryOptions, files: Layout, with_queries: bool
) -> "dict[str, Collection]":
    """Read collections, keyed by system name: the model, or the source if several sources have the same model.

    Args:
        sources: indexes, files or folders.
        loading: the model for sources that are not indexes.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of files; refused if no file is read.
        with_queries: a file of queries is read too, with the same `files` options.
    """
    reads_files = with_queries or not all(map(index_at, sources))
    collections: dict[str, Collection] = {}
    for source in sources:
        # If files are read, an index ignores the options that apply to them.
        ignores_files = reads_files and index_at(source)
        collection = read_collection(source, loading, reading, Layout() if ignores_files else files)
        model = str(collection.about["model"])
        collections[source if model in collections else model] = collection
    return collections


def read_queries(path: str, collections: "Mapping[str, Collection]", files: Layout) -> "dict[str, Collection]":
    """Read a file of queries for each collection, encoded in the same way as the collection."""
    queries = {}
    for system, collection in collections.items():
        queries[system] = narrlit.Collection.read(path, collection.encoder, layout=files, progress=True)
    return queries
