"""narrlit explain: split the similarity of two stories into links between passages."""

from typing import Annotated

import narrlit
from narrlit.commands.collections import open_index, read_collection
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.errors import printable
from narrlit.files import Output
from narrlit.library.options import index_at
from narrlit.library.story_finder import StoryFinder
from narrlit.models.config import DEFAULT_MODEL


def explain(  # noqa: PLR0913 (options)
    a: str,
    b: str,
    other: str | None = None,
    *,
    stories: str | None = None,
    views: str | None = None,
    check: bool = False,
    out: Annotated[str | None, Output()] = None,
    loading: ModelOptions,
    files: Layout,
) -> None:
    """Explain by links between passages why two stories are similar, or why A is closer to an anchor than B.

    Args:
        a: a text, a file with one story, or an id in --stories; the anchor, if three stories are given.
        b: the story to compare A with; candidate A, if three stories are given.
        other: a third story, candidate B.
        stories: index, file or folder in which ids are looked up; similarities are computed as in this collection.
        views: file of views (text, theme, plot_events or course_of_action, outcome), which are shown side by side.
        check: verify the explanation: remove the most strongly linked passages, and compare the effect with that of
            random passages; takes longer.
        out: HTML file to write instead of printing.
        loading: the model; default: that of the index, or narrlit-mini.
        files: how files of stories are read.
    """
    collection: narrlit.Collection | None = None
    encoder = None
    if stories is None:
        finder = StoryFinder(layout=files)
    elif index_at(stories):
        collection = open_index(stories, loading).collection()
        finder = StoryFinder.of(collection, files)
    else:
        finder = StoryFinder.read(stories, files)
    # A wrong name is reported before any story is embedded.
    named = [finder.find(name) for name in (a, b, other) if name is not None]
    if stories is None:
        encoder = StoryOptions().load(loading.model or DEFAULT_MODEL, loading)
    elif collection is None:
        collection = read_collection(stories, loading, StoryOptions(), files)
    result = narrlit.explain(*named, stories=collection, encoder=encoder, views=views, check=check, progress=True)
    if out is None:
        print(result)
        return
    result.write(out)
    print("\n".join(map(printable, result.findings)))
    say(f"{out}: open it in a browser")
