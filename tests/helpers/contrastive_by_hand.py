"""Plain loops that the contrastive losses are held to, and what they are tried on."""

import itertools
import math

import numpy as np
import pytest
import torch
from random_vectors import unit_vectors

D = 6
"""Dimension of the vectors."""


def vectors(*shape, seed):
    """Unit vectors (*shape, D)."""
    return unit_vectors(*shape, D, seed=seed)


def places(b, c):
    """A column of its own for each anchor, not in order."""
    return torch.randperm(c, generator=torch.Generator().manual_seed(5))[:b]


def masks(kind, b, n):
    """A mask (b, n) of the candidates that count: none, a random one, or one that leaves out every candidate."""
    if kind == "none":
        return None
    if kind == "random":
        return torch.rand(b, n, generator=torch.Generator().manual_seed(3)) < 0.5
    return torch.zeros(b, n, dtype=torch.bool)


def by_hand(similarities, target, keep, temperature):
    """The formula, term by term."""
    total = 0.0
    for i, row in enumerate(np.asarray(similarities)):
        own = int(target[i])
        denominator = 0.0
        for c, value in enumerate(row):
            if c == own or keep is None or bool(keep[i, c]):
                denominator += math.exp(float(value) / temperature)
        total -= math.log(math.exp(float(row[own]) / temperature) / denominator)
    return total / len(similarities)


def cosines_by_hand(anchors, positives, negatives):
    """Cosines (b, c + k) of each anchor with all positives (c, D) and with its own negatives (b, k, D)."""
    rows = []
    for anchor, own in zip(anchors.numpy(), negatives.numpy(), strict=True):
        rows.append([float(np.dot(anchor, candidate)) for candidate in [*positives.numpy(), *own]])
    return np.array(rows).reshape(len(anchors), len(positives) + negatives.shape[1])


KINDS = ["none", "random", "all masked"]
GRID = pytest.mark.parametrize(
    ("b", "spare", "k", "kind"), list(itertools.product([1, 2, 5], [0, 2], [0, 1, 3], KINDS))
)
"""Numbers of anchors, of positives beyond theirs, of negatives of each, and kinds of masks."""
