"""Collections and indexes that commands read, by their options."""

from dataclasses import fields
from pathlib import Path

from narrlit.errors import OptionError
from narrlit.explore.collection import Collection
from narrlit.explore.index import Index, index_at
from narrlit.options import InputOptions, ModelOptions, StoryOptions

APPLICABLE = ("model", "device", "trust_remote_code")
"""Options of loading and reading that apply to an index as well."""


def read_collection(source: str, use: ModelOptions, read: StoryOptions, inputs: InputOptions) -> Collection:
    """Read the stories of an index with the vectors there, or embed the stories of a file or folder.

    Raises:
        DataError: if the stories or the index can't be read.
        OptionError: for options that can't change an index.
    """
    if index_at(source):
        return open_index(source, use, read, inputs).collection()
    encoder = read.load(use.model or "minilm", use)
    return Collection.read(source, encoder, layout=inputs.layout, progress=True)


def open_index(
    path: str | Path,
    use: ModelOptions = ModelOptions(),
    read: StoryOptions = StoryOptions(),
    inputs: InputOptions = InputOptions(),
) -> Index:
    """Open an index by the options of a command.

    Args:
        path: the folder.
        use: where the model is now, and the device.
        read: must be as by default: the stories were read when the index was made.
        inputs: must be as by default, likewise.

    Raises:
        DataError: if there is no index, or it is broken.
        OptionError: for an option that can't change an index, such as --max-length, or another model than the index's.
    """
    index = Index(path, model=use.model, device=use.device, trust_remote_code=use.trust_remote_code)
    changed = []
    for options in (use, read, inputs):
        for option in fields(options):
            if option.name not in APPLICABLE and getattr(options, option.name) != option.default:
                changed.append(f"--{option.name.replace('_', '-')}")
    if changed:
        raise OptionError(
            f"{path} is an index, made with {index.settings}: leave out {', '.join(changed)}, or make another index"
        )
    return index


def read_systems(
    sources: str, queries: str | None, use: ModelOptions, read: StoryOptions, inputs: InputOptions
) -> tuple[dict[str, Collection], dict[str, Collection] | None]:
    """Read collections by the names of their systems, and the queries of each, encoded like it.

    A system is called by its model, or by its collection where several have the same.
    """
    names = [name.strip() for name in sources.split(",")]
    # The stories of an index are read already: columns and lines are those of other files, where there are any.
    only_indexes = queries is None and all(index_at(name) for name in names)
    of_index = inputs if only_indexes else InputOptions()
    collections: dict[str, Collection] = {}
    asked: dict[str, Collection] = {}
    for name in names:
        collection = read_collection(name, use, read, of_index if index_at(name) else inputs)
        model = str(collection.about["model"])
        system = name if model in collections else model
        collections[system] = collection
        if queries is not None:
            asked[system] = Collection.read(queries, collection.encoder, layout=inputs.layout, progress=True)
    return collections, None if queries is None else asked
