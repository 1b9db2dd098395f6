"""StoryWorld: invented stories whose theme, course of action, outcome and names are known."""

from narrlit.data.storyworld.realise import InventedStory, Structure, Views
from narrlit.data.storyworld.rows import example, judged, judged_triples
from narrlit.data.storyworld.surface import SPLITS
from narrlit.data.storyworld.world import StoryWorld, WorldTriple

__all__ = [
    "SPLITS",
    "InventedStory",
    "StoryWorld",
    "Structure",
    "Views",
    "WorldTriple",
    "example",
    "judged",
    "judged_triples",
]
