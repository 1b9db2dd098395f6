"""`narrlit.embed_to_file`: embed the stories of a file, and write embeddings and columns to another file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from narrlit.console import counted, say, say_truncated
from narrlit.data.readers import Stories, read_stories
from narrlit.data.row_file import column_names
from narrlit.data.rows import Layout
from narrlit.data.schema import FloatArray, Story
from narrlit.data.writers import check_rows, write_table
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import DataError, on_interrupt
from narrlit.files import atomic_path, check_writable
from narrlit.library.collection import languages
from narrlit.library.options import columns_file
from narrlit.library.story_frame import plain
from narrlit.models.config import Role

SUFFIXES = (".npy", ".jsonl", ".csv", ".tsv", ".xlsx", ".parquet")
RESERVED_COLUMNS = ("row", "embedding")
"""Columns that are added in the output, so that the input must not have them."""


@dataclass(frozen=True, eq=False)
class EmbeddedFile:
    """Embeddings written to a file.

    Attributes:
        path: the file.
        rows: columns of each of N stories, including its row number `row`, from 0.
        embeddings: (N, D) embeddings; row i belongs to story i.
    """

    path: Path
    rows: Sequence[Mapping[str, object]]
    embeddings: FloatArray

    def table(self) -> pd.DataFrame:
        """Tabulate the rows, without the embeddings."""
        return plain(pd.DataFrame(self.rows, dtype=object))

    def __str__(self) -> str:
        """Format file, number of embeddings and dimension as one line."""
        number, dimension = self.embeddings.shape
        return f"{self.path}: {counted(number, 'embedding')} of {dimension} dimensions"


def embed_to_file(
    stories: str | Path | Stories,
    out: str | Path,
    encoder: StoryEncoder,
    *,
    role: Role | None = None,
    layout: Layout = Layout(),
    progress: bool = False,
) -> EmbeddedFile:
    """Embed stories, and write one embedding per story to a file, in input order.

    Args:
        stories: a folder with one story per file, a table, a text file or document; or the result of
            `narrlit.read_stories`.
        out: file to write; .jsonl, .csv, .tsv, .xlsx and .parquet files contain the embeddings, all columns of the
            input and the row number; an .npy file contains the embeddings alone, and NAME.columns.csv the other columns
            except the text.
        encoder: encoder from `narrlit.load`.
        role: role whose prompt precedes each story, for models with separate prompts for anchors and candidates.
        layout: how files of stories are read.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        An `EmbeddedFile`: `.path`, `.embeddings`, `.table()`.

    Raises:
        DataError: if the stories can't be read, or have a column with a reserved name.
        ModelError: if the model can't be loaded, or has several prompts and no `role` is given.
        OptionError: if the file can't be written.

    >>> import narrlit
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "stories.jsonl").write_text('{"title": "The Grail", "text": "A knight seeks a grail."}')
    >>> from narrlit.library.options import embedding_files
    >>> written = embed_to_file(folder / "stories.jsonl", folder / "vectors.npy", narrlit.load("minilm"))
    >>> written.embeddings.shape, [file.name for file in embedding_files(written.path)]
    ((1, 384), ['vectors.npy', 'vectors.columns.csv'])
    """
    target = Path(out)
    check_writable(target, *SUFFIXES)
    if isinstance(stories, str | Path):
        stories = read_stories(stories, layout=layout)
        if progress:
            say(stories.report.summary())
    rows = _numbered(stories)
    if target.suffix != ".npy":
        check_columns(stories.values, str(stories.report.path))
        check_rows(target, rows)

    interrupted = f"{target} is unchanged"
    if encoder.cache is not None:
        interrupted = f"finished embeddings are kept in {encoder.cache}: repeat the command to resume; {interrupted}"
    with on_interrupt(interrupted):
        embeddings = _embedded(list(stories), encoder, role, progress)
        if target.suffix == ".npy":
            _write_npy(target, embeddings, other_columns(rows, stories.columns.get("text", "text")))
        else:
            write_table(target, rows, embeddings)
    return EmbeddedFile(target, rows, embeddings)


def check_columns(values: Sequence[object], source: str) -> None:
    """Refuse rows with a column that is reserved for the output."""
    columns = column_names([value for value in values if isinstance(value, Mapping)])
    for name in RESERVED_COLUMNS:
        if name in columns:
            raise DataError("reserved_output_column", source=source, name=name)


def other_columns(rows: Sequence[Mapping[str, object]], text: str) -> list[dict[str, object]]:
    """Return rows without the text column."""
    others = [dict(row) for row in rows]
    for row in others:
        row.pop(text, None)
    return others


def save_vectors(path: Path, embeddings: FloatArray) -> None:
    """Write embeddings in .npy format, whatever the suffix of the file."""
    with path.open("wb") as file:
        np.save(file, embeddings, allow_pickle=False)


def _numbered(stories: Stories) -> list[dict[str, object]]:
    """Return the rows of stories: row number, then all columns."""
    rows = []
    for number, value in enumerate(stories.values):
        columns = value if isinstance(value, Mapping) else {"text": value}
        rows.append({"row": number, **columns})
    return rows


def _embedded(stories: Sequence[Story], encoder: StoryEncoder, role: Role | None, progress: bool) -> FloatArray:
    """Embed stories; invalid views or options raise an error before the model is loaded."""
    encoder = encoder.fitted_for(stories)
    texts = [story.text for story in encoder.prepare(stories)]
    languages(encoder, texts)
    if role is None:
        encoder.require_one_prompt("embed")
    embeddings = encoder.embed(stories, role or "story", progress)
    if progress:
        say_truncated(encoder.coverage, encoder.facts.max_length, *encoder.facts.unit)
    return embeddings


def _write_npy(path: Path, embeddings: FloatArray, columns: Sequence[Mapping[str, object]]) -> None:
    """Write embeddings, and their columns to a second file if there are any besides the row number."""
    with atomic_path(path) as temporary:
        save_vectors(temporary, embeddings)
    if max(map(len, columns), default=0) > 1:
        write_table(columns_file(path), columns)
    else:
        columns_file(path).unlink(missing_ok=True)  # left by embeddings that were replaced
