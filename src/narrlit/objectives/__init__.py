"""LightningModules, one file an objective."""

from narrlit.objectives.base import Objective, Optimization
from narrlit.objectives.multiview import MultiView
from narrlit.objectives.projection import Hard, Projection
from narrlit.objectives.ranking import Ranking
from narrlit.objectives.self_distillation import Distillation, SelfDistillation
from narrlit.objectives.story_head import StoryHead
from narrlit.objectives.subspaces import Aspects, Subspaces
from narrlit.objectives.triplet import Triplet

__all__ = [
    "Aspects",
    "Distillation",
    "Hard",
    "MultiView",
    "Objective",
    "Optimization",
    "Projection",
    "Ranking",
    "SelfDistillation",
    "StoryHead",
    "Subspaces",
    "Triplet",
]
