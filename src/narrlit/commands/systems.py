"""Systems that commands compare, by the names that a person types."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.experiments.systems import ANSWER_SUFFIXES, System
from narrlit.measures import Cosine, MeanMaxSimilarity, Similarity, open_measure
from narrlit.metrics.meanmax import MeanMax
from narrlit.options import LoadOptions, StoryOptions

Scorer = Literal["cosine", "meanmax"]


def measure(encoder: StoryEncoder, scorer: Scorer, meanmax: MeanMax) -> Similarity:
    """Return the measure that an option names."""
    return MeanMaxSimilarity(encoder, meanmax) if scorer == "meanmax" else Cosine(encoder)


def named_systems(
    names: Sequence[str], use: LoadOptions, read: StoryOptions, meanmax: MeanMax = MeanMax()
) -> dict[str, System]:
    """Return the systems that names stand for, models loaded by a command's options.

    Raises:
        ModelError: if there is no such model.
        OptionError: if a system is named twice.
    """

    def load(model: str) -> StoryEncoder:
        """Load a model by the options."""
        return read.load(model, use)

    systems: dict[str, System] = {}
    for name in names:
        if name in systems:
            raise OptionError(f"{name} is named twice; a system is compared once")
        is_file = Path(name).suffix in ANSWER_SUFFIXES
        systems[name] = name if is_file else open_measure(name, load, meanmax, read.texts)
    return systems
