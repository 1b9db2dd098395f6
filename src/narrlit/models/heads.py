"""Heads on frozen vectors: a square projection, a linear map or a multi-layer perceptron on those of whole stories.

Each gives unit vectors, and is plain layers alone, so that sentence-transformers has modules of its own for it. The
BiLSTM over sentences' vectors stands in a file of its own.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from narrlit.models.bilstm import BiLSTM, BiLSTMConfig

Kind = Literal["projection", "layers", "bilstm"]


class Projection(nn.Module):
    """e' = W e / |W e| with a square W, no bias; W begins as the identity plus noise.

    Source: Comhis, Eq. 1.
    """

    def __init__(self, dimension: int, noise: float = 0.0) -> None:
        """Args: D; noise, the length of the random part of We for a unit vector e, about."""
        super().__init__()
        self.map = nn.Linear(dimension, dimension, bias=False)
        with torch.no_grad():
            # Divided by the root, so that the same noise turns vectors alike in any dimension.
            self.map.weight.copy_(torch.eye(dimension) + noise * torch.randn(dimension, dimension) / dimension**0.5)

    @property
    def linears(self) -> list[nn.Linear]:
        """The linear maps, in the order in which they are applied."""
        return [self.map]

    def forward(self, vectors: Tensor) -> Tensor:
        """Unit vectors (U, D) of vectors (U, D)."""
        return F.normalize(self.map(vectors), dim=-1)


class Layers(nn.Module):
    """Linear layers with ReLU between them, then unit length; one layer alone is a linear head.

    Source: Mendel292, appendix B, item 2: 384 -> 256, and 384 -> 512 -> 512 -> 256.
    """

    def __init__(self, dimension: int, hidden: Sequence[int], output: int) -> None:
        """Args: D; the hidden layers' sizes, if any; the numbers of one vector that comes out."""
        super().__init__()
        sizes = [dimension, *hidden, output]
        self.linears = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))

    def forward(self, vectors: Tensor) -> Tensor:
        """Unit vectors (U, output) of vectors (U, D)."""
        for linear in self.linears[:-1]:
            vectors = torch.relu(linear(vectors))
        return F.normalize(self.linears[-1](vectors), dim=-1)


def build_head(kind: Kind, dimension: int, **settings: Any) -> Projection | Layers | BiLSTM:
    """The head of this kind for vectors of D numbers."""
    if kind == "bilstm":
        return BiLSTM(dimension, BiLSTMConfig(**settings))
    return Projection(dimension, **settings) if kind == "projection" else Layers(dimension, **settings)


def as_modules(head: Projection | Layers) -> list[nn.Module]:
    """The same head as modules of sentence-transformers: Dense layers, then Normalize."""
    from sentence_transformers.models import Dense, Normalize

    modules: list[nn.Module] = []
    for place, linear in enumerate(head.linears):
        last = place == len(head.linears) - 1
        dense = Dense(
            linear.in_features,
            linear.out_features,
            bias=linear.bias is not None,
            activation_function=nn.Identity() if last else nn.ReLU(),
        )
        dense.linear.load_state_dict(linear.state_dict())
        modules.append(dense)
    return [*modules, Normalize()]
