"""narrlit storyworld: write synthetic stories with known theme, course of action and outcome."""

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
    """Write synthetic stories: training examples, labeled triples, the stories of these, and their true views.

    Args:
        out: folder to write into.
        seed: seed of the random stories.
        train: number of training examples; each lists the negative of its triple first, then negatives that share only
            one aspect with the anchor.
        validation: number of labeled validation triples.
        test: number of labeled test triples.
        negatives_per_aspect: number of negatives per training example and aspect (theme, action, outcome).
        false_negatives: fraction of --negatives-per-aspect that are in fact similar to the anchor, 0 to 1; for tests of
            false-negative masking.
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
