"""narrlit embed: embeddings of stories, in a file."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import read_stories
from narrlit.data.reading import Reading
from narrlit.data.records import Story
from narrlit.data.rows import DELIMITERS, read_raw
from narrlit.errors import DataError, ModelError, OptionError, on_interrupt
from narrlit.files import atomic_path, check_writable
from narrlit.models.config import Role
from narrlit.optional import require
from narrlit.options import ModelOptions, StoryOptions

if TYPE_CHECKING:
    from narrlit.models.view_encoder import AnyEncoder

SUFFIXES = (".npy", ".jsonl", ".csv", ".tsv", ".parquet")
Row = dict[str, Any]
Embeddings = NDArray[np.float32]


def embed(
    stories: str,
    *,
    out: str,
    use: ModelOptions,
    read: StoryOptions,
    role: Role | None = None,
    drop_invalid: bool = False,
) -> None:
    """Write one embedding a story, in the stories' order.

    Args:
        stories: JSON Lines, CSV or TSV with a column text, or a text file with a story a line.
        out: file to write; .npy holds the embeddings alone; .jsonl, .csv, .tsv and .parquet also all columns of the
            input and the number of the row.
        use: the model.
        read: what it reads of a story.
        role: prompt to put before the stories, for models with one for anchors and another for candidates; embeddings
            of one role are compared with those of the other.
        drop_invalid: leave out and count rows without a text, instead of stopping at the first.
    """
    if use.model is None:
        raise OptionError("--model M is missing: a folder, a run, a checkpoint, a hub id or minilm")
    target = Path(out)
    if target.suffix not in SUFFIXES:
        raise OptionError(f"--out {out}: name a file that ends in {', '.join(SUFFIXES)}")
    check_writable(target)
    if target.suffix == ".parquet":
        require("pyarrow", "parquet")
    reading = read_stories(stories, strict=not drop_invalid)
    say(reading.summary())
    rows = _rows(stories, reading) if target.suffix != ".npy" else []
    with on_interrupt(f"nothing is kept; {out} is as it was"):
        from narrlit.models import embedding

        texts = read.stories(reading.records)
        encoder = read.encoder(use)
        if role is None:
            refuse_role_prompts(encoder, str(use.model))
        embeddings, truncated = embedding.embed(encoder, texts, role or "story")
        say_truncated(truncated, encoder.max_length, *encoder.pieces)
        check_embeddings(embeddings, str(use.model))
        write_embeddings(target, rows, embeddings)
    say(f"{target}: {counted(len(embeddings), 'embedding')} of {embeddings.shape[1]} dimensions")


def refuse_role_prompts(
    encoder: "AnyEncoder", model: str, remedy: str = "give --role anchor or --role candidate"
) -> None:
    """Refuse to embed by a model whose prompts of anchors and candidates differ.

    Raises:
        OptionError: with the prompts.
    """
    anchor, candidate = encoder.prompt("anchor"), encoder.prompt("candidate")
    if anchor != candidate:
        raise OptionError(f"{model} reads anchors after {anchor!r} and candidates after {candidate!r}: {remedy}")


def check_embeddings(embeddings: Embeddings, model: str) -> None:
    """Refuse embeddings that have no cosine.

    Raises:
        ModelError: naming the first story whose embedding is not finite or zero.
    """
    bad = np.flatnonzero(~np.isfinite(embeddings).all(axis=1) | (embeddings == 0).all(axis=1))
    if bad.size:
        what = "all zeros" if np.isfinite(embeddings[bad[0]]).all() else "NaN or infinite"
        number = f"story {bad[0] + 1} ({bad.size} of {len(embeddings)})"
        raise ModelError(
            f"model {model}: the embedding of {number} is {what}; its weights are broken, nothing is written"
        )


def _rows(path: str, reading: Reading[Story]) -> list[Row]:
    """The input's columns of each story that was read."""
    values = [row.value for row in read_raw(path).rows]
    if len(values) != len(reading.records):  # some are dropped
        texts = iter([story.text for story in reading.records] + [None])
        wanted, every, values = next(texts), values, []
        for value in every:
            if wanted is not None and wanted in (value.values() if isinstance(value, Mapping) else [value]):
                values.append(value)
                wanted = next(texts)
    rows: list[Row] = [dict(value) if isinstance(value, Mapping) else {"text": value} for value in values]
    taken = {"row", "embedding"}.intersection(*[rows[0]] if rows else [])
    if taken:
        raise DataError(f"{path}: rename its column {min(taken)}, which is a column of the output")
    return [{"row": number, **row} for number, row in enumerate(rows)]


def write_embeddings(path: Path, rows: Sequence[Row], embeddings: Embeddings) -> None:
    """Write embeddings (N, D) with their rows, in the format of the path's suffix, atomically."""
    with atomic_path(path) as temporary:
        if path.suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, embeddings, allow_pickle=False)
        elif path.suffix == ".parquet":
            _write_parquet(temporary, rows, embeddings)
        elif path.suffix == ".jsonl":
            with temporary.open("w", encoding="utf-8") as lines:
                for row, vector in zip(rows, embeddings, strict=True):
                    lines.write(json.dumps({**row, "embedding": vector.tolist()}, ensure_ascii=False) + "\n")
        else:
            with temporary.open("w", encoding="utf-8", newline="") as table:
                writer = csv.writer(
                    table, delimiter=DELIMITERS[path.suffix], quoting=csv.QUOTE_ALL, lineterminator="\n"
                )
                columns = list(dict.fromkeys(name for row in rows for name in row))
                writer.writerow([*columns, "embedding"])
                for row, vector in zip(rows, embeddings, strict=True):
                    writer.writerow([*(_cell(row.get(name)) for name in columns), json.dumps(vector.tolist())])


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | list | dict) else value


def _write_parquet(path: Path, rows: Sequence[Row], embeddings: Embeddings) -> None:
    arrow = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            columns[name] = arrow.array(values)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError):  # of different types
            columns[name] = arrow.array([None if value is None else str(_cell(value)) for value in values])
    columns["embedding"] = arrow.FixedSizeListArray.from_arrays(arrow.array(embeddings.ravel()), embeddings.shape[1])
    parquet.write_table(arrow.table(columns), path)
