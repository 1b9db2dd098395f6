"""Readers of raw rows: JSON Lines, CSV, Excel, Parquet, text files, documents and folders of stories."""

import codecs
import csv
import hashlib
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TextIO

from charset_normalizer import from_bytes

from narrlit.data.schema import normal_form
from narrlit.errors import DataError, OptionError, printable, reading, sentence
from narrlit.optional import require
from narrlit.preprocessing.languages import detect_language

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLE_SUFFIXES = (*DELIMITERS, ".xlsx")
TEXT_SUFFIXES = (".txt", ".md")
DOCUMENT_SUFFIXES = (".docx", ".epub", ".pdf")
STORY_SUFFIXES = (*TEXT_SUFFIXES, *DOCUMENT_SUFFIXES)
"""Suffixes of files of which a folder has one per story."""
KNOWN_SUFFIXES = (*JSON_SUFFIXES, *TABLE_SUFFIXES, ".parquet", *STORY_SUFFIXES)
TEXT_COLUMNS = ("text", "story", "plot", "summary", "synopsis", "description")
STANDARD_INPUT = (Path("-"), Path("/dev/stdin"))
FORMULA = re.compile("'*[=+@\t\r-]")
"""Beginning of a cell that a spreadsheet program would run as a formula; in CSV, the writers put ' before it."""
# Control characters that do not occur in text.
_BINARY = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_HEADING = re.compile(r"^ {0,3}#{1,6} +(.+?)[ #]*$", re.MULTILINE)
_EPUB_HEAD = re.compile(r"\A(?:\*\*(?:Title|Authors|Language|Publisher|Date|Description|Identifier):\*\* .*\n*)+")
CODE_PAGES = {"cp1250": ("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl"), "cp1254": ("tr",), "cp1257": ("lt", "lv")}
"""Code pages of Windows other than cp1252, with the languages in Latin script that they encode."""
LATIN_SHARE = 0.25
"""Share of non-ASCII bytes below which a text is in Latin script; in other scripts, most bytes are non-ASCII."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """Row of a file.

    Attributes:
        line: number of the line on which the row starts, or of the row in formats without lines; counted from 1.
        value: JSON value, mapping of column names to cells, or text.
        path: file of the row, if it differs from that of its `RowFile`.
    """

    line: int
    value: Any
    path: Path | None = None

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
        """Return the place of a row for messages: file and line, or the path of a file in a folder."""
        if row.path is None and self.path.is_dir():
            return str(self.path / row.value["file_name"])
        return f"{row.path or self.path}:{row.line}"


Split = Literal["lines", "blank-lines"]


@dataclass(frozen=True)
class Layout:
    """Options for reading files of stories.

    Attributes:
        text_column: column with the text; default: text, story, plot, summary, synopsis or description.
        id_column: column with the ids; default: id.
        title_column: column with the titles; default: title.
        split: how a text file is divided into stories: each line is one, or they are separated by blank lines; default:
            the file is one story.
    """

    text_column: str | None = None
    id_column: str | None = None
    title_column: str | None = None
    split: Split | None = None


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


def file_digest(path: str | Path) -> str:
    """Compute the SHA-256 (hex) of a file's bytes, or of the names and bytes of a folder's files."""
    path = Path(path)
    if not path.is_dir():
        return hashlib.sha256(_bytes(path)).hexdigest()
    digest = hashlib.sha256()
    for file in _files(path):
        digest.update(file.name.encode() + b"\0")
        digest.update(_bytes(file))
    return digest.hexdigest()


def read_rows(path: str | Path, layout: Layout = Layout()) -> RowFile:
    """Read the rows of a file, of a folder with one story per file, or of standard input (`-`).

    The suffix of a file determines its format. Standard input is JSON Lines if its first line is a JSON object or
    string, a JSON array if all of it is one, CSV if its first line names a column of texts, and otherwise text.

    Args:
        path: file, folder or `-`.
        layout: how a text file is divided, and the column of texts by which CSV on standard input is recognized.

    Raises:
        DataError: if there is nothing to read, a file is broken or binary, or its type is unknown.
        OptionError: if `layout.split` is given for a file that is not text.
    """
    path = Path(path)
    notes: list[ReadingNote] = []
    rows = _folder_rows(path, notes) if path.is_dir() else _file_rows(path, layout, notes)
    if not rows:
        raise DataError("no_rows", path=path)
    return RowFile(path, rows, tuple(notes))


def _file_rows(path: Path, layout: Layout, notes: list[ReadingNote]) -> list[FileRow]:
    """Read every row of a file or of standard input."""
    content = _bytes(path)
    suffix = path.suffix.lower()
    if path not in STANDARD_INPUT and suffix not in KNOWN_SUFFIXES:
        raise DataError("unknown_file_type", path=path, suffix=suffix, known=KNOWN_SUFFIXES)
    if suffix == ".xlsx":
        return list(_table_rows(path, _excel_records(path, content, notes)))
    if suffix == ".parquet":
        return _parquet_rows(path, content)
    if suffix in DOCUMENT_SUFFIXES:
        return [FileRow(1, _document(path, notes))]
    text = _text(path, content, notes)
    if not text.strip():
        raise DataError("empty_file", path=path)
    if path in STANDARD_INPUT:
        suffix = _suffix_of(text, layout)
    if layout.split is not None and suffix not in TEXT_SUFFIXES:
        raise OptionError("split_of_other_file", split=layout.split, path=path)
    if suffix in JSON_SUFFIXES:
        return _json_rows(path, suffix, text)
    if suffix in DELIMITERS:
        records = _csv_records(path, io.StringIO(text, newline=""), DELIMITERS[suffix])
        return list(_table_rows(path, records))
    return _text_rows(path, text, layout.split, notes)


def _parquet_rows(path: Path, content: bytes) -> list[FileRow]:
    parquet = require("pyarrow.parquet", "parquet")
    with reading("broken_parquet", path):
        values = parquet.read_table(io.BytesIO(content)).to_pylist()
    return numbered_rows(values)


def _json_rows(path: Path, suffix: str, text: str) -> list[FileRow]:
    """Read a JSON array, or one JSON value per line."""
    if suffix == ".json" and text.lstrip().startswith("["):
        return numbered_rows(_json(path, _Line(1, text)))
    lines = _lines(text.split("\n"))
    return [FileRow(line.number, _json(path, line)) for line in lines]


def stream_rows(file: IO[bytes], path: Path, wanted: Callable[[int], bool], start: int = 0) -> Iterator[FileRow | None]:
    """Read the rows of a JSON Lines, CSV or Parquet file one by one, in constant memory.

    Args:
        file: binary file that supports seeking.
        path: path of the file, for its suffix and for messages.
        wanted: function that returns True for the numbers of rows to read. For other rows, None is yielded, and their
            JSON is not parsed.
        start: number of the first row.

    Yields:
        The rows in order.

    Raises:
        DataError: if the file is broken.
    """
    suffix = path.suffix.lower()
    with reading("broken_file", path):
        if suffix == ".parquet":
            yield from _stream_parquet(file, path, wanted, start)
        elif suffix in DELIMITERS:
            text = io.TextIOWrapper(file, _encoding(file), newline="")
            rows = _table_rows(path, _csv_records(path, text, DELIMITERS[suffix]))
            for number, row in enumerate(rows, start):
                yield FileRow(row.line, row.value, path) if wanted(number) else None
        else:
            lines = _lines(io.TextIOWrapper(file, _encoding(file), newline="\n"))
            for number, line in enumerate(lines, start):
                yield FileRow(line.number, _json(path, line), path) if wanted(number) else None


def _stream_parquet(file: IO[bytes], path: Path, wanted: Callable[[int], bool], start: int) -> Iterator[FileRow | None]:
    """Read the rows of a Parquet file in batches; batches without a wanted row are not converted."""
    parquet = require("pyarrow.parquet", "parquet")
    first = start
    for batch in parquet.ParquetFile(file, buffer_size=2**20).iter_batches(1024):
        numbers = range(first, first + len(batch))
        first += len(batch)
        if not any(map(wanted, numbers)):
            yield from repeat(None, len(batch))
            continue
        for number, value in zip(numbers, batch.to_pylist(), strict=True):
            yield FileRow(number - start + 1, value, path) if wanted(number) else None


def _encoding(file: IO[bytes]) -> str:
    """Detect the encoding of a text file by its first megabyte."""
    beginning = file.read(2**20)
    file.seek(0)
    try:
        codecs.getincrementaldecoder("utf-8-sig")().decode(beginning)
    except UnicodeDecodeError:
        return _decoded(beginning).encoding
    return "utf-8-sig"


def _files(folder: Path) -> list[Path]:
    """List the files of a folder by name, without hidden files and lock files of word processors."""
    with reading("unreadable_folder", folder):
        return sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] not in ".~")


def _folder_rows(folder: Path, notes: list[ReadingNote]) -> list[FileRow]:
    """Read one story per file, with the columns of tables that have a column file_name."""
    files = _files(folder)
    story_files = [file for file in files if _holds_a_story(file)]
    if not story_files:
        raise _no_stories(folder, files)
    columns, unread = _columns_beside_stories(files, notes)
    rows = []
    story_notes: list[ReadingNote] = []
    for number, file in enumerate(story_files, start=1):
        story = _document(file, story_notes)
        cells = columns.pop(normal_form(file.name), None) or columns.pop(normal_form(file.stem), {})
        rows.append(FileRow(number, {**story, **cells, "text": story["text"], "file_name": file.name}))
    for note, count in Counter(map(str, story_notes)).items():
        notes.append(ReadingNote.of("note_of_files", n=count, note=note))
    if columns:
        notes.append(ReadingNote.of("files_not_found", n=len(columns), first=next(iter(columns))))
    if unread:
        notes.append(ReadingNote.of("unread_files", n=len(unread), first=unread[0].name))
    return rows


def _holds_a_story(file: Path) -> bool:
    """Return True if a file in a folder of stories is a story."""
    return file.suffix.lower() in STORY_SUFFIXES


def _no_stories(folder: Path, files: Sequence[Path]) -> DataError:
    """Make the error for a folder without stories, which names some of its files."""
    names = ", ".join([file.name for file in files[:5]]) or "no file"
    return DataError("no_stories_in_folder", path=folder, found=names)


_CellsOfFiles = dict[str, dict[str, object]]
"""Non-empty cells of a table's row by column, by the `normal_form` of the row's file_name."""


def _columns_beside_stories(files: Sequence[Path], notes: list[ReadingNote]) -> tuple[_CellsOfFiles, list[Path]]:
    """Read the tables among the files of a folder of stories.

    Returns:
        The cells of each story, and the files that are neither stories nor read.
    """
    columns: _CellsOfFiles = {}
    unread = []
    for file in files:
        if _holds_a_story(file):
            continue
        is_table = file.suffix.lower() in TABLE_SUFFIXES
        cells_of_files = _columns_of_files(file, notes) if is_table else {}
        if cells_of_files:
            columns |= cells_of_files
        else:
            unread.append(file)
    return columns, unread


def _columns_of_files(table: Path, notes: list[ReadingNote]) -> _CellsOfFiles:
    """Read the cells of each row of a table; none if the table has no column file_name."""
    table_notes: list[ReadingNote] = []
    cells_of_files: _CellsOfFiles = {}
    for row in _file_rows(table, Layout(), table_notes):
        if row.value.get("file_name"):
            cells = {name: cell for name, cell in row.value.items() if cell not in (None, "")}
            cells_of_files[normal_form(str(cells["file_name"]))] = cells
    if cells_of_files:
        for note in table_notes:
            notes.append(ReadingNote.of("note_of_table", table=table.name, note=str(note)))
    return cells_of_files


@lru_cache(maxsize=1)
def _standard_input(stream: TextIO) -> bytes:
    """Read standard input, and cache it, since it can't be read twice."""
    with reading("unreadable_input", "standard input"):
        content: bytes = stream.buffer.read()
        return content


def _bytes(path: Path) -> bytes:
    if path in STANDARD_INPUT:
        return _standard_input(sys.stdin)
    if not path.exists():
        raise DataError("no_such_file", path=path)
    with reading("unreadable_file", path):
        return path.read_bytes()


def _text(path: Path, content: bytes, notes: list[ReadingNote]) -> str:
    """Decode a file's text, and note an encoding other than UTF-8."""
    with suppress(UnicodeDecodeError):
        text = content.decode("utf-8-sig")
        if 10 * text.count("\0") <= len(text):
            return text
    text, encoding = _decoded(content)
    if _BINARY.search(text):
        raise DataError("not_text", path=path)
    notes.append(ReadingNote.of("read_as", encoding=encoding))
    return text


class _DecodedText(NamedTuple):
    """A text, and the encoding of its bytes."""

    text: str
    encoding: str


def _decoded(content: bytes) -> _DecodedText:
    """Decode text that is not UTF-8, and return it with its encoding; a NUL if the encoding can't be detected."""
    beginning = content[:100_000]
    beyond_ascii = sum(byte > 127 for byte in beginning)
    if beyond_ascii < LATIN_SHARE * len(beginning) and b"\0" not in content:
        # Latin script: charset-normalizer can't tell these code pages apart, but the language can.
        with suppress(UnicodeDecodeError):
            language = detect_language(content[:10_000].decode("cp1252"))
            encoding = _code_page(language)
            return _DecodedText(content.decode(encoding), encoding)

    match = from_bytes(content).best()
    if match is None:
        return _DecodedText("\0", "")
    return _DecodedText(str(match), match.encoding)


def _code_page(language: str | None) -> str:
    """Return the code page of Windows for a language in Latin script, or for an unknown language."""
    for name, languages in CODE_PAGES.items():
        if language in languages:
            return name
    return "cp1252"


def _suffix_of(text: str, layout: Layout) -> str:
    """Return the suffix that a file with the text of standard input would have."""
    if layout.split is not None:
        return ".txt"
    first_line = text.lstrip().partition("\n")[0]
    if _is_json(first_line, (dict, str)):
        return ".jsonl"
    if _is_json(text, (list,)):
        return ".json"
    cells = first_line.split(_delimiter(first_line))
    names = {cell.strip(' "\r').casefold() for cell in cells}
    text_columns = {*TEXT_COLUMNS, "anchor", "anchor_text", "anchor_story", str(layout.text_column).casefold()}
    return ".csv" if names & text_columns else ".txt"


def _is_json(text: str, kinds: tuple[type, ...]) -> bool:
    """Return True if a text is a JSON value of one of these types."""
    try:
        return isinstance(json.loads(text), kinds)
    except (ValueError, RecursionError):
        return False


class _Line(NamedTuple):
    """A line of text and its number."""

    number: int
    text: str


def _lines(lines: Iterable[str]) -> Iterator[_Line]:
    r"""Number lines from 1, and leave out blank ones.

    Callers split texts at "\n", not by `splitlines`, which also splits at U+2028 inside a JSON string or a story.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _Line(number, line.removesuffix("\n").removesuffix("\r"))


def _json(path: Path, line: _Line) -> Any:
    try:
        return json.loads(line.text)
    except (ValueError, RecursionError) as error:
        cause = getattr(error, "msg", error)
        raise DataError("broken_json", path=path, line=line.number, reason=cause) from error


def _text_rows(path: Path, text: str, split: Split | None, notes: list[ReadingNote]) -> list[FileRow]:
    """Divide a text into stories; it is one story if `split` is None."""
    lines = list(_lines(text.split("\n")))
    if split == "lines":
        return [FileRow(line.number, line.text) for line in lines]
    if split == "blank-lines":
        blocks = map(str.strip, re.split(r"\n\s*\n", text))
        return numbered_rows(filter(None, blocks))
    if len(lines) > 1 and path.suffix.lower() != ".md":
        notes.append(ReadingNote.of("one_story", lines=len(lines)))
    return [FileRow(1, _story(path, text))]


def _story(path: Path, text: str, title: str | None = None) -> dict[str, object]:
    """Make the story of a text file or document; the first heading is its title, and is removed from the top."""
    heading = None if path.suffix.lower() == ".txt" else _HEADING.search(text)
    if heading:
        title = title or heading[1]
        is_at_the_top = not text[: heading.start()].strip()
        if is_at_the_top:
            text = text[heading.end() :]
    story: dict[str, object] = {}
    if path not in STANDARD_INPUT:
        story["id"] = path.stem
    if title:
        story["title"] = title
    story["text"] = text.strip()
    return story


def _document(path: Path, notes: list[ReadingNote]) -> dict[str, object]:
    """Read a text file or document as one story; documents are converted to Markdown."""
    suffix = path.suffix.lower()
    content = _bytes(path)
    if suffix in TEXT_SUFFIXES:
        return _story(path, _text(path, content, notes))
    markitdown = require("markitdown", "documents")
    converters = require("markitdown.converters", "documents")
    with reading("broken_document", path):
        # Not the class MarkItDown, which would read a broken document as plain text.
        converter = getattr(converters, f"{suffix[1:].capitalize()}Converter")()
        document = converter.convert(io.BytesIO(content), markitdown.StreamInfo(extension=suffix))
    story = _story(path, _EPUB_HEAD.sub("", document.markdown), document.title)
    if not story["text"]:
        raise DataError("no_text_inside", path=path)
    return story


class _Sheet(NamedTuple):
    """Title of a sheet of a workbook, and the cells of each of its rows."""

    title: str
    rows: list[tuple[object, ...]]


class _Record(NamedTuple):
    """Cells of a table's record, and the number of its first line."""

    line: int
    cells: list[object]


def _excel_records(path: Path, content: bytes, notes: list[ReadingNote]) -> Iterator[_Record]:
    """Read the cells of the first sheet that is not empty, row by row; rows are numbered from 1."""
    openpyxl = require("openpyxl", "documents")
    with reading("broken_workbook", path):
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = []
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # declared dimensions may be too small, and cells outside them would be lost
            sheets.append(_Sheet(sheet.title, list(sheet.iter_rows(values_only=True))))
    first_filled = next((sheet for sheet in sheets if sheet.rows), _Sheet("", []))
    if len(sheets) > 1:
        notes.append(ReadingNote.of("read_sheet", sheet=printable(first_filled.title, 40), sheets=len(sheets)))
    for number, cells in enumerate(map(list, first_filled.rows), start=1):
        while cells and cells[-1] is None:
            cells.pop()
        yield _Record(number, cells)


def _delimiter(header: str, usual: str = ",") -> str:
    r"""Choose the delimiter that divides a header into the most columns.

    >>> _delimiter("id;title, author;text"), _delimiter("text", "\t")
    (';', '\t')
    """
    unquoted = re.sub('"[^"]*"', "", header)
    return max((usual, ",", ";", "\t", "|"), key=unquoted.count)


def _csv_records(path: Path, text: IO[str], usual: str) -> Iterator[_Record]:
    """Read the cells of CSV, record by record with the number of its first line; `usual` delimits if in doubt."""
    csv.field_size_limit(2**31 - 1)  # by default 131,072 characters, fewer than a novel has
    filled_lines = filter(str.strip, iter(text.readline, ""))
    delimiter = _delimiter(next(filled_lines, ""), usual)
    text.seek(0)
    line = 1
    try:
        # strict, since an unclosed quote would otherwise turn the rest of the file into one story.
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        for cells in reader:
            yield _Record(line, [_without_guard(cell) for cell in cells])
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError("broken_csv", path=path, line=line, reason=error) from error


def _without_guard(cell: str) -> str:
    """Remove the ' that writers put before a text that would run as a formula."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def _table_rows(path: Path, records: Iterable[_Record]) -> Iterator[FileRow]:
    """Pair the cells of each record with the names in the first record; empty records are left out."""
    header: list[str] = []
    for line, cells in records:
        if not cells:
            continue
        if not header:
            header = _header(path, line, cells)
        elif len(cells) > len(header):
            raise DataError("too_many_fields", path=path, line=line, found=len(cells), needed=len(header))
        else:
            yield FileRow(line, dict(zip(header, cells, strict=False)))


def _header(path: Path, line: int, cells: Sequence[object]) -> list[str]:
    """Read the names of a table's columns from its first record.

    Raises:
        DataError: if two columns have the same name.
    """
    header = ["" if cell is None else normal_form(str(cell)).strip() for cell in cells]
    for name, count in Counter(header).items():
        if name and count > 1:
            raise DataError("same_column_twice", path=path, line=line, column=name)
    return header
