"""Random vectors in float64, the same for the same seed."""

import torch
from torch.nn.functional import normalize


def normal_vectors(*shape, seed):
    """Vectors of any length; the last number of the shape is their dimension."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit_vectors(*shape, seed):
    """Vectors of length 1; the last number of the shape is their dimension."""
    return normalize(normal_vectors(*shape, seed=seed), dim=-1)
