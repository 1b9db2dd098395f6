"""Which training examples a frozen encoder finds hard.

Letters of the shapes: N examples, H hard ones.
"""

from typing import NamedTuple

from torch import Tensor


class HardExamples(NamedTuple):
    """What was found."""

    rows: Tensor
    """(H,) int64, the hard examples, hardest-won first: those that were nearly right."""
    wrong: int
    """How many examples are ranked wrongly."""


def hard_examples(near: Tensor, far: Tensor, share: float) -> HardExamples:
    """Examples that are ranked wrongly, of these the closest calls, up to a share of all.

    Source: Comhis, section 4.3: incorrectly ranked by the base embeddings, among these small margins.

    Args:
        near: (N,) cosine of each anchor with its positive.
        far: (N,) cosine of each anchor with its negative. A tie is wrong.
        share: of all N, 0 to 1, rounded down.

    >>> import torch
    >>> hard_examples(torch.tensor([0.9, 0.5, 0.2, 0.4]), torch.tensor([0.1, 0.6, 0.8, 0.4]), share=0.5)
    HardExamples(rows=tensor([3, 1]), wrong=3)
    """
    margins = near - far
    wrong = (margins <= 0).nonzero().squeeze(1)
    closest = wrong[margins[wrong].argsort(descending=True, stable=True)]
    return HardExamples(closest[: int(share * len(margins))], len(wrong))
