"""Stories as Arrow columns, for LanceDB tables.

Letters in shapes: N stories, D dimension.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from narrlit.encoding.story_encoder import Passages
from narrlit.errors import DataError
from narrlit.library.story_frame import PASSAGE_TEXTS, PASSAGES, VECTOR, passage_vectors

if TYPE_CHECKING:
    import pyarrow as pa

EMBEDDED = (VECTOR, PASSAGES, PASSAGE_TEXTS)
"""Columns that the encoder computes."""


def fitted_columns(table: Any, arrays: Mapping[str, "pa.Array"], path: str | Path) -> "pa.Table":
    """Convert columns to the types that they have in a LanceDB table, to which new columns are added.

    Args:
        table: the table.
        arrays: the columns of N stories.
        path: the index, for messages.

    Returns:
        The columns of the table, except those that the encoder computes and `arrays` lacks.

    Raises:
        DataError: if a column has another type in the table.
    """
    import pyarrow as pa

    known = table.schema.names
    new = [pa.field(name, array.type) for name, array in arrays.items() if name not in known]
    if new:
        table.add_columns(new)
    rows = len(next(iter(arrays.values())))
    columns = dict(arrays)
    for field in table.schema:
        if field.name in EMBEDDED and field.name not in arrays:
            continue
        array = arrays.get(field.name, pa.nulls(rows))
        try:
            columns[field.name] = array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise DataError(
                "type_of_column", column=field.name, type=field.type, path=path, found=array.type
            ) from error
    return pa.table(columns)


def vector_array(vectors: NDArray[np.floating]) -> "pa.Array":
    """Convert vectors (N, D) to an Arrow array of N lists."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def passage_arrays(stories: Sequence[Passages]) -> tuple["pa.Array", "pa.Array"]:
    """Convert the passages of N stories to Arrow arrays of N lists: vectors and texts."""
    import pyarrow as pa

    joined = passage_vectors(stories)
    bounds = pa.array([*joined.starts, len(joined.vectors)], pa.int32())
    vectors = pa.ListArray.from_arrays(bounds, vector_array(joined.vectors.astype(np.float16)))
    texts = pa.array([story.texts for story in stories], pa.list_(pa.string()))
    return vectors, texts


def column_arrays(frame: pd.DataFrame) -> dict[str, "pa.Array"]:
    """Convert the columns of a frame to Arrow arrays."""
    return {name: _array(values.tolist()) for name, values in frame.items()}


def _array(values: list[object]) -> "pa.Array":
    """Convert a column to an Arrow array; lists, objects, mixed values and large integers become text."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        array = None
    if array is None or pa.types.is_nested(array.type):
        array = pa.array(list(map(_json_text, values)))
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _json_text(value: object) -> str | None:
    """Convert a value to text: JSON, except for text and missing values."""
    return value if isinstance(value, str | None) else json.dumps(value, default=str)
