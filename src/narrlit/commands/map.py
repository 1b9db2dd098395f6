"""narrlit map: draw a collection, with its groups, nearest stories and linked passages."""

from pathlib import Path
from typing import Annotated

import narrlit
from narrlit.commands.collections import open_index, read_collection
from narrlit.commands.options import InputOptions, LabelOptions, ModelOptions, StoryOptions
from narrlit.console import say
from narrlit.explore.options import index_at
from narrlit.files import PAGE_SUFFIXES, Output
from narrlit.metrics.names import MeasureName

FILES = ("{path}", "{stem}-neighbors.csv", "{stem}-groups.csv", "{stem}.svg")


def map(  # noqa: PLR0913 (options)
    stories: str,
    *,
    out: Annotated[str, Output(*FILES, suffixes=PAGE_SUFFIXES)],
    group: str | None = None,
    measure: MeasureName | None = None,
    triples: str | None = None,
    k: int = 10,
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
    labels: LabelOptions,
) -> None:
    """Draw a collection with its groups: up to 300 stories as a dendrogram with a heat map, more as a scatter plot.

    NAME-neighbors.csv, NAME-groups.csv and NAME.svg, a picture for articles, are written next to NAME.html.

    Args:
        stories: an index, or stories as `narrlit embed` reads them.
        out: the HTML file.
        group: column whose values are compared with the nearest stories: how many share it, by chance how many.
        measure: by which stories are compared: passages, fused, csls, centered, cosine or lexical; by default passages,
            or csls for a model that can't embed a single text.
        triples: labeled triples that the model's accuracy is measured on, for the head of the page.
        k: nearest stories that are listed of each.
        loading: the model, where the stories are no index; narrlit-mini if none is named.
        reading: what it reads of a story.
        files: files of stories.
        labels: the triples' labels.
    """
    if index_at(stories):
        open_index(stories, loading, reading, files).encoder  # noqa: B018 - refuses a model that has changed
    collection, accuracy = read_collection(stories, loading, reading, files, measure), None
    if triples is not None:
        result = narrlit.evaluate(
            triples, collection.encoder, labels=labels.labels, strict=labels.strict, progress=True
        )
        seen = result.seen_in_training
        accuracy = f"{result.answers.summary} on the triples of {Path(triples).name}" + (f"; {seen}" if seen else "")
    drawn = narrlit.map_stories(collection, group=group, accuracy=accuracy, k=k)
    page, *beside = drawn.write(out)
    print(drawn)
    say(f"{out}: {page.stat().st_size / 1e6:.1f} MB; beside it {', '.join(path.name for path in beside)}")
