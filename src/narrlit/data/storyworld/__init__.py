"""StoryWorld: synthetic stories whose theme, course of action, outcome and names are known."""

from narrlit.data.storyworld.world import (
    SPLITS,
    StoryWorld,
    SyntheticStory,
    SyntheticTriple,
    synthetic_examples,
    synthetic_triples,
)

__all__ = [
    "SPLITS",
    "StoryWorld",
    "SyntheticStory",
    "SyntheticTriple",
    "synthetic_examples",
    "synthetic_triples",
]
