"""Matryoshka representation learning: a loss is added up over prefixes of the embeddings, so that each can be used."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F


def unit_prefixes(vectors: Tensor, dimensions: Sequence[int]) -> list[Tensor]:
    """Truncate vectors to each number of dimensions, and scale the results to length 1.

    The Matryoshka loss of a loss L is the sum of L over these results, each with weight 1.

    Source: Kusupati et al., Matryoshka Representation Learning (2022), Eq. 1; sentence-transformers' `MatryoshkaLoss`,
    which also normalizes every prefix.

    Args:
        vectors: (..., D) vectors.
        dimensions: sizes d of the prefixes, from 1 to D.

    Returns:
        For each size, unit vectors (..., d) of the first d dimensions.

    Raises:
        ValueError: if a size is not from 1 to D.

    >>> import torch
    >>> unit_prefixes(torch.tensor([[0.6, 0.8, 0.0]]), [3, 1])
    [tensor([[0.6000, 0.8000, 0.0000]]), tensor([[1.]])]
    """
    size = vectors.shape[-1]
    prefixes = []
    for dimension in dimensions:
        if not 1 <= dimension <= size:
            raise ValueError(f"vectors of {size} dimensions have no prefix of {dimension}")
        prefixes.append(F.normalize(vectors[..., :dimension], dim=-1))
    return prefixes
