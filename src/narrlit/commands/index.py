"""narrlit index: stories with their vectors in a folder that is searched."""

from narrlit.data.readers import read_stories
from narrlit.console import counted, say
from narrlit.errors import OptionError
from narrlit.options import ModelOptions, StoryOptions


def index(stories: str, *, out: str, use: ModelOptions, read: StoryOptions) -> None:
    """Make an index of stories, or add stories to one; a story whose id is there replaces that one.

    A run that was interrupted goes on when the same command is given again.

    Args:
        stories: a file or a folder of stories, as narrlit embed reads them.
        out: the index, a LanceDB folder; new, or made with the same model and settings.
        use: the model.
        read: what it reads of a story.
    """
    if use.model is None:
        raise OptionError("--model M is missing: a folder, a run, a checkpoint, a hub id or minilm")
    from narrlit.explore.index import Index

    source = read_stories(stories, strict=True)
    say(source.report.summary())
    result = Index.create(out, source, use.model, use=use, read=read, progress=True)
    say(f"{out}: {counted(len(result), 'story')}")
