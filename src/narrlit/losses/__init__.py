"""Losses as pure functions on tensors, independent of the rest of narrlit.

Letters in shapes: B anchors (or triples), C positives, K negatives per anchor, M = C + K candidates per anchor, D
dimension of an embedding.
"""

from narrlit.losses.batch_hard import BatchHard, batch_hard, subspace_sizes, subspaces
from narrlit.losses.contrastive import alignment_loss, candidate_cosines, info_nce, ranking_loss, view_contrast
from narrlit.losses.distillation import distillation_loss, linear_weight
from narrlit.losses.masks import duplicates_mask, teacher_mask
from narrlit.losses.matching import passage_scores
from narrlit.losses.matryoshka import unit_prefixes
from narrlit.losses.triplet import adaptive_margin, distances, triplet_loss

__all__ = [
    "BatchHard",
    "adaptive_margin",
    "alignment_loss",
    "batch_hard",
    "candidate_cosines",
    "distances",
    "distillation_loss",
    "duplicates_mask",
    "info_nce",
    "linear_weight",
    "passage_scores",
    "ranking_loss",
    "subspace_sizes",
    "subspaces",
    "teacher_mask",
    "triplet_loss",
    "unit_prefixes",
    "view_contrast",
]
