import math

import pytest
import torch
from contrastive_by_hand import GRID, KINDS, D, by_hand, cosines_by_hand, masks, places, vectors

from narrlit.losses.contrastive import ranking_loss
from narrlit.losses.masks import duplicates_mask


@pytest.mark.parametrize("scale", [0.5, 20.0])
@GRID
def test_ranking_loss_matches_plain_loops(b, spare, k, kind, scale):
    anchors = vectors(b, seed=0)
    positives = vectors(b + spare, seed=1)
    negatives = vectors(k, seed=2)
    target = places(b, b + spare)
    keep = masks(kind, b, b + spare + k)
    shared = negatives.expand(b, k, D)
    expected = by_hand(cosines_by_hand(anchors, positives, shared), target, keep, 1 / scale)

    loss = ranking_loss(anchors, positives, target, negatives, keep, scale)

    assert loss.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scale", [0.5, 20.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("b", [1, 2, 5])
def test_ranking_loss_works_without_negatives(b, spare, kind, scale):
    anchors = vectors(b, seed=0)
    positives = vectors(b + spare, seed=1)
    target = places(b, b + spare)
    keep = masks(kind, b, b + spare)
    expected = by_hand(cosines_by_hand(anchors, positives, vectors(b, 0, seed=2)), target, keep, 1 / scale)

    loss = ranking_loss(anchors, positives, target, None, keep, scale)

    assert loss.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("b", [1, 2, 5])
def test_with_reduction_sum_it_is_equation_1_of_nlp_fsdm(b):
    """L = - sum_i log(exp(sim(a_i, p_i) tau) / sum_j exp(sim(a_i, p_j) tau)), in plain loops."""
    anchors = vectors(b, seed=0)
    positives = vectors(b, seed=1)
    tau = 3.0
    expected = 0.0
    for i in range(b):
        exponentials = [math.exp(float(anchors[i] @ positives[j]) * tau) for j in range(b)]
        expected -= math.log(exponentials[i] / sum(exponentials))

    total = ranking_loss(anchors, positives, torch.arange(b), scale=tau, reduction="sum")
    mean = ranking_loss(anchors, positives, torch.arange(b), scale=tau)

    assert total.item() == pytest.approx(expected, abs=1e-12)
    assert mean.item() == pytest.approx(expected / b, abs=1e-12)


@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
def test_ranking_loss_passes_gradcheck(kind):
    inputs = [vectors(n, seed=seed).requires_grad_() for seed, n in enumerate((4, 4, 3))]
    target = torch.tensor([2, 0, 3, 1])
    keep = masks(kind, 4, 7)
    assert torch.autograd.gradcheck(lambda a, p, n: ranking_loss(a, p, target, n, keep, 3.0), inputs)


def test_a_story_is_never_its_own_negative():
    # Rows 0 and 2 have one positive between them: neither may see the other's copy, and both keep their own.
    positives = vectors(3, seed=1)
    positives[2] = positives[0]
    anchors = vectors(3, seed=0)
    target = torch.arange(3)
    keep = duplicates_mask(torch.tensor([10, 11, 10]), torch.tensor([0, 1, 2]), torch.tensor([10, 11, 10]))
    by_mask = torch.tensor([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    expected = by_hand(cosines_by_hand(anchors, positives, vectors(3, 0, seed=2)), target, by_mask, 1 / 20)

    assert ranking_loss(anchors, positives, target, keep=keep).item() == pytest.approx(expected)


def test_the_default_scale_is_20():
    anchors, positives, target = vectors(3, seed=0), vectors(3, seed=1), torch.arange(3)
    assert ranking_loss(anchors, positives, target) == ranking_loss(anchors, positives, target, scale=20.0)
