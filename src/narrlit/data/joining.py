"""Tables that describe files: their rows are found by the names of the files in one of their columns."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from narrlit.data.row_file import FileRow, ReadingNote, column_names
from narrlit.data.schema import normal_form, normal_text
from narrlit.data.tables import STORY_COLUMNS, is_blank
from narrlit.errors import DataError, printable

FILE_COLUMNS = ("file_name", "filename", "file name", "file", "path", "file_path", "filepath", "datei", "dateiname")
"""Usual names of the column with the names of files."""
UNMISTAKABLE = FILE_COLUMNS[:3]
"""Those of them that mean nothing else, even if no file is found."""
ROLES = ("title", "id")
"""Columns that are known in any case."""
NAMED = 5
"""Number of names in a note."""
LEAST_SHARE = 0.5
"""Share of a column's values that are names of files, from which it is the column of file names."""
LEAST_FILES = 2
"""Number of files that such a column names at least, unless its name is usual: a word may be the name of a file."""


@dataclass(frozen=True)
class Described:
    """Cells of files, as tables give them.

    Attributes:
        cells: filled cells by column, by the name of the file, without the column of file names.
        notes: how many files were found, and which were not.
        is_table: a column has names of files, whether they were found or not.
    """

    cells: dict[str, dict[str, object]] = field(default_factory=dict)
    notes: list[ReadingNote] = field(default_factory=list)
    is_table: bool = False


class FileNames:
    r"""Names of files, found by their ends: with or without folders, suffix, zeros before a number and Unicode form.

    >>> names = FileNames(["grimm/fox.txt", "aesop/fox.txt", "aesop/crow.txt"])
    >>> names.find("crow"), names.find("tales\\\\grimm\\\\fox.txt"), names.find("fox.txt")
    (['aesop/crow.txt'], ['grimm/fox.txt'], ['grimm/fox.txt', 'aesop/fox.txt'])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in names:
            parts = _parts(name)
            stem = (*parts[:-1], _number(_stem(parts[-1])))
            for form in dict.fromkeys((parts, stem)):
                for start in range(len(form)):
                    self._names[form[start:]].append(name)

    def find(self, value: object, folder: str = ".") -> list[str]:
        """List the files that a value names.

        Args:
            value: cell of a table.
            folder: folder of the table, whose own files come first.
        """
        parts = _parts(str(value))
        if not parts:
            return []
        if not self._names.get(parts[-1:]):
            parts = (*parts[:-1], _number(_stem(parts[-1])))  # the file has another suffix, as after a conversion
        inside = _parts(folder) + parts
        for form in (inside, parts):
            exact = [name for name in self._names.get(form, []) if len(_parts(name)) == len(form)]
            if len(exact) == 1:
                return exact
        for start in range(len(parts)):  # the value may begin with folders of another machine
            names = self._names.get(parts[start:])
            if names:
                whole = [name for name in names if len(_parts(name)) <= len(parts) - start]
                return names if start == 0 else whole
        return []


def _parts(name: str) -> tuple[str, ...]:
    text = normal_form(name).strip().replace("\\", "/").casefold()
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return (*parts[:-1], _number(parts[-1])) if parts else ()


def _number(name: str) -> str:
    """Remove zeros before a number, as spreadsheet programs do."""
    return name.lstrip("0") or "0" if name.isdecimal() else name


def _stem(name: str) -> str:
    return PurePosixPath(name).stem


def described_files(
    source: Path,
    table: str,
    rows: Sequence[FileRow],
    names: FileNames,
    columns: Mapping[str, str | None] = MappingProxyType({}),
) -> Described:
    """Find the files that the rows of a table describe; the result is empty if no column names files.

    Args:
        source: folder of the files, for messages.
        table: name of the table in it.
        rows: its rows.
        names: names of the files.
        columns: chosen columns of `file`, `title` and `id`; by default the one whose values are names of files, and
            those with the names title and id.

    Raises:
        DataError: if two columns name different files, or hold the title or id.
    """
    path = source / table
    folder = str(PurePosixPath(table).parent)
    chosen = file_column(path, folder, rows, names, columns.get("file"))
    if chosen is None:
        return Described()
    roles = _role_columns(path, column_names(row.cells for row in rows), columns)
    result = Described(is_table=True)
    missing: list[str] = []
    ambiguous: list[str] = []
    twice: list[str] = []
    filled = [row for row in rows if not is_blank(row.cells.get(chosen))]
    for row in filled:
        value = str(row.cells[chosen])
        files = names.find(value, folder)
        if len(files) != 1:
            (ambiguous if files else missing).append(value)
            continue
        cells = {}
        for name, cell in row.cells.items():
            if (name != chosen or name in roles) and not is_blank(cell):
                cells[roles.get(name, name)] = cell
        if result.cells.setdefault(files[0], cells) != cells:
            twice.append(value)
    found = len(filled) - len(missing) - len(ambiguous)
    if missing:
        note = ReadingNote.of("files_found", table=table, found=found, n=len(filled), missing=_listed(missing))
        result.notes.append(note)
    if ambiguous:
        result.notes.append(ReadingNote.of("files_ambiguous", table=table, names=_listed(ambiguous)))
    if twice:
        result.notes.append(ReadingNote.of("files_twice", table=table, names=_listed(twice)))
    return result


def file_column(
    path: Path, folder: str, rows: Sequence[FileRow], names: FileNames, column: str | None = None
) -> str | None:
    """Find the column of a table whose values are names of files; None if there is none.

    In a table with texts of its own, only a column with a usual name counts.

    Raises:
        DataError: if two columns name different files equally well.
    """
    columns = column_names(row.cells for row in rows)
    if column is not None:
        return next((name for name in columns if normal_text(name) == normal_text(column)), None)
    has_texts = any(normal_text(name) in STORY_COLUMNS for name in columns)
    named: dict[str, _Files] = {}
    other: dict[str, _Files] = {}
    for name in columns:
        files, share = _files_of_column([row.cells.get(name) for row in rows], names, folder)
        if normal_text(name) in FILE_COLUMNS and share:
            named[name] = files
        elif not has_texts and share >= LEAST_SHARE and len({file for file in files if file}) >= LEAST_FILES:
            other[name] = files
    candidates = named or other
    if not candidates:
        return next((name for name in columns if normal_text(name) in UNMISTAKABLE), None)
    best = max(candidates, key=lambda name: sum(map(bool, candidates[name])))
    for name, files in candidates.items():
        pairs = zip(files, candidates[best], strict=True)
        if any(file and best_file and file != best_file for file, best_file in pairs):
            raise DataError("several_file_columns", path=path, columns=[best, name], column=best)
    return best


_Files = list[tuple[str, ...]]
"""Files that each cell of a column names."""


def _files_of_column(values: Sequence[object], names: FileNames, folder: str) -> tuple[_Files, float]:
    """Find the files that the cells of a column name, and the share of filled cells that name one."""
    files: _Files = []
    filled = 0
    for value in values:
        filled += not is_blank(value)
        is_name = isinstance(value, str | int) and not is_blank(value)
        files.append(tuple(names.find(value, folder)) if is_name else ())
    return files, sum(map(bool, files)) / max(filled, 1)


def _role_columns(path: Path, columns: Sequence[str], chosen: Mapping[str, str | None]) -> dict[str, str]:
    """Return the columns of title and id, which were chosen or have these names.

    Raises:
        DataError: if two columns have the name of one.
    """
    roles = {}
    for role in ROLES:
        wanted = chosen.get(role)
        matches = [name for name in columns if wanted is not None and normal_form(name) == normal_form(wanted)]
        matches = matches or [name for name in columns if normal_text(name) == role]
        if len(matches) > 1:
            raise DataError("several_columns", path=path, columns=matches, option=f"{role}_column", column=matches[0])
        roles.update(dict.fromkeys(matches, role))
    return roles


def _listed(names: Sequence[str]) -> str:
    """List the first names for a note."""
    different = list(Counter(names))
    shown = ", ".join(printable(name, 60) for name in different[:NAMED])
    return f"{shown} and {len(different) - NAMED} more" if len(different) > NAMED else shown
