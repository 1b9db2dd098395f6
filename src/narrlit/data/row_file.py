"""Rows of files, with the place of each and notes on how they were read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from narrlit.data.sources import ARCHIVE_SUFFIX
from narrlit.errors import sentence

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLE_SUFFIXES = (*DELIMITERS, ".xlsx")
TEXT_SUFFIXES = (".txt", ".md")
DOCUMENT_SUFFIXES = (".docx", ".odt", ".rtf", ".epub", ".pdf", ".html", ".htm", ".xhtml", ".xml")
STORY_SUFFIXES = (*TEXT_SUFFIXES, *DOCUMENT_SUFFIXES)
"""Suffixes of files of which a folder has one per story."""
KNOWN_SUFFIXES = (*JSON_SUFFIXES, *TABLE_SUFFIXES, ".parquet", *STORY_SUFFIXES, ARCHIVE_SUFFIX)
STANDARD_INPUT = (Path("-"), Path("/dev/stdin"))
TEXT_COLUMNS = ("text", "story", "plot", "summary", "synopsis", "description")


@dataclass(frozen=True, slots=True)
class FileRow:
    """Row of a file.

    Attributes:
        line: number of the line on which the row starts, or of the row in formats without lines; counted from 1.
        value: JSON value, mapping of column names to cells, or text.
        path: file of the row, if it differs from that of its `RowFile`.
        sheet: sheet of a workbook, if several are read.
    """

    line: int
    value: Any
    path: Path | None = None
    sheet: str | None = None

    @property
    def cells(self) -> Mapping[str, Any]:
        """Cells by column; none if the row has no columns."""
        return cells_of(self.value)


@dataclass(frozen=True)
class ReadingNote:
    """Note on how a file was read, such as its encoding.

    Attributes:
        code: code of its sentence in `narrlit.english`.
        values: values that the sentence names.

    >>> print(ReadingNote.of("read_as", encoding="cp1252"))
    read as cp1252
    """

    code: str
    values: Mapping[str, str | int]

    @classmethod
    def of(cls, code: str, **values: str | int) -> "ReadingNote":
        """Make a note from a code and the values that its sentence names."""
        return cls(code, values)

    def __str__(self) -> str:
        return sentence(self.code, self.values)


@dataclass(frozen=True, slots=True)
class RowFile:
    """Rows of a file in order, at least one, with notes on how they were read."""

    path: Path
    rows: list[FileRow]
    notes: tuple[ReadingNote, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns of all rows, in order of appearance."""
        names = column_names(row.cells for row in self.rows)
        return list(dict.fromkeys(map(str, names)))

    def place(self, row: FileRow) -> str:
        """Return the place of a row for messages: file and line, or the path of a file in a folder or archive."""
        if row.path is not None and row.path.suffix.lower() in STORY_SUFFIXES:
            return str(row.path)
        sheet = "" if row.sheet is None else f"[{row.sheet}]"
        return f"{row.path or self.path}{sheet}:{row.line}"


def cells_of(value: object) -> Mapping[str, Any]:
    """Return the cells of a row's value by column; a value that is not a mapping has none."""
    return value if isinstance(value, Mapping) else {}


def numbered_rows(values: Iterable[object], path: Path | None = None) -> list[FileRow]:
    """Make rows of values, numbered from 1."""
    return [FileRow(number, value, path) for number, value in enumerate(values, start=1)]


def column_names(records: Iterable[Mapping[str, object]]) -> list[str]:
    """List the columns of all records, in order of appearance.

    >>> column_names([{"text": "A king ruled."}, {"id": 2, "text": "A queen ruled."}])
    ['text', 'id']
    """
    return list(dict.fromkeys(chain.from_iterable(records)))
