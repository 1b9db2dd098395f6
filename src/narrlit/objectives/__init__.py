"""LightningModules, one file an objective."""

from narrlit.objectives.base import Objective, Optimization
from narrlit.objectives.ranking import Ranking
from narrlit.objectives.self_distillation import Distillation, SelfDistillation
from narrlit.objectives.triplet import Triplet

__all__ = ["Distillation", "Objective", "Optimization", "Ranking", "SelfDistillation", "Triplet"]
