"""The shared task's submission: a zip with track_a.jsonl and/or track_b.npy at its root, rows in input order."""

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.errors import DataError, reading
from narrlit.files import atomic_path

Embeddings = NDArray[np.float32]
TRACK_A, TRACK_B, TRACK_B_LINES = "track_a.jsonl", "track_b.npy", "track_b.jsonl"
LABEL = "text_a_is_closer"
DIMENSIONS_ALLOWED = range(10, 8193)
LARGEST = 2**30
"""Bytes that a submission may unpack to."""


@dataclass(frozen=True)
class Contents:
    """What a valid submission holds; None for a track that is not in it."""

    track_a_rows: int | None
    track_b_rows: int | None
    dimension: int | None


def write_submission(
    path: Path,
    track_a: list[bool] | None,
    track_b: Embeddings | None,
    rows_a: int | None = None,
    rows_b: int | None = None,
) -> Contents:
    """Write a submission zip, which is checked before it takes its name.

    Args:
        path: the zip.
        track_a: for every triple, whether A is closer.
        track_b: (N, D) embeddings of the stories.
        rows_a: how many rows Track A must have, if known.
        rows_b: how many rows Track B must have, if known.

    Raises:
        DataError: as check_submission does; a zip that was there before is kept.
    """
    with atomic_path(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            if track_a is not None:
                archive.writestr(TRACK_A, "".join(json.dumps({LABEL: answer}) + "\n" for answer in track_a))
            if track_b is not None:
                buffer = io.BytesIO()
                np.save(buffer, track_b, allow_pickle=False)
                archive.writestr(TRACK_B, buffer.getvalue())
        return _check(temporary, path, rows_a, rows_b)


def check_submission(path: Path, rows_a: int | None = None, rows_b: int | None = None) -> Contents:
    """Check a submission zip: file names, rows, types, dimension, finite and non-zero embeddings.

    Args:
        path: the zip.
        rows_a: how many rows Track A must have, if known.
        rows_b: how many rows Track B must have, if known.

    Raises:
        DataError: naming the file inside the zip, the row, and what is wrong.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return _check(path, path, rows_a, rows_b)


def _check(place: Path, path: Path, rows_a: int | None, rows_b: int | None) -> Contents:
    """Check the zip that lies at `place`; messages name it `path`."""
    with reading("submission", path, "it is no zip file, or damaged or encrypted"), zipfile.ZipFile(place) as archive:
        names = archive.namelist()
        unknown = sorted(set(names) - {TRACK_A, TRACK_B, TRACK_B_LINES})
        if unknown or not names:
            raise DataError(
                f"{path}: it holds {', '.join(unknown) or 'nothing'}; only {TRACK_A}, {TRACK_B} or {TRACK_B_LINES} "
                "are allowed in it, at its root"
            )
        if TRACK_B in names and TRACK_B_LINES in names:
            raise DataError(f"{path}: it holds {TRACK_B} and {TRACK_B_LINES}; leave one out")
        if sum(member.file_size for member in archive.infolist()) > LARGEST:
            raise DataError(f"{path}: more than {LARGEST / 1e9:.1f} GB unpacked, which is no submission")
        answers = _answers(archive.read(TRACK_A), path) if TRACK_A in names else None
        embeddings = _embeddings(archive, names, path)
    _check_rows(path, TRACK_A, answers, rows_a)
    _check_rows(path, "Track B", None if embeddings is None else len(embeddings), rows_b)
    return Contents(answers, *((None, None) if embeddings is None else embeddings.shape))


def _check_rows(path: Path, name: str, found: int | None, wanted: int | None) -> None:
    if wanted is not None and found != wanted:
        raise DataError(f"{path}: {name} has {'no' if found is None else found} rows, the test file has {wanted}")


def _lines(content: bytes, place: str) -> list[Any]:
    rows = []
    for number, line in enumerate(content.decode("utf-8").rstrip("\n").split("\n"), 1):
        with reading("line", f"{place}:{number}", "write one JSON object a line"):
            rows.append(json.loads(line))
    return rows


def _answers(content: bytes, path: Path) -> int:
    rows = _lines(content, f"{path}/{TRACK_A}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not isinstance(row.get(LABEL), bool):
            raise DataError(f"{path}/{TRACK_A}:{number}: {LABEL} must be true or false")
    return len(rows)


def _embeddings(archive: zipfile.ZipFile, names: list[str], path: Path) -> Embeddings | None:
    if TRACK_B in names:
        place = f"{path}/{TRACK_B}"
        content = archive.read(TRACK_B)
        with reading("array", place, "write it by numpy.save"):
            embeddings = np.load(io.BytesIO(content), allow_pickle=False)
    elif TRACK_B_LINES in names:
        place = f"{path}/{TRACK_B_LINES}"
        rows = _lines(archive.read(TRACK_B_LINES), place)
        with reading("rows", place, "every row needs `embeddings`, a list of equally many numbers"):
            embeddings = np.array([row["embeddings"] for row in rows], dtype=np.float32)
    else:
        return None
    return _checked(embeddings, place)


def _checked(embeddings: Any, place: str) -> Embeddings:
    if not isinstance(embeddings, np.ndarray):
        raise DataError(f"{place}: it is an archive of arrays; save one array with numpy.save")
    if embeddings.ndim != 2 or embeddings.dtype.kind not in "fiu":
        raise DataError(f"{place}: rows x dimension numbers are needed, found {embeddings.dtype} of {embeddings.shape}")
    if embeddings.shape[1] not in DIMENSIONS_ALLOWED:
        raise DataError(f"{place}: an embedding has {embeddings.shape[1]} dimensions, the task allows 10 to 8192")
    bad = np.flatnonzero(~np.isfinite(embeddings).all(axis=1))
    if bad.size:
        raise DataError(f"{place}: row {bad[0] + 1} holds NaN or infinity")
    zero = np.flatnonzero((embeddings == 0).all(axis=1))
    if zero.size:
        raise DataError(f"{place}: row {zero[0] + 1} is all zeros, which has no cosine")
    checked: Embeddings = embeddings
    return checked
