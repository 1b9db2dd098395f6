"""narrlit explain: why a model finds two stories similar, or one closer than another."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrlit.console import say
from narrlit.data.schema import Story, StoryTable
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.errors import OptionError, did_you_mean, printable
from narrlit.files import Output, atomic_path
from narrlit.options import InputOptions, ModelOptions, StoryOptions

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder

FEWEST_WORDS = 3
"""Words of an argument that is a text, rather than a mistyped file name or id."""


def explain(  # noqa: PLR0913 (options)
    a: str,
    b: str,
    other: str | None = None,
    *,
    stories: str | None = None,
    views: str | None = None,
    pipeline: str | None = None,
    out: Annotated[str | None, Output()] = None,
    use: ModelOptions,
    inputs: InputOptions,
) -> None:
    """Explain why two stories are similar, or why A is closer to an anchor than B: passages, sentences, names.

    Args:
        a: a text, a file with one story, or an id of --stories; before two others, the anchor.
        b: the story compared with it; before a third, A.
        other: B, a third story.
        stories: file, folder or index of the stories that ids name; chance is measured on the others there.
        views: file of stories' views (text, theme, plot_events or course_of_action, outcome), shown side by side.
        pipeline: spaCy pipeline that finds names; by default en_core_web_sm, if it is installed.
        out: HTML file to write, in place of printing.
        use: the model; minilm if none is named, or that of an index.
        inputs: how files of stories are read.
    """
    from narrlit.explore.explanation import explain as explain_stories

    known, encoder = _known(stories, use, inputs)
    table = StoryTable([_story(word, known, stories, inputs) for word in (a, b, other) if word is not None])
    if views is not None:
        found = StoryViews(ViewFiles.parse(views))
        say(f"views: {found.summary()}")
        found.attach(table, range(len(table)), "stories")
    background = [story.text for story in known.values()]
    model = encoder or StoryOptions().load(use.model or "minilm", use)
    result = explain_stories(*table, model=model, background=background, pipeline=pipeline, progress=True)
    if out is None:
        print(result)
        return
    with atomic_path(out) as path:
        path.write_text(result.html(), encoding="utf-8")
    print("\n".join(map(printable, result.findings)))
    say(f"{out}: open it in a browser")


def _known(
    source: str | None, use: ModelOptions, inputs: InputOptions
) -> tuple[dict[str, Story], "StoryEncoder | None"]:
    """Read the stories that ids name, each under its title, and the encoder of an index."""
    from narrlit.commands.collections import open_index
    from narrlit.explore.index import index_at

    if source is None:
        return {}, None
    if not index_at(source):
        read = inputs.read(source)
        rows = zip(read.story_ids, read.titles, read, strict=True)
        return {id: Story(title or id, story.text) for id, title, story in rows}, None
    index = open_index(source, use)
    table = index.collection().frame
    texts = zip(table.id, table.title, table.text, strict=True)
    return {id: Story(title or id, text) for id, title, text in texts}, index.encoder


def _story(word: str, known: Mapping[str, Story], source: str | None, inputs: InputOptions) -> Story:
    """Find the story that an argument is, names or holds."""
    if word in known:
        return known[word]
    if os.path.exists(word) and not os.path.isdir(word):  # noqa: PTH110, PTH112 (a text is longer than Path accepts)
        read = inputs.read(word)
        if len(read) != 1:
            raise OptionError(f"{word} has {len(read)} stories: give --stories {word} and the ids of two")
        return Story(read.titles[0] or Path(word).stem, read[0].text)
    if len(word.split()) < FEWEST_WORDS:
        ids = "an id needs --stories FILE" if source is None else f"no id of {source}{did_you_mean(word, known)}"
        raise OptionError(f"{word!r} is no file and too short for a story; {ids}")
    return Story(printable(word, 40), word)
