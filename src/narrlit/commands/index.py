"""narrlit index: stories with their vectors in a folder that is searched."""

from typing import Annotated

from narrlit.console import counted, say
from narrlit.files import Output
from narrlit.options import InputOptions, ModelOptions, StoryOptions


def index(
    stories: str,
    *,
    out: Annotated[str, Output(continued=True)],
    use: ModelOptions,
    read: StoryOptions,
    inputs: InputOptions,
) -> None:
    """Make an index of stories, or add stories to one; a story whose id is there replaces that one.

    A run that was interrupted goes on when the same command is given again.

    Args:
        stories: a file or a folder of stories.
        out: the index, a LanceDB folder; new, or made with the same model and settings.
        use: the model; minilm if none is named.
        read: what it reads of a story.
        inputs: columns and lines of the stories.
    """
    source = inputs.read(stories)
    from narrlit.explore.index import Index

    result = Index.create(out, source, read.load(use.model or "minilm", use), progress=True)
    say(f"{out}: {counted(len(result), 'story')}")
