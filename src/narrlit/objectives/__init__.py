"""LightningModules, one file an objective."""

from narrlit.objectives.base import Objective, Optimization
from narrlit.objectives.ranking import Ranking
from narrlit.objectives.triplet import Triplet

__all__ = ["Objective", "Optimization", "Ranking", "Triplet"]
