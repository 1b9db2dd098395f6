"""narrlit index: store stories with their embeddings in a folder for search."""

from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.arguments import Deferred
from narrlit.console import counted, say
from narrlit.data.readers import read_stories
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output
from narrlit.library.options import TableOptions, VectorFormat, is_address

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder


def index(
    stories: str,
    *,
    out: Annotated[str, Output(continued=True)],
    encoder: "Deferred[StoryEncoder]",
    layout: Layout = Layout(),
    parts: TableOptions = TableOptions(),
    vectors: VectorFormat | None = None,
    update: bool = False,
    overwrite: bool = False,
) -> None:
    """Create an index of stories, or add stories to an existing one; a story with a known id replaces the old version.

    Repeat the command to resume after an interruption.

    Args:
        stories: a file or a folder of stories. For a vector table: JSON Lines, CSV or Parquet, as a file, a folder, a
            glob pattern or an address in an object store (s3://, gs://).
        out: folder of the index (LanceDB); new, or made with the same model and settings. Or the address of a vector
            table (s3://bucket/plots, file:///data/plots) for millions of stories: they are embedded in parts, one
            embedding per story, and searched without loading them into memory.
        encoder: the model.
        layout: how files of stories are read.
        parts: size and workers of the parts of a vector table.
        vectors: number format of the stories' vectors; int8 and binary are float16 with an index of 8 bits or 1 bit
            per dimension, which selects candidates in an index of more than 1,000 stories; default: float32.
        update: remove stories of the index that are not in this file or folder; unchanged ones are not embedded again.
        overwrite: replace an index by one of these stories alone, with any model.
    """
    if is_address(out):
        if vectors is not None or update or overwrite:
            raise OptionError("options_of_index_folder", out=out)
        opened = encoder.open(cache=None)
        table = narrlit.VectorTable.create(out, stories, opened, layout=layout, options=parts)
        say(f"{out}: {counted(len(table), 'story')}")
        return
    if parts != TableOptions():
        raise OptionError("options_of_address", out=out)
    source = read_stories(stories, layout=layout)
    say(source.report.summary())
    result = narrlit.Index.create(
        out, source, encoder.open(), vectors=vectors, overwrite=overwrite, update=update, progress=True
    )
    result.prepare_search()
    say(f"{out}: {counted(len(result), 'story')}")
