"""narrlit profile: measure how much similarity depends on plot, world, length and single aspects."""

from typing import Annotated

import narrlit
from narrlit.commands.options import LoadOptions, StoryOptions, listed
from narrlit.data.twice_told import Split
from narrlit.files import Output
from narrlit.measures.names import MeasureName


def profile(
    models: tuple[str, ...],
    *,
    measure: MeasureName = "cosine",
    split: Split | None = None,
    sets: str | None = None,
    choices: str | None = None,
    out: Annotated[str | None, Output.result("profile")] = None,
    loading: LoadOptions,
    reading: StoryOptions,
) -> None:
    """Measure how much a model's similarity depends on plot, world and length, with plots told in several worlds.

    It also measures how much similarity drops when only the theme, the course of action or the outcome is changed, and
    the accuracy on triples with a negative from the same world as the anchor or from another. TF-IDF is always included
    for comparison.

    Args:
        models: models, separated by spaces or commas: runs, folders, checkpoints, hub ids, narrlit-mini or minilm.
        measure: measure of similarity; cosine is that of Track B.
        split: part of the plots and worlds: train, validation or test, which have none in common; default: all.
        sets: comma-separated files of labeled triples on which accuracy is measured as well, per value of the column
            `cell`; the column `plot`, if there is one, groups triples that belong together.
        choices: comma-separated files of multiple-choice questions (anchor_text, choices, answer).
        out: folder for the report (profile.json, .csv, .md, .tex and .svg).
        loading: how models are loaded.
        reading: how the models read a story: views, pseudonyms, fusion and post-processing.
    """
    encoders = {name: reading.load(name, loading) for name in listed(",".join(models))}
    result = narrlit.profile(
        encoders, measure=measure, split=split, sets=listed(sets), choices=listed(choices), progress=True
    )
    print(result)
    if out is not None:
        result.write(out)
