"""Rows of tables: CSV with any delimiter, and workbooks."""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from narrlit.data.row_file import TEXT_COLUMNS, FileRow, ReadingNote
from narrlit.data.schema import normal_form
from narrlit.errors import DataError, printable, reading
from narrlit.optional import require

FORMULA = re.compile("'*[=+@\t\r-]")
"""Beginning of a cell that a spreadsheet program would run as a formula; in CSV, the writers put ' before it."""
STORY_COLUMNS = frozenset({*TEXT_COLUMNS, "anchor", "anchor_text", "anchor_story"})
"""Columns of texts by which a header is recognized."""
HEAD = 20
"""Number of records at the beginning of a table among which its header is looked for."""
_SEPARATOR = re.compile(r"sep=(.)\r?\n?")
"""First line that tells Excel the delimiter."""


class Record(NamedTuple):
    """Cells of a table's record, and the number of its first line."""

    line: int
    cells: list[object]

    @property
    def filled(self) -> int:
        """Number of cells that are not empty."""
        return sum(not is_blank(cell) for cell in self.cells)

    def has_one_of(self, names: Iterable[str]) -> bool:
        """Return True if a cell is one of these names, in any case."""
        cells = {str(cell).strip().casefold() for cell in self.cells if cell is not None}
        return not cells.isdisjoint(names)


def is_blank(cell: object) -> bool:
    """Return True for a cell without a value or visible text."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


# CSV -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    r"""Format of a delimited file.

    Attributes:
        delimiter: character between two cells.
        quoted: cells with delimiters or line breaks are in double quotes.
        declared: the first line declares the delimiter (sep=;).

    >>> Dialect.of("id;title, author;text"), Dialect.of("text", "\t").delimiter
    (Dialect(delimiter=';', quoted=True, declared=False), '\t')
    """

    delimiter: str
    quoted: bool = True
    declared: bool = False

    @classmethod
    def of(cls, beginning: str, usual: str = ",") -> "Dialect":
        """Choose the delimiter that divides the header into the most columns, and decide whether quotes are marks.

        Args:
            beginning: beginning of the file.
            usual: delimiter if in doubt.
        """
        declaration = _SEPARATOR.match(beginning)
        if declaration:
            return cls(declaration[1], declared=True)
        header = next(filter(str.strip, io.StringIO(beginning, newline="")), "")
        unquoted = re.sub('"[^"]*"', "", header)
        delimiter = max((usual, ",", ";", "\t", "|"), key=unquoted.count)
        return cls(delimiter, quoted=delimiter != "\t" or _has_quoted_cells(beginning))


def _has_quoted_cells(beginning: str) -> bool:
    """Return False if quotes in tab-separated text are part of the cells: every line is complete without them."""
    if '"' not in beginning:
        return True
    lines = [line for line in io.StringIO(beginning, newline="") if line.strip()]
    widths = {line.count("\t") for line in lines}
    if len(widths) > 1 or widths == {0}:
        return True
    try:
        records = list(csv.reader(lines, delimiter="\t", strict=True))
    except csv.Error:
        return False
    return len(records) == len(lines)


def delimited_records(path: Path, text: IO[str], usual: str) -> Iterator[Record]:
    """Read the cells of CSV, record by record with the number of its first line; `usual` delimits if in doubt."""
    csv.field_size_limit(2**31 - 1)  # by default 131,072 characters, fewer than a novel has
    beginning = text.read(2**20)
    text.seek(0)
    dialect = Dialect.of(beginning, usual)
    line = 1
    if dialect.declared:
        text.readline()
        line = 2
    skipped = line - 1
    try:
        # strict, since an unclosed quote would otherwise turn the rest of the file into one story.
        reader = csv.reader(
            text,
            delimiter=dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
            strict=True,
        )
        for cells in reader:
            yield Record(line, [_without_guard(cell) for cell in cells])
            line = reader.line_num + 1 + skipped
    except csv.Error as error:
        raise DataError("broken_csv", path=path, line=line, reason=error) from error


def _without_guard(cell: str) -> str:
    """Remove the ' that writers put before a text that would run as a formula."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


# Records to rows -----------------------------------------------------------------------------------------------------


def table_rows(
    path: Path, records: Iterable[Record], notes: list[ReadingNote], text_column: str | None = None
) -> Iterator[FileRow]:
    """Pair the cells of each record with the names in the header; empty records are left out.

    The header is the first record, or a wider one below lines that have fewer cells, such as a title.

    Args:
        path: file, for messages.
        records: records of the table.
        notes: list to which notes on what is left out are added.
        text_column: column of the texts, by which a header is recognized, too.
    """
    # In a table of one column, an empty cell in quotes is a row.
    filled = (record for record in records if record.filled or record.cells == [""])
    head = list(islice(filled, HEAD))
    if not head:
        return
    start = _header_index(head, text_column)
    if start:
        notes.append(ReadingNote.of("left_out_above_header", n=start, line=head[start].line))
    header = _header(path, head[start])
    nameless = 0
    for line, cells in chain(head[start + 1 :], filled):
        while len(cells) > len(header) and is_blank(cells[-1]):
            cells.pop()
        if len(cells) > len(header):
            raise DataError("too_many_fields", path=path, line=line, found=len(cells), needed=len(header))
        row = {}
        for name, cell in zip(header, cells, strict=False):
            if name:
                row[name] = cell
            elif not is_blank(cell):
                nameless += 1
        if row:
            yield FileRow(line, row)
    if nameless:
        notes.append(ReadingNote.of("left_out_nameless", n=nameless))


def _header_index(head: Sequence[Record], text_column: str | None) -> int:
    """Return the index of the header among the first records of a table."""
    names = _names_of_texts(text_column)
    for number, record in enumerate(head):
        is_wider = all(above.filled < record.filled for above in head[:number])
        if is_wider and record.has_one_of(names):
            return number
    widest = max(head, key=lambda record: record.filled)
    # Without a known name: a title alone in its line, with a table of three columns or more below.
    return head.index(widest) if head[0].filled == 1 and widest.filled > 2 else 0


def _names_of_texts(text_column: str | None) -> set[str]:
    """Return the names by which a column of texts, and so a header, is recognized."""
    return {*STORY_COLUMNS} if text_column is None else {*STORY_COLUMNS, text_column.casefold()}


def _header(path: Path, record: Record) -> list[str]:
    """Read the names of a table's columns from a record.

    Raises:
        DataError: if two columns have the same name.
    """
    header = ["" if cell is None else normal_form(str(cell)).strip() for cell in record.cells]
    for name, count in Counter(header).items():
        if name and count > 1:
            raise DataError("same_column_twice", path=path, line=record.line, column=name)
    return header


# Workbooks -----------------------------------------------------------------------------------------------------------


class Sheet(NamedTuple):
    """Sheet of a workbook.

    Attributes:
        title: name of the sheet.
        visible: it is not hidden.
        records: its rows, numbered from 1, without empty cells at the end.
        unsaved: columns of formulas without saved values, each as its number from 1.
        merged: number of cells that repeat the value of a merged one.
    """

    title: str
    visible: bool
    records: list[Record]
    unsaved: frozenset[int]
    merged: int


def workbook_rows(
    path: Path, content: bytes, notes: list[ReadingNote], text_column: str | None = None
) -> list[FileRow]:
    """Read the rows of a workbook: of its first visible sheet with a column of texts, and of those with equal headers.

    Raises:
        DataError: if the workbook is broken, or its texts are formulas without saved values.
    """
    all_sheets = [sheet for sheet in _sheets(path, content) if sheet.records]
    visible = [sheet for sheet in all_sheets if sheet.visible]
    if not visible:
        return []
    names = _names_of_texts(text_column)
    with_texts = [sheet for sheet in visible if any(record.has_one_of(names) for record in sheet.records[:HEAD])]
    first, *others = with_texts or visible
    rows = _sheet_rows(path, first, notes, text_column)
    read = [first.title]
    for sheet in others if with_texts else []:
        other_notes: list[ReadingNote] = []
        other_rows = _sheet_rows(path, sheet, other_notes, text_column)
        if rows and other_rows and list(other_rows[0].value) == list(rows[0].value):
            rows += other_rows
            notes += other_notes
            read.append(sheet.title)
    left_out = [sheet.title for sheet in all_sheets if sheet.title not in read]
    if left_out:
        notes.append(ReadingNote.of("read_sheet", sheet=_listed(read), sheets=_listed(left_out)))
    if len(read) == 1:
        return [FileRow(row.line, row.value) for row in rows]
    notes.append(ReadingNote.of("read_sheets", sheets=_listed(read)))
    return [
        FileRow(row.line, {**row.value, "sheet": row.value.get("sheet", row.sheet)}, sheet=row.sheet) for row in rows
    ]


def _listed(titles: Sequence[str]) -> str:
    return ", ".join(printable(title, 40) for title in titles)


def _sheet_rows(path: Path, sheet: Sheet, notes: list[ReadingNote], text_column: str | None) -> list[FileRow]:
    """Read the rows of a sheet."""
    if sheet.merged:
        notes.append(ReadingNote.of("filled_merged", n=sheet.merged))
    if sheet.unsaved:
        start = _header_index([record for record in sheet.records if record.filled][:HEAD], text_column)
        header = [record for record in sheet.records if record.filled][start].cells
        for column in sorted(sheet.unsaved):
            name = str(header[column - 1]) if column <= len(header) else f"number {column}"
            if name.strip().casefold() in {*STORY_COLUMNS, str(text_column).casefold()}:
                raise DataError("formulas_without_values", path=path, column=name)
            notes.append(ReadingNote.of("left_out_formulas", column=name))
    return [
        FileRow(row.line, row.value, sheet=sheet.title) for row in table_rows(path, sheet.records, notes, text_column)
    ]


def _sheets(path: Path, content: bytes) -> list[Sheet]:
    """Read the sheets of a workbook."""
    openpyxl = require("openpyxl", "documents")
    with reading("broken_workbook", path):
        book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        formulas = openpyxl.load_workbook(io.BytesIO(content)) if _has_formulas(content) else None
        sheets = []
        for sheet in book.worksheets:
            unsaved = frozenset[int]() if formulas is None else _unsaved(sheet, formulas[sheet.title])
            sheets.append(_sheet(sheet, unsaved))
    return sheets


def _has_formulas(content: bytes) -> bool:
    """Return True if a cell of a workbook is a formula."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(re.search(b"<(?:[a-z]+:)?f[ >/]", archive.read(part)) for part in parts)


def _unsaved(sheet: Any, formulas: Any) -> frozenset[int]:
    """List the columns of a sheet in which formulas have no saved value."""
    columns = set()
    for cells in formulas.iter_rows():
        for cell in cells:
            if cell.data_type == "f" and sheet.cell(cell.row, cell.column).value is None:
                columns.add(cell.column)
    return frozenset(columns)


def _sheet(sheet: Any, unsaved: frozenset[int]) -> Sheet:
    """Read the cells of a sheet; a cell merged over several rows counts for each of them."""
    rows = [list(cells) for cells in sheet.iter_rows(min_row=1, min_col=1, values_only=True)]
    merged = 0
    for area in sheet.merged_cells.ranges:
        value = rows[area.min_row - 1][area.min_col - 1]
        for row in rows[area.min_row : area.max_row]:
            if value is not None:
                row[area.min_col - 1] = value
                merged += 1
    records = []
    for number, cells in enumerate(rows, start=1):
        while cells and cells[-1] is None:
            cells.pop()
        records.append(Record(number, cells))
    while records and not records[-1].filled:
        records.pop()
    return Sheet(sheet.title, sheet.sheet_state == "visible", records, unsaved, merged)
