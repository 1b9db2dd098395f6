"""narrlit storyworld: synthetic stories with known theme, course of action and outcome, in files."""

from typing import Annotated

import narrlit
from narrlit.console import say
from narrlit.data.storyworld.writing import FILES
from narrlit.files import Output


def storyworld(
    *,
    out: Annotated[str, Output.folder(*FILES)],
    seed: int = 0,
    train: int = 400,
    validation: int = 200,
    test: int = 200,
    negatives_per_aspect: int = 3,
    false_negatives: float = 0.0,
) -> None:
    """Write synthetic stories: train, validation and test triples, the stories alone, and their true views.

    Args:
        out: folder to write into.
        seed: seed of the random stories.
        train: number of training examples; the triple's negative first, then those like the anchor in one aspect only.
        validation: number of labeled validation triples.
        test: number of labeled test triples.
        negatives_per_aspect: negatives of a training example for each aspect (theme, action, outcome).
        false_negatives: share of these negatives that are similar to the anchor in truth, 0 to 1; tests masking.
    """
    files = narrlit.write_storyworld(
        out,
        seed=seed,
        train=train,
        validation=validation,
        test=test,
        negatives_per_aspect=negatives_per_aspect,
        false_negatives=false_negatives,
    )
    say(str(files))
