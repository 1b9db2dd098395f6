"""Plain loops that the contrastive losses are held to, and what they are tried on."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

D = 6


def vectors(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(*shape, D, generator=generator, dtype=torch.float64), dim=-1)


def places(b, c):
    """A column of its own for each anchor, not in order."""
    return torch.randperm(c, generator=torch.Generator().manual_seed(5))[:b]


def masks(kind, b, n):
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
    a = anchors.numpy()
    p = positives.numpy()
    n = negatives.numpy()
    rows = [[float(np.dot(a[i], x)) for x in [*p, *n[i]]] for i in range(len(a))]
    return np.array(rows).reshape(len(a), len(p) + n.shape[1])


GRID = pytest.mark.parametrize(
    ("b", "spare", "k", "kind"), list(itertools.product([1, 2, 5], [0, 2], [0, 1, 3], ["none", "random", "all masked"]))
)
