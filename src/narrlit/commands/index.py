"""narrlit index: store stories with their embeddings in a folder for search."""

from typing import Annotated

import narrlit
from narrlit.commands.options import InputOptions, ModelOptions, StoryOptions
from narrlit.console import counted, say
from narrlit.explore.options import VectorFormat
from narrlit.files import Output
from narrlit.models.config import DEFAULT_MODEL


def index(
    stories: str,
    *,
    out: Annotated[str, Output(continued=True)],
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
    vectors: VectorFormat | None = None,
) -> None:
    """Create an index of stories, or add stories to an existing one; a story with a known id replaces the old version.

    Repeat the command to resume after an interruption.

    Args:
        stories: a file or a folder of stories.
        out: folder of the index (LanceDB); new, or made with the same model and settings.
        loading: the model; default: narrlit-mini.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of the stories.
        vectors: number format of the stories' vectors; int8 and binary are float16 with an index of 8 bits or 1 bit
            per dimension, which selects candidates in an index of more than 1,000 stories; default: float32.
    """
    source = files.read(stories)
    encoder = reading.load(loading.model or DEFAULT_MODEL, loading)
    result = narrlit.Index.create(out, source, encoder, vectors=vectors, progress=True)
    say(f"{out}: {counted(len(result), 'story')}")
