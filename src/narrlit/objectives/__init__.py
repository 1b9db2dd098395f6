"""LightningModules: the objectives."""

from narrlit.objectives.aspect_bilstm import AspectBiLSTM, Aspects
from narrlit.objectives.base import Objective, Optimization
from narrlit.objectives.frozen_heads import MLPHead, Projection
from narrlit.objectives.multi_view import MultiView
from narrlit.objectives.multiple_negatives_ranking import MultipleNegativesRanking
from narrlit.objectives.passage_matching import PassageMatching
from narrlit.objectives.self_distillation import Distillation, SelfDistillation
from narrlit.objectives.triplet_margin import Triplet

__all__ = [
    "AspectBiLSTM",
    "Aspects",
    "Distillation",
    "MLPHead",
    "MultiView",
    "MultipleNegativesRanking",
    "Objective",
    "Optimization",
    "PassageMatching",
    "Projection",
    "SelfDistillation",
    "Triplet",
]
