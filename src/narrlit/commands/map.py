"""narrlit map: draw a collection, with its groups, nearest stories and linked passages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import narrlit
from narrlit.arguments import Deferred
from narrlit.commands import opening
from narrlit.commands.opening import open_index
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.files import PAGE_SUFFIXES, Output
from narrlit.library.options import index_at
from narrlit.measures.names import MeasureName

if TYPE_CHECKING:
    from narrlit.encoding.story_encoder import StoryEncoder

FILES = ("{path}", "{stem}-neighbors.csv", "{stem}-groups.csv", "{stem}.svg")


def map(  # noqa: PLR0913 (options)
    stories: str,
    *,
    out: Annotated[str, Output(*FILES, suffixes=PAGE_SUFFIXES)],
    group: str | None = None,
    measure: MeasureName | None = None,
    triples: str | None = None,
    labels: str | None = None,
    k: int = 10,
    encoder: "Deferred[StoryEncoder]",
    layout: Layout = Layout(),
) -> None:
    """Draw a collection with its groups: up to 300 stories as a dendrogram with a heat map, more as a scatter plot.

    NAME-neighbors.csv, NAME-groups.csv and NAME.svg, a picture for articles, are written next to NAME.html.

    Args:
        stories: an index, or stories as `narrlit embed` reads them.
        out: HTML file to write.
        group: column of labels; the page shows how often nearest stories share a label, against the rate expected by
            chance.
        measure: measure of similarity; default: passages, or csls for a model that can't embed passages.
        triples: file of labeled triples on which the model is evaluated; the page begins with the accuracy.
        labels: file with the labels (text_a_is_closer), if they are not in the file of triples.
        k: number of nearest stories listed per story.
        encoder: the model that embeds the stories, if they are not an index.
        layout: how files of stories are read.
    """
    if index_at(stories):
        open_index(stories, encoder, layout).encoder  # noqa: B018 - refuses a model that has changed
    collection = opening.collection(stories, encoder=encoder, layout=layout, measure=measure)
    accuracy = None
    if triples is not None:
        result = narrlit.evaluate(triples, collection.encoder, labels=labels, strict=layout.strict, progress=True)
        accuracy = f"{result.estimate()} on the triples of {Path(triples).name}"
        for note in result.notes:
            if note.code == "seen_in_training":
                accuracy += f"; {note.values['reason']}"
    story_map = narrlit.map_stories(collection, group=group, accuracy=accuracy, k=k)
    page, *others = story_map.write(out)
    print(story_map)
    names = [path.name for path in others]
    say(f"{out}: {page.stat().st_size / 1e6:.1f} MB; next to it {', '.join(names)}")
