"""Stories, triples, examples and tables written so that the readers return them; a file appears whole or not at all."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from narrlit.data.readers import DELIMITERS, JSON_SUFFIXES, LABEL, not_empty
from narrlit.data.schema import FloatArray, Story, TrainingExamples, Triples
from narrlit.errors import DataError, OptionError
from narrlit.files import atomic_path
from narrlit.optional import require

Record = Mapping[str, Any]
TABLE_SUFFIXES = (*JSON_SUFFIXES, *DELIMITERS, ".parquet")


def write_stories(path: str | Path, stories: Iterable[Story]) -> None:
    """Write stories to a table, by the path's suffix.

    Raises:
        OptionError: if the suffix is unknown, or the file can't be written.
        DataError: if there is no story, or an empty one.
    """
    write_table(path, [{"id": story.id, "text": _checked(story.text)} for story in stories])


def write_triples(path: str | Path, triples: Triples) -> None:
    """Write triples to a table, by the path's suffix; the column of labels is left out where there are none.

    Raises:
        OptionError: if the suffix is unknown, or the file can't be written.
        DataError: if there is no triple, or an empty text.
    """
    labels = any(triple.a_is_closer is not None for triple in triples)
    rows = []
    for triple, texts in zip(triples, triples.texts(), strict=True):
        row: dict[str, Any] = dict(zip(("anchor_text", "text_a", "text_b"), map(_checked, texts), strict=True))
        rows.append({**row, LABEL: triple.a_is_closer} if labels else row)
    write_table(path, rows)


def write_examples(path: str | Path, examples: TrainingExamples) -> None:
    """Write training examples to JSON Lines.

    Raises:
        OptionError: if the suffix is another (a table has no column for negatives), or the file can't be written.
        DataError: if there is no example, or an empty text.
    """
    if Path(path).suffix.lower() not in JSON_SUFFIXES:
        raise OptionError(f"{path}: examples have any number of negatives; name a .jsonl file")
    rows = []
    for example, (anchor, positive, *others) in zip(examples, examples.texts(), strict=True):
        negatives = [
            {"text": _checked(text)} | ({"kind": kind} if kind else {})
            for text, kind in zip(others, example.kinds, strict=True)
        ]
        row = {"anchor": _checked(anchor), "positive": _checked(positive), "negatives": negatives}
        rows.append(row | ({"group": example.group} if example.group else {}))
    write_table(path, rows)


def write_rows(path: str | Path, rows: Iterable[Any]) -> None:
    """Write any values as JSON Lines."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_table(path: str | Path, rows: Sequence[Any], embeddings: FloatArray | None = None) -> None:
    """Write rows to JSON Lines, CSV, TSV, Parquet or text, by the path's suffix.

    Args:
        path: the file.
        rows: N mappings; bare values for JSON Lines and .txt. Columns are those of all rows, in order of appearance.
        embeddings: (N, D), written as the column `embedding` (in CSV and TSV: as a JSON list).

    Raises:
        OptionError: if the suffix is unknown or does not fit the rows, or the file can't be written.
        DataError: if there is no row, or a text that CSV can't hold.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not rows:
        raise DataError(f"{path}: nothing to write; give at least one row")
    plain = not all(isinstance(row, Mapping) for row in rows)
    if embeddings is not None and suffix != ".parquet":
        vectors = (vector.tolist() if suffix in JSON_SUFFIXES else json.dumps(vector.tolist()) for vector in embeddings)
        rows = [{**row, "embedding": vector} for row, vector in zip(rows, vectors, strict=True)]
    if suffix in JSON_SUFFIXES:
        write_rows(path, rows)
    elif suffix == ".txt" and all(isinstance(row, str) for row in rows):
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{row}\n" for row in rows)
    elif suffix in DELIMITERS and not plain:
        _write_csv(path, rows)
    elif suffix == ".parquet" and not plain:
        _write_parquet(path, rows, embeddings)
    else:
        kinds = ".jsonl file" if plain else ".jsonl, .csv, .tsv or .parquet file"
        raise OptionError(f"{path}: file type '{suffix}' is unknown, or does not fit these rows; name a {kinds}")


def _columns(rows: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_csv(path: Path, rows: Sequence[Record]) -> None:
    columns = _columns(rows)
    cells = [[_cell(path, row.get(name)) for name in columns] for row in rows]
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        # Everything in quotes: which line breaks make csv quote a field differs between Python versions.
        delimiter = DELIMITERS[path.suffix.lower()]
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerows([columns, *cells])


def _cell(path: Path, value: object) -> str:
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    text = "" if value is None else str(value)
    if "\0" in text:
        raise DataError(f"{path}: a text holds a NUL character, which CSV can't hold; name a .jsonl file")
    return text


def _write_parquet(path: Path, rows: Sequence[Record], embeddings: FloatArray | None) -> None:
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    columns = _columns(rows)
    table = arrow.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows])
    if embeddings is not None:
        vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(embeddings.ravel()), embeddings.shape[1])
        table = table.append_column("embedding", vectors)
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary)


def _checked(text: str) -> str:
    try:
        return not_empty(text)
    except ValueError as error:
        raise DataError(f"a text that can't be written: {error}; correct it or leave the row out") from error
