"""narrlit profile: what a model's similarity follows: plots, worlds, length, single aspects."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LoadOptions, StoryOptions, listed
from narrlit.data.twice_told import Split
from narrlit.files import Output
from narrlit.metrics.names import MeasureName

FILES = ("profile.json", "profile.md", "profile.csv", "profile.svg")


def profile(
    models: str,
    *,
    measure: MeasureName = "cosine",
    split: Split | None = None,
    sets: str | None = None,
    choices: str | None = None,
    out: Annotated[str | None, Output.folder(*FILES)] = None,
    loading: LoadOptions,
    reading: StoryOptions,
) -> None:
    """Print how much of models' similarity is plot, world and length, on stories whose plots are told in many worlds.

    Also how far similarity falls if only the theme, the course of action or the outcome is changed, and accuracies on
    triples whose negative shares the anchor's world or not. TF-IDF is always beside.

    Args:
        models: runs, folders, checkpoints, hub ids, narrlit-mini or minilm, with commas between.
        measure: by which stories are compared: cosine, as Track B does, or passages, fused, csls, centered, lexical.
        split: test, validation or train: plots and worlds that occur in no other part; default: all.
        sets: files of labeled triples with a column cell, with commas between, whose accuracies are added; a column
            plot says which of them belong together.
        choices: files of questions with several candidates (anchor_text, choices, answer), with commas between.
        out: folder for profile.json, .md, .csv and a picture, .svg.
        loading: how models are loaded.
        reading: what they read of a story.
    """
    encoders = {name: reading.load(name, loading) for name in listed(models)}
    found = narrlit.profile(
        encoders, measure=measure, split=split, sets=listed(sets), choices=listed(choices), progress=True
    )
    print(found)
    if out is not None:
        found.write(out)
