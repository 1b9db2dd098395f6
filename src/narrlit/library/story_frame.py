"""Stories as the rows of a frame: id, title, text and metadata; and their passages."""

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from narrlit.data.readers import Stories, parse_stories
from narrlit.data.row_file import FileRow, RowFile, column_names
from narrlit.data.schema import Floats, Story
from narrlit.encoding.story_encoder import Passages
from narrlit.errors import DataError, reason
from narrlit.measures.corrections import centered
from narrlit.measures.matching import PassageVectors

DIGEST = "content_sha256"
VECTOR, PASSAGES, PASSAGE_TEXTS = "vector", "passages", "passage_texts"
HIDDEN = (VECTOR, PASSAGES, PASSAGE_TEXTS, DIGEST)
"""Columns of an index that are not shown."""
RESERVED = ("id", "title", "text", *HIDDEN, "rank", "similarity", "snippet")
"""Reserved column names: those of an index and of its results."""


def stories_of(stories: pd.DataFrame | Sequence[str]) -> Stories:
    """Read texts, or the rows of a DataFrame with a column of texts, like the rows of a file."""
    values = _records(stories) if isinstance(stories, pd.DataFrame) else list(stories)
    if not values:
        raise DataError("no_stories")
    rows = [FileRow(number, value) for number, value in enumerate(values, start=1)]
    return parse_stories(RowFile(Path("stories"), rows), strict=True)


def _records(frame: pd.DataFrame) -> list[dict[Hashable, object]]:
    """Return the rows of a table, with None for missing values.

    Whole numbers with gaps, of which pandas makes floats, become integers again.
    """
    integers = {}
    for name, column in frame.select_dtypes("float").items():
        numbers = column.dropna()
        has_gaps = 0 < len(numbers) < len(column)
        if has_gaps and (numbers % 1 == 0).all() and numbers.abs().max() <= 2**53:
            integers[name] = "Int64"
    records: list[dict[Hashable, object]] = plain(frame.astype(integers)).to_dict("records")
    return records


def content_digests(frame: pd.DataFrame, stories: Sequence[Story]) -> list[str]:
    """Hash the content of N stories: id, title, text and metadata in the rows of a frame, and views."""
    digests = []
    for row, story in zip(frame.to_dict("records"), stories, strict=True):
        values = {name: value for name, value in row.items() if value is not None}
        content = json.dumps([values, story.views and story.views.texts], default=str)
        digests.append(hashlib.sha256(content.encode()).hexdigest())
    return digests


def metadata_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the metadata columns of a collection's frame: those after id, title and text."""
    return list(frame.columns[3:])


def rows_by_id(frame: pd.DataFrame) -> dict[str, int]:
    """Return the row of each story, by its id."""
    return dict(zip(frame["id"], range(len(frame)), strict=True))


def texts_by_id(frame: pd.DataFrame) -> dict[str, str]:
    """Return the text of each story, by its id."""
    return dict(zip(frame["id"], frame["text"], strict=True))


def passage_vectors(stories: Sequence[Passages]) -> PassageVectors:
    """Join the vectors of the passages of N stories."""
    return PassageVectors.of([story.vectors for story in stories])


def centered_passages(passages: PassageVectors, mean: Floats) -> PassageVectors:
    """Subtract a mean (D,) from the vectors of passages, in single precision, and normalize the results."""
    return PassageVectors(centered(passages.vectors.astype(np.float32), mean), passages.starts)


def story_frame(stories: Stories) -> pd.DataFrame:
    """Tabulate stories: id, title (may be empty), text, then the metadata columns.

    Raises:
        DataError: if two ids are equal, or a column has a reserved name.
    """
    rows = []
    for id, title, story, metadata in zip(stories.story_ids, stories.titles, stories, stories.metadata, strict=True):
        row: dict[str, object] = {"id": id, "title": title or "", "text": story.source_text}
        for name, value in metadata.items():
            # An empty cell is a missing value: CAST(year AS INT) fails on "", and unknown authors are not the same one.
            row[name] = None if value == "" else value
        rows.append(row)
    for name in column_names(stories.metadata):
        if is_reserved(name):
            raise DataError("reserved_column", path=stories.report.path, column=name)
    for row in rows:
        _require_text(row, stories.report.path)
    return plain(pd.DataFrame(rows, dtype=object))  # otherwise integers with gaps become floats


def is_reserved(name: str) -> bool:
    """Return True for the name of a column that an index reserves or forbids."""
    return name in RESERVED or "." in name or name[:1] in ("", "_")


def _require_text(row: Mapping[str, object], path: Path) -> None:
    """Raise DataError for text that is not Unicode, which pandas 3 refuses and earlier releases pass to the index."""
    for name, value in row.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise DataError("column_without_text", path=path, column=name, reason=reason(error)) from error


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace missing values of any kind with None."""
    return frame.astype(object).where(frame.notna(), None)
