"""Copy of the stories of a small index in one Arrow file, which a search reads without LanceDB.

LanceDB takes more than a second to import. Its table remains the index: the copy has the names of the table's versions,
and is ignored as soon as these differ.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from narrlit.files import atomic_path
from narrlit.library.index_snapshot import IndexSnapshot, guarded

STORED = "search.arrow"
VERSIONS = Path("stories.lance", "_versions")
"""Folder of a LanceDB table with a file for each version, which every change of the table adds to."""
FACTS = b"narrlit"
"""Key of the copy's facts in the metadata of its schema."""


def write_snapshot(path: Path, table: Any) -> None:
    """Copy all stories of an index.

    Args:
        path: folder of the index.
        table: its LanceDB table.
    """
    import pyarrow as pa

    versions = _versions(path)  # before the stories are read, so that a change meanwhile makes the copy outdated
    with guarded(path):
        stories = table.search().to_arrow()
        facts = json.dumps({"version": table.version, "versions": versions})
    stories = stories.replace_schema_metadata({FACTS: facts.encode()})
    with atomic_path(path / STORED) as temporary, pa.ipc.new_file(str(temporary), stories.schema) as writer:
        writer.write_table(stories.combine_chunks())


def read_snapshot(path: Path, open_table: Callable[[int], Any]) -> IndexSnapshot | None:
    """Read the copy of an index; None if there is none, or it is outdated or damaged.

    Args:
        path: folder of the index.
        open_table: function that opens its LanceDB table at a version, for conditions.
    """
    if not (path / STORED).is_file():
        return None
    import pyarrow as pa

    try:
        with pa.memory_map(str(path / STORED)) as file:
            stories = pa.ipc.open_file(file).read_all()
        facts = json.loads(stories.schema.metadata[FACTS])
        if facts["versions"] != _versions(path):
            return None
        version = int(facts["version"])
        return IndexSnapshot.of_stories(path, partial(open_table, version), version, stories)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None


def is_current(path: Path, snapshot: IndexSnapshot) -> bool:
    """Return True if the table has not changed since a copy of its stories was made."""
    metadata = {} if snapshot.stories is None else snapshot.stories.schema.metadata
    return FACTS in metadata and json.loads(metadata[FACTS])["versions"] == _versions(path)


def _versions(path: Path) -> list[str]:
    """List the files of the table's versions."""
    return sorted(file.name for file in (path / VERSIONS).glob("*"))
