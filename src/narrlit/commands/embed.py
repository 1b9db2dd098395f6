"""narrlit embed: embeddings of stories, in a file, or of any number of them in the parts of a folder."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from narrlit.console import counted, say, say_truncated
from narrlit.data.writers import check_rows, write_table
from narrlit.errors import DataError, OptionError, on_interrupt
from narrlit.explore.parts import EmbeddingRun, PartOptions
from narrlit.files import Output, atomic_path, check_writable
from narrlit.models.config import Role
from narrlit.options import CACHE, InputOptions, ModelOptions, StoryOptions

SUFFIXES = (".npy", ".jsonl", ".csv", ".tsv", ".xlsx", ".parquet")


def _files(arguments: Mapping[str, Any]) -> Iterable[Path]:
    """List the files that are written; a folder's parts are continued, or refused, by EmbeddingRun."""
    target = Path(arguments["out"])
    if not target.suffix or target.is_dir():
        return []
    return [target, target.with_suffix(".columns.csv")] if target.suffix == ".npy" else [target]


def embed(
    stories: str,
    *,
    out: Annotated[str, Output(written=_files)],
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
    parts: PartOptions,
    role: Role | None = None,
    drop_invalid: bool = False,
) -> None:
    """Write one embedding a story, in the stories' order.

    Args:
        stories: a folder with a story a file, a table (CSV, TSV, Excel, Parquet, JSON Lines), a text file or document,
            or - for standard input; where --out is a folder, JSON Lines, CSV or Parquet: a file, a folder or glob of
            them, or its address in an object store (s3://, gs://).
        out: folder, where millions of stories are embedded in parts, of which an interruption loses one at most; or
            file; .jsonl, .csv, .tsv, .xlsx and .parquet hold the embeddings, all columns of the input and the
            number of the row; .npy the embeddings alone, with the other columns than the text in NAME.columns.csv.
        use: the model.
        read: what it reads of a story.
        inputs: how their file is read.
        parts: of the folder.
        role: prompt to put before the stories, for models with one for anchors and another for candidates; embeddings
            of one role are compared with those of the other.
        drop_invalid: leave out and count rows without a text, instead of stopping at the first.
    """
    if use.model is None:
        raise OptionError("--model M is missing: a folder, a run, a checkpoint, a hub id or minilm")
    target = Path(out)
    if not target.suffix or target.is_dir():
        EmbeddingRun(target, stories, use, read, inputs, role, drop_invalid, parts).run()
        return
    if parts != PartOptions():
        raise OptionError(f"--out {out}: --part-rows, --format, --engine and --workers need a folder")
    check_writable(target, *SUFFIXES)
    source = inputs.read(stories, strict=not drop_invalid)
    rows = [{"row": n, **(v if isinstance(v, Mapping) else {"text": v})} for n, v in enumerate(source.values)]
    if target.suffix != ".npy":
        for name in ("row", "embedding"):
            if any(isinstance(value, Mapping) and name in value for value in source.values):
                raise DataError(f"{stories}: rename its column {name}, which is a column of the output")
        check_rows(target, rows)
    text, table = source.columns.get("text", "text"), target.with_suffix(".columns.csv")
    others = [{name: value for name, value in row.items() if name != text} for row in rows]
    with_table = target.suffix == ".npy" and any(len(row) > 1 for row in others)
    with on_interrupt(f"finished embeddings are kept in {CACHE}: the same command goes on; {out} is as it was"):
        from narrlit.explore.collection import languages

        encoder = read.load(use.model, use).fitted_for(list(source))
        texts = encoder.prepare(list(source))  # before the model is loaded: a mistake costs no waiting
        languages(encoder, [story.text for story in texts])
        if role is None:
            encoder.require_one_prompt("narrlit embed")
        embeddings = encoder.embed(list(source), role or "story", progress=True)
        say_truncated(encoder.coverage, encoder.facts.max_length, *encoder.facts.unit)
        if target.suffix == ".npy":
            with atomic_path(target) as temporary, temporary.open("wb") as file:
                np.save(file, embeddings, allow_pickle=False)
            if with_table:
                write_table(table, others)
            else:
                table.unlink(missing_ok=True)  # of embeddings that were replaced
        else:
            write_table(target, rows, embeddings)
    say(f"{target}: {counted(len(embeddings), 'embedding')} of {embeddings.shape[1]} dimensions")
