"""Writers of stories, triples, training examples and tables.

Files are written atomically, and the readers read back what was written.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from narrlit.data.readers import LABEL_COLUMN
from narrlit.data.row_file import DELIMITERS, JSON_SUFFIXES, TABLE_SUFFIXES, TEXT_SUFFIXES, column_names
from narrlit.data.schema import FloatArray, Story, TrainingExample, TrainingExamples, Triples
from narrlit.data.tables import FORMULA
from narrlit.errors import DataError, OptionError
from narrlit.files import atomic_path, encodable
from narrlit.optional import require

OUTPUT_SUFFIXES = (*JSON_SUFFIXES, *TABLE_SUFFIXES, ".parquet")
LONGEST_CELL = 32_767
"""Largest number of characters in a cell of Excel."""
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f]")


def write_stories(path: str | Path, stories: Iterable[Story]) -> None:
    """Write the ids and texts of stories in the format of the path's suffix."""
    write_table(path, [{"id": story.id, "text": story.text} for story in stories])


def write_triples(path: str | Path, triples: Triples) -> None:
    """Write triples in the format of the path's suffix; the column of labels is left out if no triple has one."""
    has_labels = any(triple.a_is_closer is not None for triple in triples)
    rows: list[dict[str, object]] = []
    for triple, (anchor, text_a, text_b) in zip(triples, triples.texts(), strict=True):
        labels = {LABEL_COLUMN: triple.a_is_closer} if has_labels else {}
        rows.append({"anchor_text": anchor, "text_a": text_a, "text_b": text_b, **labels})
    write_table(path, rows)


def write_examples(path: str | Path, examples: TrainingExamples) -> None:
    """Write training examples to JSON Lines, since a table can't hold any number of negatives.

    Raises:
        OptionError: if the path has a suffix other than .jsonl, .ndjson or .json.
    """
    if Path(path).suffix.lower() not in JSON_SUFFIXES:
        raise OptionError("lists_of_negatives", path=path)
    rows = [_example_row(example, texts) for example, texts in zip(examples, examples.texts(), strict=True)]
    write_table(path, rows)


def _example_row(example: TrainingExample, texts: Sequence[str]) -> dict[str, object]:
    """Make the row of an example, given its texts: anchor, positive and negatives."""
    anchor, positive, *negative_texts = texts
    negatives = []
    for text, kind in zip(negative_texts, example.kinds, strict=True):
        negatives.append({"text": text, "kind": kind} if kind else {"text": text})
    row: dict[str, object] = {"anchor": anchor, "positive": positive, "negatives": negatives}
    if example.group:
        row["group"] = example.group
    return row


def write_rows(path: str | Path, rows: Iterable[object]) -> None:
    """Write any values as JSON Lines; values without a JSON type are converted to text."""
    _write_lines(path, map(_as_json, rows))


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def write_table(path: str | Path, rows: Sequence[object], embeddings: FloatArray | None = None) -> None:
    """Write N rows in the format of the path's suffix.

    The columns are those of all rows, in order of appearance. A text file has only the texts.

    Args:
        path: file that ends in one of OUTPUT_SUFFIXES or .txt.
        rows: mappings of columns to values, or texts; in JSON Lines, any values.
        embeddings: (N, D) embeddings, written to the column `embedding` (in CSV and TSV as a JSON list); in Excel, each
            dimension has a column.

    Raises:
        DataError: if there are no rows.
        OptionError: if the suffix is unknown, or a text is too long for Excel.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_rows(path, rows)
    if suffix in JSON_SUFFIXES:
        write_rows(path, rows if embeddings is None else _with_embeddings(_records(rows), embeddings))
        return
    records = _records(rows)
    if suffix == ".xlsx":
        _write_excel(path, records, embeddings)
    elif suffix == ".parquet":
        write_parquet(path, records, embeddings)
    elif suffix in TEXT_SUFFIXES:
        _write_texts(path, [record["text"] for record in records])
    elif suffix in DELIMITERS:
        _write_csv(path, records, embeddings, DELIMITERS[suffix])
    else:
        raise OptionError("output_suffix", path=path, suffix=suffix, known=OUTPUT_SUFFIXES)


def _record(row: object) -> Mapping[str, Any]:
    """Take a row as a mapping; a text has the column `text` alone."""
    return row if isinstance(row, Mapping) else {"text": row}


def _records(rows: Sequence[object]) -> list[Mapping[str, Any]]:
    """Take rows as mappings."""
    return [_record(row) for row in rows]


def _with_embeddings(rows: Sequence[Mapping[str, object]], embeddings: FloatArray) -> list[dict[str, object]]:
    """Copy N rows with their embeddings (N, D) as lists."""
    return [{**row, "embedding": vector.tolist()} for row, vector in zip(rows, embeddings, strict=True)]


def check_rows(path: Path, rows: Sequence[object]) -> None:
    """Check that `write_table` can write the rows, before anything is computed for them.

    Raises:
        DataError: if there are no rows.
        MissingExtraError: if the package that writes the format is missing.
        OptionError: if a text is too long for Excel.
    """
    if not rows:
        raise DataError("nothing_to_write", path=path)
    if path.suffix.lower() == ".parquet":
        require("pyarrow", "parquet")
    elif path.suffix.lower() == ".xlsx":
        require("openpyxl", "documents")
        for number, row in enumerate(rows, start=1):
            _check_excel_row(path, number, row)


def _check_excel_row(path: Path, number: int, row: object) -> None:
    """Raise OptionError for a row with a text that is too long for a cell."""
    texts = [value for value in _record(row).values() if isinstance(value, str)]
    longest = max(map(len, texts), default=0)
    if longest > LONGEST_CELL:
        raise OptionError("long_for_excel", path=path, row=number, characters=longest, limit=LONGEST_CELL)


def _opened(path: Path, newline: str = "\n") -> IO[str]:
    """Open a text file for writing; lone surrogates are escaped, in JSON without loss."""
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline=newline)


def _write_lines(path: str | Path, lines: Iterable[str]) -> None:
    with atomic_path(path) as temporary, _opened(temporary) as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_texts(path: Path, texts: Sequence[str]) -> None:
    """Write one text per line, or blank lines between the texts if one of them has several lines."""
    has_line_breaks = any("\n" in text for text in texts)
    _write_lines(path, ["\n\n".join(texts)] if has_line_breaks else texts)


def _write_csv(path: Path, rows: Sequence[Mapping[str, object]], embeddings: FloatArray | None, delimiter: str) -> None:
    columns = column_names(rows)
    if embeddings is not None:
        columns = list(dict.fromkeys([*columns, "embedding"]))
        rows = _with_embeddings(rows, embeddings)
    with atomic_path(path) as temporary, _opened(temporary, newline="") as file:
        # Quote everything, since Python versions differ in which line breaks make them quote a field.
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(map(_csv_cell, columns))
        for row in rows:
            writer.writerow([_csv_cell(row.get(name)) for name in columns])


def _write_excel(path: Path, rows: Sequence[Mapping[str, object]], embeddings: FloatArray | None) -> None:
    openpyxl = require("openpyxl", "documents")
    cells = require("openpyxl.cell", "documents")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("stories")

    def cell(value: object) -> Any:
        """Make a cell of a value; a text is never a formula, and loses the characters that Excel does not accept."""
        value = _plain_value(value)
        if value is None or isinstance(value, float) or (isinstance(value, int) and is_exact(value)):
            return value
        text = _CONTROL.sub(" ", encodable(str(value)))
        result = cells.WriteOnlyCell(sheet, text)
        result.data_type = "s"
        result.quotePrefix = FORMULA.match(text) is not None  # so that it is still a text after it is edited in Excel
        return result

    columns = column_names(rows)
    num_dimensions = 0 if embeddings is None else embeddings.shape[1]
    dimensions = [f"embedding_{number}" for number in range(1, num_dimensions + 1)]
    sheet.append([cell(name) for name in [*columns, *dimensions]])
    for number, row in enumerate(rows):
        values = [cell(row.get(name)) for name in columns]
        vector = [] if embeddings is None else embeddings[number].tolist()
        sheet.append([*values, *vector])
    content = BytesIO()  # not to disk: an archive that is cut off by a full disk raises again on garbage collection
    book.save(content)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.getvalue())


def is_exact(value: int) -> bool:
    """Return True if an integer is exact as a number of Excel and JavaScript; others are written as text."""
    return abs(value) <= 2**53


def _csv_cell(value: object) -> object:
    """Put ' before a text that would run as a formula, even after leading quotes; readers remove it."""
    value = _plain_value(value)
    if isinstance(value, str) and FORMULA.match(value):
        return f"'{value}"
    return value


def _plain_value(value: object) -> object:
    """Convert a value for which tables have no type to JSON."""
    return _as_json(value) if isinstance(value, bool | list | dict) else value


def write_parquet(path: Path, rows: Sequence[Mapping[str, object]], embeddings: FloatArray | None = None) -> None:
    """Write N rows and their embeddings (N, D) to Parquet.

    A column with values of several types, or with integers beyond 64 bits, becomes text.
    """
    arrow = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    columns: dict[str, Any] = {}
    for name in column_names(rows):
        columns[encodable(name)] = _parquet_column(arrow, [row.get(name) for row in rows])
    if embeddings is not None:
        flat = arrow.array(embeddings.ravel())
        columns["embedding"] = arrow.FixedSizeListArray.from_arrays(flat, embeddings.shape[1])
    with atomic_path(path) as temporary, temporary.open("wb") as file:  # pyarrow can't open file names in Latin-1
        parquet.write_table(arrow.table(columns), file)


def _parquet_column(arrow: Any, values: Sequence[object]) -> Any:
    """Make an Arrow array of a column's values."""
    try:
        column = arrow.array(values)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError, UnicodeEncodeError):
        column = arrow.array([_parquet_text(value) for value in values])
    # A column without values is text, so that it can be read together with later files of the table.
    return column.cast(arrow.string()) if arrow.types.is_null(column.type) else column


def _parquet_text(value: object) -> str | None:
    """Convert a value of a column with several types to text."""
    if value is None:
        return None
    return encodable(value) if isinstance(value, str) else json.dumps(value, default=str)
