"""narrlit index: store stories with their embeddings in a folder for search."""

from typing import Annotated

import narrlit
from narrlit.commands.options import InputOptions, ModelOptions, StoryOptions
from narrlit.console import counted, say
from narrlit.files import Output
from narrlit.models.config import DEFAULT_MODEL


def index(
    stories: str,
    *,
    out: Annotated[str, Output(continued=True)],
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
) -> None:
    """Create an index of stories, or add stories to an existing one; a story with a known id replaces the old version.

    Repeat the command to resume after an interruption.

    Args:
        stories: a file or a folder of stories.
        out: folder of the index (LanceDB); new, or made with the same model and settings.
        loading: the model; default: narrlit-mini.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: columns and lines of the stories.
    """
    source = files.read(stories)
    result = narrlit.Index.create(out, source, reading.load(loading.model or DEFAULT_MODEL, loading), progress=True)
    say(f"{out}: {counted(len(result), 'story')}")
