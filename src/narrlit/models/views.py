"""Views of stories as vectors: a head for each view, and the fusion of a story's vectors into one."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from narrlit.models.fusion import PARTS, Fusion


class ViewHead(nn.Module):
    """Two linear layers with ReLU between them, then unit length."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dimension, hidden)
        self.outer = nn.Linear(hidden, dimension)

    def forward(self, vectors: Tensor) -> Tensor:
        """Unit vectors (..., D) of vectors (..., D)."""
        return F.normalize(self.outer(torch.relu(self.inner(vectors))), dim=-1)


class ViewHeads(nn.Module):
    """A head for each of theme, plot and outcome.

    Source: ttda704, appendix A.4: 768 -> 512 -> 768 each.
    """

    def __init__(self, dimension: int, hidden: int = 512) -> None:
        """Args: D; numbers between a head's two layers."""
        super().__init__()
        self.heads = nn.ModuleDict({view: ViewHead(dimension, hidden) for view in PARTS[1:]})

    def forward(self, vectors: Tensor) -> Tensor:
        """Each view's vectors by its own head.

        Args:
            vectors: (U, 3, D), theme, plot and outcome of each story; or (U, 1, D), one vector for all three heads.

        Returns:
            (U, 3, D) unit vectors.
        """
        columns = vectors.expand(-1, len(self.heads), -1).unbind(1)
        return torch.stack([head(column) for head, column in zip(self.heads.values(), columns, strict=True)], dim=1)


def fuse(vectors: Tensor, fusion: Fusion) -> Tensor:
    """The weighted sum of a story's vectors, brought to length 1.

    Source: ttda704, appendix A.4.

    Args:
        vectors: (U, 4, D) unit vectors, in the order of PARTS.
        fusion: weights.

    Returns:
        (U, D) unit vectors.

    >>> vectors = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
    >>> fuse(vectors, Fusion(0.6, 0.2, 0.4, 0.2))
    tensor([[0.6000, 0.8000]])
    """
    weights = torch.tensor(fusion.weights, dtype=vectors.dtype, device=vectors.device)
    return F.normalize(torch.einsum("upd,p->ud", vectors, weights), dim=-1)
