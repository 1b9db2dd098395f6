"""narrlit check-data: find stories shared between files, and shortcuts that solve the triples."""

from typing import Annotated

import narrlit
from narrlit.commands.options import ModelOptions, StoryOptions
from narrlit.console import say
from narrlit.data.rows import Layout
from narrlit.errors import OptionError
from narrlit.files import Output


def check_data(  # noqa: PLR0913 - its parameters are the command's options
    train: str,
    validation: str,
    test: str | None = None,
    *,
    labels: str | None = None,
    threshold: float = 0.5,
    out: Annotated[str | None, Output.result("check_data")] = None,
    loading: ModelOptions,
    reading: StoryOptions,
    files: Layout,
) -> None:
    """Check files for shared stories, and for triples that word overlap, length or position alone can solve.

    Args:
        train: training examples, triples or stories, as JSON Lines or CSV.
        validation: triples, training examples or stories.
        test: triples, with or without labels, or stories.
        labels: file with the labels (text_a_is_closer) of the validation triples, if they are in a separate file.
        threshold: Jaccard index of three-word shingles at or above which two stories count as near-duplicates.
        out: folder for check_data.json, .csv, .md, .tex and .svg, and answers.csv, which lists the lines of shared
            stories and near-duplicates.
        loading: model to check as well: as Track B requires, its embedding of a validation or test story must be the
            same whatever other stories are embedded with it; its similarities are examined for length bias and hubness.
        reading: how the model reads a story: views, pseudonyms, fusion and post-processing.
        files: how files of stories are read.
    """
    if loading.model is None and (loading, reading) != (ModelOptions(), StoryOptions()):
        raise OptionError("options_need_model")
    encoder = None if loading.model is None else reading.load(loading.model, loading)
    result = narrlit.check_data(
        train,
        validation,
        test,
        labels=labels,
        threshold=threshold,
        encoder=encoder,
        layout=files,
        progress=True,
    )
    print(result)
    if out is not None:
        result.write(out)
        say(f"{out}: check_data.json, .csv, .md, .tex, .svg{' and answers.csv' if len(result.answers) else ''}")
