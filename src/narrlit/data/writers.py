"""Records written so that the readers give them back equal; a file appears whole or not at all."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from narrlit.data.fields import text_fault
from narrlit.data.layouts import LABEL, example_fault
from narrlit.data.records import KINDS, Example, Story, Triple
from narrlit.data.rows import DELIMITERS, JSON_SUFFIXES
from narrlit.errors import DataError, OptionError
from narrlit.files import atomic_path

Row = dict[str, object]


def write_stories(path: str | Path, stories: Iterable[Story]) -> None:
    """Write stories to JSON Lines, CSV or TSV, by the path's suffix; `id` is left out where no story has one.

    Raises:
        OptionError: if the suffix is another, or the file can't be written.
        DataError: if there is no story, or one that the reader would not give back.
    """

    def row(story: Story) -> Row:
        _check("text", story.text)
        if story.id is not None:
            _check("id", story.id)
        return {"text": story.text, "id": story.id}

    _write(Path(path), _rows("story", stories, row), optional=("id",))


def write_triples(path: str | Path, triples: Iterable[Triple]) -> None:
    """Write triples to JSON Lines, CSV or TSV, by the path's suffix; a label held back is left out.

    Raises:
        OptionError: if the suffix is another, or the file can't be written.
        DataError: if there is no triple, or one that the reader would not give back.
    """

    def row(triple: Triple) -> Row:
        texts = dict(zip(("anchor_text", "text_a", "text_b"), triple.texts, strict=True))
        for name, text in texts.items():
            _check(name, text)
        return {**texts, LABEL: triple.a_is_closer}

    _write(Path(path), _rows("triple", triples, row), optional=(LABEL,))


def write_examples(path: str | Path, examples: Iterable[Example]) -> None:
    """Write training examples to JSON Lines.

    Raises:
        OptionError: if the suffix is another (a table has no place for the negatives), or the file can't be written.
        DataError: if there is no example, or one that the reader would not give back.
    """
    path = Path(path)
    if path.suffix.lower() not in JSON_SUFFIXES:
        raise OptionError(f"{path}: examples have any number of negatives; name a .jsonl file")
    _write(path, _rows("example", examples, _example_row), optional=())


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """Write any rows as JSON Lines, unchecked; for what is no record of its own."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_raw(path: str | Path, rows: Sequence[object]) -> None:
    """Write the values of raw rows as their file had them: JSON Lines, CSV, TSV or text, by the path's suffix.

    Raises:
        OptionError: if the suffix is another, the rows don't fit it, or the file can't be written.
        DataError: if a text holds what CSV can't keep.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in JSON_SUFFIXES:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    elif suffix in DELIMITERS and all(isinstance(row, Mapping) for row in rows):
        cells = [row for row in rows if isinstance(row, Mapping)]
        # A row may have fewer cells than the header; taken together they have all that are of use.
        header = list(dict.fromkeys(name for row in cells for name in row))
        _write_table(path, header, [[row.get(name) for name in header] for row in cells])
        return
    elif suffix == ".txt" and all(isinstance(row, str) for row in rows):
        lines = [str(row) for row in rows]
    else:
        raise OptionError(f"{path}: these rows can't go to a '{suffix}' file; name one of the kind they came from")
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


class _RefusedError(Exception):
    """Why a record can't be written."""


def _check(name: str, text: str) -> None:
    reason = text_fault(text, name)
    if reason is not None:
        raise _RefusedError(reason)


def _example_row(example: Example) -> Row:
    _check("anchor", example.anchor)
    _check("positive", example.positive)
    for negative in example.negatives:
        _check("negative", negative.text)
        if negative.kind is not None and negative.kind not in KINDS:
            raise _RefusedError("unknown kind")
    reason = example_fault(example)
    if reason is not None:
        raise _RefusedError(reason)
    negatives = [
        {"text": negative.text} | ({"kind": negative.kind} if negative.kind else {}) for negative in example.negatives
    ]
    row: Row = {"anchor": example.anchor, "positive": example.positive, "negatives": negatives}
    if example.group is not None:
        _check("group", example.group)
        row["group"] = example.group
    return row


def _rows(kind: str, records: Iterable[Story | Triple | Example], row: Callable[..., Row]) -> list[Row]:
    """The rows of all records, checked before a file is begun."""
    rows = []
    for number, record in enumerate(records, start=1):
        try:
            rows.append(row(record))
        except _RefusedError as refused:
            raise DataError(f"cannot write {kind} {number}: {refused}; mend it or leave it out") from refused
    if not rows:
        raise DataError(f"no {kind} to write; give at least one")
    return rows


def _write(path: Path, rows: Sequence[Row], optional: tuple[str, ...]) -> None:
    suffix = path.suffix.lower()
    if suffix in JSON_SUFFIXES:
        content = [{k: v for k, v in row.items() if v is not None or k not in optional} for row in rows]
        write_rows(path, content)
    elif suffix in DELIMITERS:
        header = [name for name in rows[0] if name not in optional or any(row[name] is not None for row in rows)]
        _write_table(path, header, [[row[name] for name in header] for row in rows])
    else:
        raise OptionError(f"{path}: unknown kind of file '{suffix}'; name a .jsonl, .csv or .tsv file")


def _write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[_cell(path, value) for value in row] for row in rows]
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        # Everything in quotes: which line breaks make csv quote a field differs between Python versions.
        delimiter = DELIMITERS[path.suffix.lower()]
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(cells)


def _cell(path: Path, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    if "\0" in text:  # not every csv module reads it back
        raise DataError(f"{path}: a text holds a NUL character, which CSV can't keep; name a .jsonl file")
    return text
