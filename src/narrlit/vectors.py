"""Vectors with their stories, in files that other programs read."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from narrlit.data.records import Story
from narrlit.files import atomic_path
from narrlit.optional import require


def write_vectors(path: Path, stories: Sequence[Story], vectors: NDArray[np.float32]) -> None:
    """Write vectors (N, D) in the format that the file's ending names, atomically.

    Args:
        path: ends in .npy (numbers alone), .jsonl or .parquet (with row, id and text).
        stories: the N stories.
        vectors: their vectors.
    """
    writer = {".npy": _npy, ".jsonl": _jsonl, ".parquet": _parquet}[path.suffix]
    with atomic_path(path) as temporary:
        writer(temporary, stories, vectors)


def _npy(path: Path, stories: Sequence[Story], vectors: NDArray[np.float32]) -> None:
    with path.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)


def _jsonl(path: Path, stories: Sequence[Story], vectors: NDArray[np.float32]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row, (story, vector) in enumerate(zip(stories, vectors, strict=True)):
            record = {"row": row, "id": story.id, "text": story.text, "embedding": vector.tolist()}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _parquet(path: Path, stories: Sequence[Story], vectors: NDArray[np.float32]) -> None:
    arrow = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    columns = {
        "row": arrow.array(range(len(stories)), arrow.int64()),
        "id": arrow.array([story.id for story in stories], arrow.string()),
        "text": arrow.array([story.text for story in stories], arrow.string()),
        "embedding": arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), vectors.shape[1]),
    }
    parquet.write_table(arrow.table(columns), path)
