"""Readers of raw rows: JSON Lines, CSV, Excel, Parquet, text files, documents and folders of stories."""

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
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, NamedTuple, TextIO

from narrlit.data.decoding import decoded, encoding_of
from narrlit.data.documents.division import divided
from narrlit.data.documents.document import DocumentText, joined_blocks
from narrlit.data.documents.reading import read_document
from narrlit.data.joining import Described, FileNames, described_files
from narrlit.data.row_file import (
    DELIMITERS,
    JSON_SUFFIXES,
    KNOWN_SUFFIXES,
    STANDARD_INPUT,
    STORY_SUFFIXES,
    TABLE_SUFFIXES,
    TEXT_SUFFIXES,
    FileRow,
    ReadingNote,
    RowFile,
    column_names,
    numbered_rows,
)
from narrlit.data.schema import normal_form
from narrlit.data.sources import SourceFile, is_source, source_files
from narrlit.data.tables import STORY_COLUMNS, Dialect, delimited_records, table_rows, workbook_rows
from narrlit.errors import DataError, OptionError, printable, reading
from narrlit.optional import require

NAMED_PROBLEMS = 3
"""Number of files that can't be read of which the problem is told."""
TextSplit = Literal["none", "auto", "headings", "lines", "blank-lines"]


@dataclass(frozen=True)
class Layout:
    """Options for reading files of stories.

    Attributes:
        text_column: column with the text; default: text, story, plot, summary, synopsis or description.
        id_column: column with the ids; default: id.
        title_column: column with the titles; default: title.
        file_column: column with names of files, in a table beside them; default: the one whose values are such names.
        split: how a text file or document is divided into stories; none: the file is one story; headings: at its
            headings; auto: at headings or, without any, at the titles in its contents or between blank lines; lines,
            blank-lines: a text file alone.
        strict: stop at the first row or file that can't be used, instead of leaving it out and counting it.
    """

    text_column: str | None = None
    id_column: str | None = None
    title_column: str | None = None
    file_column: str | None = None
    split: TextSplit = "none"
    strict: bool = False


def file_digest(path: str | Path) -> str:
    """Compute the SHA-256 (hex) of a file's bytes, or of the names and bytes of a folder's files."""
    path = Path(path)
    if not path.is_dir():
        return hashlib.sha256(_bytes(path)).hexdigest()
    digest = hashlib.sha256()
    for file in source_files(path):
        digest.update(file.name.encode() + b"\0")
        digest.update(file.read())
    return digest.hexdigest()


def read_rows(path: str | Path, layout: Layout = Layout()) -> RowFile:
    """Read the rows of a file, of a folder or zip archive with one story per file, or of standard input (`-`).

    The suffix of a file determines its format. Standard input is JSON Lines if its first line is a JSON object or
    string, a JSON array if all of it is one, CSV if its first line names a column of texts, and otherwise text.

    Args:
        path: file, folder, archive or `-`.
        layout: how a text file is divided, and the column of texts by which CSV on standard input is recognized.

    Raises:
        DataError: if there is nothing to read, a file is broken or binary, or its type is unknown.
        OptionError: if `layout.split` is given for a file that is not text.
    """
    path = Path(path)
    notes: list[ReadingNote] = []
    rows = _source_rows(path, layout, notes) if is_source(path) else _content_rows(path, _bytes(path), layout, notes)
    if not rows:
        raise DataError("no_rows", path=path)
    return RowFile(path, rows, tuple(notes))


def _content_rows(path: Path, content: bytes, layout: Layout, notes: list[ReadingNote]) -> list[FileRow]:
    """Read every row of the content of a file or of standard input."""
    suffix = path.suffix.lower()
    if path not in STANDARD_INPUT and suffix not in KNOWN_SUFFIXES:
        raise DataError("unknown_file_type", path=path, suffix=suffix, known=KNOWN_SUFFIXES)
    if suffix == ".xlsx":
        return workbook_rows(path, content, notes, layout.text_column)
    if suffix == ".parquet":
        return _parquet_rows(path, content)
    if suffix in STORY_SUFFIXES:
        return _stories(path, content, layout, notes)
    return _text_rows(path, decoded(path, content, notes), content, layout, notes)


def _text_rows(path: Path, text: str, content: bytes, layout: Layout, notes: list[ReadingNote]) -> list[FileRow]:
    """Read the rows of a table, of JSON, or of standard input."""
    if not text.strip():
        raise DataError("empty_file", path=path)
    suffix = _suffix_of(text, layout) if path in STANDARD_INPUT else path.suffix.lower()
    if suffix == ".txt":
        return _stories(path, content, layout, notes)
    if layout.split != "none":
        raise OptionError("split_of_other_file", split=layout.split, path=path)
    if suffix in DELIMITERS:
        records = delimited_records(path, io.StringIO(text, newline=""), DELIMITERS[suffix])
        return list(table_rows(path, records, notes, layout.text_column))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _json_rows(path, suffix, text)


def _parquet_rows(path: Path, content: bytes) -> list[FileRow]:
    parquet = require("pyarrow.parquet", "parquet")
    with reading("broken_parquet", path):
        values = parquet.read_table(io.BytesIO(content)).to_pylist()
    return numbered_rows(values)


def _json_rows(path: Path, suffix: str, text: str) -> list[FileRow]:
    """Read a JSON array, or JSON values: one per line, or each over several lines."""
    if suffix == ".json" and text.lstrip().startswith("["):
        return numbered_rows(_json(path, _Line(1, text)))
    lines = list(_lines(text.split("\n")))
    rows = _indented_values(text) if lines and not _is_json(lines[0].text, (object,)) else None
    if rows is None:
        return [FileRow(line.number, _json(path, line)) for line in lines]
    if len(rows) == 1 and isinstance(rows[0].value, list):
        return numbered_rows(rows[0].value)
    return rows


def _indented_values(text: str) -> list[FileRow] | None:
    """Read JSON values that follow one another, each over several lines; None if the text is something else."""
    decoder = json.JSONDecoder()
    rows = []
    position = len(text) - len(text.lstrip())
    try:
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            rows.append(FileRow(text.count("\n", 0, position) + 1, value))
            position = end + len(text[end:]) - len(text[end:].lstrip())
    except (ValueError, RecursionError):
        return None
    return rows


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
            text = io.TextIOWrapper(file, encoding_of(file), newline="")
            rows = table_rows(path, delimited_records(path, text, DELIMITERS[suffix]), [])
            for number, row in enumerate(rows, start):
                yield FileRow(row.line, row.value, path) if wanted(number) else None
        else:
            lines = _lines(io.TextIOWrapper(file, encoding_of(file), newline=None))
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


def _source_rows(path: Path, layout: Layout, notes: list[ReadingNote]) -> list[FileRow]:
    """Read one story per file of a folder or archive, with the columns of tables that describe the files.

    Files that can't be read are left out and named, unless the layout is strict.
    """
    files = source_files(path)
    story_files = [file for file in files if file.suffix in STORY_SUFFIXES]
    if not story_files:
        names = ", ".join([file.name for file in files[:5]]) or "no file"
        raise DataError("no_stories_in_folder", path=path, found=names, known=STORY_SUFFIXES)
    stories, story_notes, problems = _read_stories(story_files, layout)
    cells, unread = _cells_beside(path, files, FileNames(stories), layout, notes)
    if problems and (layout.strict or not stories):
        raise problems[0]
    rows: list[FileRow] = []
    for name, parts in stories.items():
        for row in _described_stories(name, parts, cells.get(name, {})):
            rows.append(FileRow(len(rows) + 1, row, path / name))
    notes += story_notes
    undescribed = [name for name in stories if name not in cells]
    if cells and undescribed:
        notes.append(ReadingNote.of("files_undescribed", n=len(undescribed), first=undescribed[0]))
    if unread:
        notes.append(ReadingNote.of("unread_files", n=len(unread), first=unread[0]))
    if problems:
        shown = "; ".join(map(str, problems[:NAMED_PROBLEMS]))
        notes.append(ReadingNote.of("left_out_files", n=len(problems), problems=shown))
    return rows


def _read_stories(
    files: Sequence[SourceFile], layout: Layout
) -> tuple[dict[str, list[FileRow]], list[ReadingNote], list[DataError]]:
    """Read files of stories.

    Returns:
        The stories of each file by its name, notes with the number of files that each is on, and the errors of files
        that can't be read.
    """
    stories: dict[str, list[FileRow]] = {}
    notes: list[ReadingNote] = []
    problems: list[DataError] = []
    for file in files:
        try:
            stories[file.name] = _stories(file.path, file.read(), layout, notes)
        except DataError as error:
            problems.append(error)
    counts = Counter(str(note) for note in notes if note.code != "one_story")
    return stories, [ReadingNote.of("note_of_files", n=n, note=note) for note, n in counts.items()], problems


def _described_stories(name: str, parts: Sequence[FileRow], cells: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the cells of each story of a file, with those of a table that describes the file."""
    id = str(PurePosixPath(name).with_suffix(""))
    for number, part in enumerate(parts, start=1):
        story = part.cells or {"text": part.value}
        whole = {**story, "id": id, **cells}
        part_of_book = {**cells, **story, "id": f"{id}-{number}"}  # the table describes the book
        row = whole if len(parts) == 1 else part_of_book
        yield row | {"text": story["text"], "file_name": name}


def _cells_beside(
    folder: Path,
    files: Sequence[SourceFile],
    names: FileNames,
    layout: Layout,
    notes: list[ReadingNote],
) -> tuple[dict[str, dict[str, object]], list[str]]:
    """Read the tables among the files of a folder.

    Returns:
        The cells of each story by the name of its file, and the names of files that are neither stories nor read.

    Raises:
        DataError: if no table has a column of the layout.
    """
    cells: dict[str, dict[str, object]] = {}
    unread = []
    columns = {"file": layout.file_column, "title": layout.title_column, "id": layout.id_column}
    known: dict[str, None] = {}  # columns of all tables, in order
    for file in files:
        if file.suffix in STORY_SUFFIXES:
            continue
        described = Described()
        table_notes: list[ReadingNote] = []
        if file.suffix in (*TABLE_SUFFIXES, *JSON_SUFFIXES, ".parquet"):
            rows: list[FileRow] = []
            with suppress(DataError):  # a table that can't be read describes no file
                rows = _content_rows(file.path, file.read(), Layout(), table_notes)
            described = described_files(folder, file.name, rows, names, columns)
            known |= dict.fromkeys(normal_form(name) for name in column_names(row.cells for row in rows))
        if not described.is_table:
            unread.append(file.name)
            continue
        for name, values in described.cells.items():
            cells[name] = {**values, **cells.get(name, {})}
        for note in table_notes:
            notes.append(ReadingNote.of("note_of_table", table=file.name, note=str(note)))
        notes += described.notes
    for role, wanted in columns.items():
        if wanted is not None and normal_form(wanted) not in known:
            found = ", ".join(printable(name, 30) for name in known) or "no columns"
            raise DataError("missing_column", path=folder, column=wanted, found=found, option=f"{role}_column")
    return cells, unread


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


def _suffix_of(text: str, layout: Layout) -> str:
    """Return the suffix that a file with the text of standard input would have."""
    if layout.split != "none":
        return ".txt"
    first_line = text.lstrip().partition("\n")[0]
    if _is_json(first_line, (dict, str)):
        return ".jsonl"
    if _is_json(text, (list,)):
        return ".json"
    cells = first_line.split(Dialect.of(first_line).delimiter)
    names = {cell.strip(' "\r').casefold() for cell in cells}
    text_columns = {*STORY_COLUMNS, str(layout.text_column).casefold()}
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


def _stories(path: Path, content: bytes, layout: Layout, notes: list[ReadingNote]) -> list[FileRow]:
    """Read the stories of a text file or document: one, unless the layout divides it."""
    if layout.split in ("lines", "blank-lines"):
        return _divided_text(path, content, layout.split, notes)
    document = read_document(path, content, notes)
    if layout.split == "none":
        return [FileRow(1, _whole(path, document, notes))]
    division = divided(document, guess=layout.split == "auto")
    if not division.stories:
        return [FileRow(1, _whole(path, document, []))]
    if division.left_out:
        shown = ", ".join(printable(title, 40) for title in division.left_out[:NAMED_PROBLEMS])
        notes.append(ReadingNote.of("left_out_sections", n=len(division.left_out), titles=shown))
    if division.words_before:
        notes.append(ReadingNote.of("left_out_before", n=division.words_before))
    stories = []
    book = document.title or path.stem
    for number, section in enumerate(division.stories, start=1):
        cells = {"title": normal_form(section.title), "book": normal_form(book), "number": number, **document.columns}
        stories.append({"id": f"{path.stem}-{number}", **cells, "text": joined_blocks(section.blocks)})
    return numbered_rows(stories)


def _divided_text(path: Path, content: bytes, split: TextSplit, notes: list[ReadingNote]) -> list[FileRow]:
    """Divide a text file at its line breaks or at blank lines."""
    if path.suffix.lower() not in (*TEXT_SUFFIXES, "") and path not in STANDARD_INPUT:
        raise OptionError("split_of_other_file", split=split, path=path)
    text = decoded(path, content, notes).replace("\r\n", "\n").replace("\r", "\n")
    if split == "lines":
        return [FileRow(line.number, line.text) for line in _lines(text.split("\n"))]
    return numbered_rows(filter(None, map(str.strip, re.split(r"\n\s*\n", text))))


def _whole(path: Path, document: DocumentText, notes: list[ReadingNote]) -> dict[str, object]:
    """Make one story of a document; the heading at its beginning is its title, and is no part of it.

    What may be misunderstood is noted: that the lines are no stories, or that there are several.
    """
    blocks = document.blocks
    title = document.title
    if blocks[0].level and len(blocks) > 1 and title in (None, blocks[0].text):
        title = blocks[0].text
        blocks = blocks[1:]
    story: dict[str, object] = {}
    if path not in STANDARD_INPUT:
        story["id"] = path.stem
    if title:
        story["title"] = normal_form(title)
    lines = sum(block.text.count("\n") + 1 for block in blocks)
    is_wrapped = any(note.code == "joined_lines" for note in document.notes)
    if divided(document, guess=False).stories:
        notes.append(ReadingNote.of("several_stories_inside"))
    elif lines > 1 and not is_wrapped and (path.suffix.lower() == ".txt" or path in STANDARD_INPUT):
        notes.append(ReadingNote.of("one_story", lines=lines))
    return {**story, **document.columns, "text": joined_blocks(blocks)}
