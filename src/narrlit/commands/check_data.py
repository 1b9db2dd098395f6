"""narrlit check-data: stories that files share, and shortcuts that solve their triples."""

from typing import Annotated

import narrlit
from narrlit.commands.options import InputOptions, ModelOptions, StoryOptions
from narrlit.console import say
from narrlit.errors import OptionError
from narrlit.files import Output


def check_data(  # noqa: PLR0913 - its parameters are the command's options
    train: str,
    validation: str,
    test: str | None = None,
    *,
    labels: str | None = None,
    threshold: float = 0.5,
    out: Annotated[str | None, Output.folder("check_data.json", "check_data.md")] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: InputOptions,
) -> None:
    """Check whether files share stories, and whether word overlap, length or position alone solve their triples.

    Args:
        train: training examples, triples or stories, as JSON Lines or CSV.
        validation: triples, training examples or stories.
        test: triples, with or without labels, or stories.
        labels: file of text_a_is_closer for the validation triples, where it is a file of its own.
        threshold: Jaccard index of three-word shingles from which stories are near-duplicates.
        out: folder for check_data.json, with the lines of shared stories and near-duplicates, and check_data.md.
        loading: model whose vectors of validation and test stories must not depend on other stories, as Track B
            demands, and whose similarities are diagnosed: whether they follow the length of stories, and have hubs.
        reading: what it reads of a story.
        files: how files of stories are read.
    """
    if loading.model is None and (loading, reading) != (ModelOptions(), StoryOptions()):
        raise OptionError("--views, --pseudonymize, --postprocess and their like need --model")
    encoder = None if loading.model is None else reading.load(loading.model, loading)
    result = narrlit.check_data(
        train,
        validation,
        test,
        labels=labels,
        threshold=threshold,
        encoder=encoder,
        layout=files.layout,
        progress=True,
    )
    print(result)
    if out is not None:
        result.write(out)
        say(f"{out}: check_data.json, check_data.md")
