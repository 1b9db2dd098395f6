"""Raw rows of JSON Lines, CSV, TSV and text files, each with the line it starts on; what they mean is read later."""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from narrlit.errors import DataError

T = TypeVar("T")

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
DELIMITERS = {".csv": ",", ".tsv": "\t"}

# What fits a C long everywhere: a larger limit overflows where long has 32 bits.
_FIELD_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as parsed: a JSON value, a mapping of a CSV's cells, or a line of text."""

    line: int
    value: object


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file's rows in order; there is at least one."""

    path: Path
    rows: list[RawRow]

    def first_fit(self, layout_of: Callable[[Collection[str]], T]) -> T | None:
        """The file's layout: that of the first row whose keys have one, None if no row's have."""
        found = (layout_of(tuple(row.value)) for row in self.rows if isinstance(row.value, Mapping))
        return next((layout for layout in found if layout is not None), None)

    def at(self, line: int) -> str:
        """The place as messages write it, FILE:LINE."""
        return f"{self.path}:{line}"


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hex.

    Raises:
        DataError: if the file is missing, a folder or can't be read.
    """
    return hashlib.sha256(_bytes(Path(path))).hexdigest()


def read_raw(path: str | Path) -> RawFile:
    """Read every row of a file; its suffix says how.

    Raises:
        DataError: if the file is missing, a folder, empty, not UTF-8, of an unknown kind or broken.
    """
    path = Path(path)
    text = _text(path)
    suffix = path.suffix.lower()
    if suffix in JSON_SUFFIXES:
        rows = _json_rows(path, text)
    elif suffix in DELIMITERS:
        rows = _csv_rows(path, text, DELIMITERS[suffix])
    elif suffix == ".txt":
        rows = [RawRow(number, line) for number, line in _lines(text)]
    else:
        raise DataError(f"{path}: unknown kind of file '{suffix}'; name a .jsonl, .csv, .tsv or .txt file")
    if not rows:
        raise DataError(f"{path} has no rows; name a file with data in it")
    return RawFile(path, rows)


def _bytes(path: Path) -> bytes:
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file in it")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist; check the path") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path and its permissions") from error


def _text(path: Path) -> str:
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        bad = content[error.start]
        raise DataError(f"{path}:{line}: not UTF-8 (byte 0x{bad:02x}); save the file as UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; name a file with data in it")
    return text


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines: it also splits at U+2028 and its like, which may stand inside a JSON string or a story.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def _json_rows(path: Path, text: str) -> list[RawRow]:
    rows = []
    for number, line in _lines(text):
        try:
            rows.append(RawRow(number, json.loads(line)))
        except json.JSONDecodeError as error:
            what = f"broken JSON, {error.msg} (column {error.colno})"
            raise DataError(f"{path}:{number}: {what}; write one whole JSON value a line") from error
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
            raise DataError(
                f"{path}:{number}: JSON that can't be read; write one row of plain fields a line"
            ) from error
    return rows


def _csv_rows(path: Path, text: str, delimiter: str) -> list[RawRow]:
    rows: list[RawRow] = []
    header: list[str] | None = None
    # strict: a quote that never closes is an error here, otherwise the rest of the file becomes one story.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        with _large_fields():
            for cells in reader:
                if header is None and cells:
                    header = _header(path, cells)
                elif header is not None and cells:
                    rows.append(RawRow(line, _cells(f"{path}:{line}", header, cells)))
                line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{line}: broken CSV, {error}; put texts in double quotes, quotes doubled") from error
    return rows


def _header(path: Path, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise DataError(f"{path}: two columns are named {twice[0]}; rename or remove one")
    return header


def _cells(place: str, header: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(header):  # most often a comma in a text without quotes: the fields no longer fit their names
        raise DataError(
            f"{place}: {len(cells)} fields where the header has {len(header)}; put texts with delimiters in quotes"
        )
    # strict zip would refuse a short row; its fields are counted as missing by the reader instead.
    return dict(zip(header, cells, strict=False))


@contextmanager
def _large_fields() -> Iterator[None]:
    """Let csv read stories longer than its default 131,072 characters; the limit belongs to the whole process."""
    before = csv.field_size_limit(_FIELD_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)
