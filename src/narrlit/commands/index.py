"""narrlit index: store stories with their embeddings in a folder for search."""

from typing import Annotated

import narrlit
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.console import counted, say
from narrlit.data.readers import read_stories
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output, OutputOptions
from narrlit.library.options import TableOptions, VectorFormat, is_address
from narrlit.models.config import DEFAULT_MODEL


def index(  # noqa: PLR0913 (options)
    stories: str,
    *,
    out: Annotated[str, Output(continued=True)],
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
    parts: TableOptions,
    vectors: VectorFormat | None = None,
    update: bool = False,
    output_options: OutputOptions,
) -> None:
    """Create an index of stories, or add stories to an existing one; a story with a known id replaces the old version.

    Repeat the command to resume after an interruption.

    Args:
        stories: a file or a folder of stories. For a vector table: JSON Lines, CSV or Parquet, as a file, a folder, a
            glob pattern or an address in an object store (s3://, gs://).
        out: folder of the index (LanceDB); new, or made with the same model and settings. Or the address of a vector
            table (s3://bucket/plots, file:///data/plots) for millions of stories: they are embedded in parts, one
            embedding per story, and searched without loading them into memory.
        loading: the model; default: narrlit-mini.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of the stories.
        parts: size and workers of the parts of a vector table.
        vectors: number format of the stories' vectors; int8 and binary are float16 with an index of 8 bits or 1 bit
            per dimension, which selects candidates in an index of more than 1,000 stories; default: float32.
        update: remove stories of the index that are not in this file or folder; unchanged ones are not embedded again.
        output_options: option to replace an index by one of these stories alone, with any model.
    """
    model = loading.model or DEFAULT_MODEL
    if is_address(out):
        if vectors is not None or update or output_options.overwrite:
            raise OptionError("options_of_index_folder", out=out)
        encoder = reading.load(model, loading, cache=None)
        table = narrlit.VectorTable.create(out, stories, encoder, layout=files, options=parts)
        say(f"{out}: {counted(len(table), 'story')}")
        return
    if parts != TableOptions():
        raise OptionError("options_of_address", out=out)
    source = read_stories(stories, layout=files)
    say(source.report.summary())
    encoder = reading.load(model, loading)
    overwrite = output_options.overwrite
    result = narrlit.Index.create(
        out, source, encoder, vectors=vectors, overwrite=overwrite, update=update, progress=True
    )
    result.prepare_search()
    say(f"{out}: {counted(len(result), 'story')}")
