"""Views of stories as vectors: a head for each view, and the fusion of a story's vectors into one.

Letters of shapes: U stories, D dimension.
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from narrlit.models.described import Described
from narrlit.models.fusion import PARTS, Fusion

CONFIG = "views.json"


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
        # Float32 whatever the encoder computes in: half precision would round unit vectors' cosines to steps of 1/256.
        with torch.autocast(vectors.device.type, enabled=False):
            columns = vectors.to(self.dtype).expand(-1, len(self.heads), -1).unbind(1)
            return torch.stack([head(column) for head, column in zip(self.heads.values(), columns, strict=True)], dim=1)

    @property
    def dtype(self) -> torch.dtype:
        """Of the heads' weights."""
        return next(self.parameters()).dtype


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
    # A sum and no product of matrices: mixed precision would round that.
    return F.normalize((vectors * weights[:, None]).sum(1), dim=-1)


def headed(vectors: Tensor, heads: ViewHeads | None) -> Tensor:
    """An encoder's vectors (U, 4, D) of length 1, those of views by their heads where there are any; in float32."""
    vectors = F.normalize(vectors.float(), dim=-1)
    return vectors if heads is None else torch.cat([vectors[:, :1], heads(vectors[:, 1:]).float()], dim=1)


class ViewFuser(Described):
    """From an encoder's vectors of a story's text and views to the story's vector."""

    called = "fusion of views"
    files = (CONFIG, "views.safetensors")

    def __init__(self, dimension: int, fusion: Fusion, hidden: int | None = None) -> None:
        """Args: D; weights; numbers inside a view's head, None where views keep the encoder's vectors."""
        super().__init__()
        self.dimension = dimension
        self.fusion = fusion
        self.hidden = hidden
        self.heads = None if hidden is None else ViewHeads(dimension, hidden)

    @property
    def needed(self) -> list[int]:
        """Which of PARTS have a weight, by their places."""
        return [place for place, weight in enumerate(self.fusion.weights) if weight]

    def parts(self, vectors: Tensor) -> Tensor:
        """The unit vectors (U, 4, D) that are fused, of an encoder's vectors (U, 4, D)."""
        return headed(vectors, self.heads)

    def forward(self, vectors: Tensor) -> Tensor:
        """Unit vectors (U, D) of an encoder's vectors (U, 4, D), in the order of PARTS."""
        return fuse(self.parts(vectors), self.fusion)

    def description(self) -> dict[str, Any]:
        """Dimension, weights and the heads' size."""
        return {"dimension": self.dimension, "fusion": asdict(self.fusion), "hidden": self.hidden}

    @classmethod
    def build(cls, described: dict[str, Any]) -> "ViewFuser":
        """Of dimension, weights and the heads' size."""
        return cls(int(described["dimension"]), Fusion(**described["fusion"]), described["hidden"])
