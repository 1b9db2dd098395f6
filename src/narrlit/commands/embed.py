"""narrlit embed: embed stories into a file, or any number of stories into a folder of parts."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import narrlit
from narrlit.arguments import Deferred
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.library.options import PartOptions, embedding_files
from narrlit.models.config import Role

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder


def _is_folder(out: str) -> bool:
    return not Path(out).suffix or Path(out).is_dir()


def _files(arguments: Mapping[str, Any]) -> Iterable[Path]:
    """List the files to write; a folder of parts is resumed or refused by the library."""
    return [] if _is_folder(arguments["out"]) else embedding_files(arguments["out"])


def embed(
    stories: str,
    *,
    out: Annotated[str, Output(written=_files)],
    encoder: "Deferred[StoryEncoder]",
    layout: Layout = Layout(),
    parts: PartOptions = PartOptions(),
    role: Role | None = None,
) -> None:
    """Embed stories, and write one embedding per story in input order.

    Args:
        stories: a folder with one story per file, a table (CSV, TSV, Excel, Parquet, JSON Lines), a text file or
            document, or - for standard input. If --out is a folder: JSON Lines, CSV or Parquet, as a file, a folder, a
            glob pattern or an address in an object store (s3://, gs://).
        out: file or folder to write. .jsonl, .csv, .tsv, .xlsx and .parquet files contain the embeddings, the row
            number and all columns of the input; an .npy file contains the embeddings alone, and NAME.columns.csv the
            other columns except the text. A folder takes any number of stories, which are embedded in parts; an
            interruption loses one part at most.
        encoder: the model.
        layout: how files of stories are read.
        parts: size, format and workers of the parts of a folder.
        role: prompt that precedes each story, for models with separate prompts for anchors and candidates; compare
            embeddings of anchors with embeddings of candidates.
    """
    if _is_folder(out):
        opened = encoder.open(cache=None)
        narrlit.embed_to_folder(stories, out, opened, role=role, layout=layout, parts=parts)
        return
    if parts != PartOptions():
        raise OptionError("options_of_folder", out=out)
    say(str(narrlit.embed_to_file(stories, out, encoder.open(), role=role, layout=layout, progress=True)))
