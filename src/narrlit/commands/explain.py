"""narrlit explain: why a model finds two stories similar, or one closer than another."""

from typing import Annotated

from narrlit.console import say
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import printable
from narrlit.files import Output
from narrlit.options import InputOptions, ModelOptions, StoryOptions


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
    from narrlit.commands.collections import open_index
    from narrlit.explore.explanation import explain as explain_stories
    from narrlit.explore.index import index_at
    from narrlit.explore.story_finder import StoryFinder

    encoder: StoryEncoder
    if stories is not None and index_at(stories):
        index = open_index(stories, use)
        finder, encoder = StoryFinder.of(index.collection(), inputs.layout), index.encoder
    else:
        encoder = StoryOptions().load(use.model or "minilm", use)
        finder = StoryFinder(layout=inputs.layout)
        if stories is not None:
            finder = StoryFinder.read(stories, inputs.layout, progress=True)
    named = [finder.find(word) for word in (a, b, other) if word is not None]
    result = explain_stories(
        *named, model=encoder, background=finder.texts, views=views, pipeline=pipeline, progress=True
    )
    if out is None:
        print(result)
        return
    result.write(out)
    print("\n".join(map(printable, result.findings)))
    say(f"{out}: open it in a browser")
