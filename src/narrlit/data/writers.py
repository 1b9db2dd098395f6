"""Stories, triples, examples and tables written so that the readers return them; a file appears whole or not at all."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from narrlit.data.readers import LABEL
from narrlit.data.rows import DELIMITERS, JSON_SUFFIXES
from narrlit.data.schema import FloatArray, Story, TrainingExamples, Triples
from narrlit.errors import DataError, OptionError
from narrlit.files import atomic_path
from narrlit.optional import require


def write_stories(path: str | Path, stories: Iterable[Story]) -> None:
    """Write stories to a table, by the path's suffix."""
    write_table(path, [{"id": story.id, "text": story.text} for story in stories])


def write_triples(path: str | Path, triples: Triples) -> None:
    """Write triples to a table, by the path's suffix; the column of labels is left out where there are none."""
    rows: list[dict[str, Any]] = [
        dict(zip(("anchor_text", "text_a", "text_b"), texts, strict=True)) for texts in triples.texts()
    ]
    if any(triple.a_is_closer is not None for triple in triples):
        rows = [{**row, LABEL: triple.a_is_closer} for row, triple in zip(rows, triples, strict=True)]
    write_table(path, rows)


def write_examples(path: str | Path, examples: TrainingExamples) -> None:
    """Write training examples to JSON Lines; a table has no column for negatives."""
    if Path(path).suffix.lower() not in JSON_SUFFIXES:
        raise OptionError(f"{path}: examples have any number of negatives; name a .jsonl file")
    rows = []
    for example, (anchor, positive, *others) in zip(examples, examples.texts(), strict=True):
        pairs = zip(others, example.kinds, strict=True)
        negatives = [{"text": text} | ({"kind": kind} if kind else {}) for text, kind in pairs]
        row = {"anchor": anchor, "positive": positive, "negatives": negatives}
        rows.append(row | ({"group": example.group} if example.group else {}))
    write_table(path, rows)


def write_rows(path: str | Path, rows: Iterable[Any]) -> None:
    """Write any values as JSON Lines."""
    _write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def write_table(path: str | Path, rows: Sequence[Any], embeddings: FloatArray | None = None) -> None:
    """Write N rows (mappings; bare values for JSON Lines and .txt) to JSON Lines, CSV, TSV, Parquet or text, by suffix.

    Columns are those of all rows, in order of appearance; embeddings (N, D) become the column `embedding` (in CSV and
    TSV a JSON list).
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not rows:
        raise DataError(f"{path}: nothing to write; give at least one row")
    columns = list(dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row))
    plain = not all(isinstance(row, Mapping) for row in rows)
    if embeddings is not None and suffix != ".parquet":
        columns = list(dict.fromkeys([*columns, "embedding"]))
        rows = [{**row, "embedding": vector.tolist()} for row, vector in zip(rows, embeddings, strict=True)]
    if suffix in JSON_SUFFIXES:
        write_rows(path, rows)
    elif suffix == ".txt" and all(isinstance(row, str) for row in rows):
        _write_lines(path, rows)
    elif suffix in DELIMITERS and not plain:
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            # Everything in quotes: which line breaks make csv quote a field differs between Python versions.
            writer = csv.writer(file, delimiter=DELIMITERS[suffix], quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    elif suffix == ".parquet" and not plain:
        _write_parquet(path, [{name: row.get(name) for name in columns} for row in rows], embeddings)
    else:
        kinds = ".jsonl file" if plain else ".jsonl, .csv, .tsv or .parquet file"
        raise OptionError(f"{path}: file type '{suffix}' is unknown, or does not fit these rows; name a {kinds}")


def _write_lines(path: str | Path, lines: Iterable[str]) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | list | dict) else value


def _write_parquet(path: Path, rows: Sequence[Any], embeddings: FloatArray | None) -> None:
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    table = arrow.Table.from_pylist(rows)
    if embeddings is not None:
        vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(embeddings.ravel()), embeddings.shape[1])
        table = table.append_column("embedding", vectors)
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary)
