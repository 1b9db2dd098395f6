"""Alignment of two embeddings of one story. Letters of shapes: B stories, D dimension."""

from torch import Tensor
from torch.nn import functional as F


def alignment_loss(first: Tensor, second: Tensor) -> Tensor:
    """Mean of `|| x/|x| - y/|y| ||^2`: twice the cosine distance, from 0 to 4.

    Source: ttda704, Eq. 2, without its weight lambda.

    Args:
        first: (B, D) vectors, B >= 1.
        second: (B, D), likewise.

    Returns:
        () mean over the rows.

    >>> import torch
    >>> alignment_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 3.0]]))
    tensor(2.)
    """
    return (F.normalize(first, dim=-1) - F.normalize(second, dim=-1)).square().sum(-1).mean()
