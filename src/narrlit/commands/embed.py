"""narrlit embed: embeddings of stories, in a file, or of any number of them in the parts of a folder."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import narrlit
from narrlit.commands.options import InputOptions, LoadOptions, StoryOptions
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.explore.options import PartOptions, embedding_files
from narrlit.files import Output
from narrlit.models.config import Role


def _is_folder(out: str) -> bool:
    return not Path(out).suffix or Path(out).is_dir()


def _files(arguments: Mapping[str, Any]) -> Iterable[Path]:
    """List the files that are written; a folder's parts are continued, or refused, by the library."""
    return [] if _is_folder(arguments["out"]) else embedding_files(arguments["out"])


def embed(  # noqa: PLR0913 (options)
    stories: str,
    *,
    model: str,
    out: Annotated[str, Output(written=_files)],
    loading: LoadOptions,
    reading: StoryOptions,
    files: InputOptions,
    parts: PartOptions,
    role: Role | None = None,
    drop_invalid: bool = False,
) -> None:
    """Embed stories, and write one embedding for each, in their order.

    Args:
        stories: a folder with a story a file, a table (CSV, TSV, Excel, Parquet, JSON Lines), a text file or document,
            or - for standard input; where --out is a folder, JSON Lines, CSV or Parquet: a file, a folder or glob of
            them, or its address in an object store (s3://, gs://).
        model: a folder, a run folder, a checkpoint, a hub id, narrlit-mini or minilm.
        out: folder for any number of stories, embedded in parts, of which an interruption loses one at most; or a file.
            .jsonl, .csv, .tsv, .xlsx and .parquet hold the embeddings, the number of the row and all columns of the
            input; .npy the embeddings alone, with the other columns, without the text, in NAME.columns.csv.
        loading: how the model is loaded.
        reading: what it reads of a story.
        files: how files of stories are read.
        parts: of the folder.
        role: prompt that precedes the stories, for models with one for anchors and another for candidates; compare
            embeddings of anchors with embeddings of candidates.
        drop_invalid: leave out and count rows without a text, in place of stopping at the first.
    """
    layout = files.layout
    if _is_folder(out):
        encoder = reading.load(model, loading, cache=None)
        narrlit.embed_to_folder(stories, out, encoder, role=role, layout=layout, drop_invalid=drop_invalid, parts=parts)
        return
    if parts != PartOptions():
        raise OptionError(f"--out {out}: --part-rows, --format, --engine and --workers need a folder")
    encoder = reading.load(model, loading)
    say(
        str(
            narrlit.embed_to_file(
                stories, out, encoder, role=role, layout=layout, drop_invalid=drop_invalid, progress=True
            )
        )
    )
