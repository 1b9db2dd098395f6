"""narrlit explain: why a model finds two stories similar, or one closer than another."""

from pathlib import Path

from narrlit.console import say
from narrlit.data.readers import Stories
from narrlit.data.schema import Story, normal_text
from narrlit.data.views import StoryViews, ViewFiles
from narrlit.errors import DataError, OptionError, did_you_mean
from narrlit.files import atomic_path, check_writable
from narrlit.options import InputOptions, ModelOptions


def explain(  # noqa: PLR0913 (options)
    a: str,
    b: str,
    other: str | None = None,
    *,
    stories: str | None = None,
    views: str | None = None,
    pipeline: str | None = None,
    out: str | None = None,
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
    if out is not None:
        check_writable(out)
    known, model = _known(stories, inputs)
    model = use.model or model or "minilm"
    chosen = [_story(word, known, stories, inputs) for word in (a, b, other) if word is not None]
    if views is not None:
        found = StoryViews(ViewFiles.parse(views, "refuse"))
        say(f"views: {found.summary()}")
        chosen = [Story(story.id, story.text, found.views.get(normal_text(story.text))) for story in chosen]
    from narrlit.explore.explanation import explain as explain_stories

    encoder = ModelOptions.load_named(use, model)
    background = [story.text for story in known.values()]
    result = explain_stories(*chosen, model=encoder, background=background, pipeline=pipeline, name=model)
    if out is None:
        print(result.text())
        return
    with atomic_path(out) as path:
        path.write_text(result.html(), encoding="utf-8")
    print("\n".join(result.findings))
    say(f"{out}: open it in a browser")
