"""The losses of views: by hand, and their gradients."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from narrlit.losses.contrastive import alignment_loss, info_nce, view_contrast


def vectors(seed, n=5, unit=True):
    drawn = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return normalize(drawn, dim=-1) if unit else drawn


@pytest.mark.parametrize("temperature", [0.07, 1.0])
def test_a_contrast_is_its_formula(temperature):
    a, p, n = vectors(0), vectors(1), vectors(2)
    expected = 0.0
    for x, y, z in zip(a.tolist(), p.tolist(), n.tolist(), strict=True):
        near = math.exp(sum(i * j for i, j in zip(x, y, strict=True)) / temperature)
        far = math.exp(sum(i * j for i, j in zip(x, z, strict=True)) / temperature)
        expected -= math.log(near / (near + far)) / len(a)

    assert view_contrast(a, p, n, temperature).item() == pytest.approx(expected)

    cosines = torch.stack([(a * p).sum(-1), (a * n).sum(-1)], dim=1)
    assert view_contrast(a, p, n, temperature).item() == pytest.approx(
        info_nce(cosines, torch.zeros(5, dtype=torch.long), temperature=temperature).item()
    )


def test_alignment_is_its_formula_whatever_the_lengths():
    x = vectors(0, unit=False)
    y = vectors(1, unit=False)
    expected = 0.0
    for one, other in zip(x.tolist(), y.tolist(), strict=True):
        first = math.sqrt(sum(i * i for i in one))
        second = math.sqrt(sum(i * i for i in other))
        expected += sum((i / first - j / second) ** 2 for i, j in zip(one, other, strict=True)) / len(x)

    assert alignment_loss(x, y).item() == pytest.approx(expected)
    assert alignment_loss(3 * x, 0.1 * y).item() == pytest.approx(expected)
    assert alignment_loss(x, 2 * x).item() == pytest.approx(0)
    assert alignment_loss(x, -x).item() == pytest.approx(4)


def test_gradients_are_those_of_the_values():
    inputs = [vectors(seed).requires_grad_() for seed in range(3)]
    assert torch.autograd.gradcheck(lambda a, p, n: view_contrast(a, p, n, 0.3), inputs)
    assert torch.autograd.gradcheck(alignment_loss, inputs[:2])
