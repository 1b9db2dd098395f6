"""narrlit explain: split the similarity of two stories into links between passages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.arguments import Deferred
from narrlit.commands import opening
from narrlit.commands.opening import open_index
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.errors import printable
from narrlit.files import PAGE_SUFFIXES, Output
from narrlit.library.options import EXPLANATION_SUFFIXES, index_at
from narrlit.library.story_finder import StoryFinder

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder


def explain(  # noqa: PLR0913 (options)
    a: str,
    b: str,
    other: str | None = None,
    *,
    stories: str | None = None,
    views: str | None = None,
    check: bool = False,
    out: Annotated[str | None, Output(suffixes=EXPLANATION_SUFFIXES)] = None,
    encoder: "Deferred[StoryEncoder]",
    layout: Layout = Layout(),
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
        out: file to write instead of printing: a page (.html), both texts with their links as TEI (.xml), or a table of
            the links (.csv, .tsv, .xlsx, .jsonl, .parquet).
        encoder: the model, unless the stories are an index.
        layout: how files of stories are read.
    """
    collection: narrlit.Collection | None = None
    if stories is None:
        finder = StoryFinder(layout=layout)
    elif index_at(stories):
        collection = open_index(stories, encoder).collection()
        finder = StoryFinder.of(collection, layout)
    else:
        finder = StoryFinder.read(stories, layout)
    # A wrong name is reported before any story is embedded.
    named = [finder.find(name) for name in (a, b, other) if name is not None]
    if stories is not None and collection is None:
        collection = opening.collection(stories, encoder=encoder, layout=layout)
    opened = encoder.open() if stories is None else None
    result = narrlit.explain(*named, stories=collection, encoder=opened, views=views, check=check, progress=True)
    if out is None:
        print(result)
        return
    result.write(out)
    print("\n".join(map(printable, result.findings)))
    say(f"{out}: open it in a browser" if Path(out).suffix in PAGE_SUFFIXES else str(out))
