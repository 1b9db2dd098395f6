import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from narrlit.losses.contrastive import duplicates_mask, own_negatives_mask, ranking_loss

D = 6


def vectors(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, D, generator=generator, dtype=torch.float64), dim=-1)


def by_hand(anchors, positives, target, negatives, keep, scale):
    """The formula, term by term."""
    candidates = [*positives.numpy(), *([] if negatives is None else negatives.numpy())]
    total = 0.0
    for i, anchor in enumerate(anchors.numpy()):
        own = int(target[i])
        denominator = 0.0
        for c, candidate in enumerate(candidates):
            if c == own or keep is None or bool(keep[i, c]):
                denominator += math.exp(scale * float(np.dot(anchor, candidate)))
        total -= math.log(math.exp(scale * float(np.dot(anchor, candidates[own]))) / denominator)
    return total / len(anchors)


def masks(kind, b, n):
    if kind == "none":
        return None
    if kind == "random":
        return torch.rand(b, n, generator=torch.Generator().manual_seed(3)) < 0.5
    return torch.zeros(b, n, dtype=torch.bool)


@pytest.mark.parametrize("scale", [0.5, 20.0])
@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
@pytest.mark.parametrize("m", [0, 3])
@pytest.mark.parametrize("b", [1, 5])
@pytest.mark.parametrize("spare", [0, 2])
def test_ranking_loss_is_its_formula(b, m, kind, scale, spare):
    anchors, positives = vectors(b, 0), vectors(b + spare, 1)
    target = torch.randperm(b + spare, generator=torch.Generator().manual_seed(5))[:b]
    keep = masks(kind, b, b + spare + m)
    negatives = vectors(m, 2)
    expected = by_hand(anchors, positives, target, negatives, keep, scale)
    assert ranking_loss(anchors, positives, target, negatives, keep, scale).item() == pytest.approx(expected, abs=1e-12)
    if m == 0:
        assert ranking_loss(anchors, positives, target, None, keep, scale).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
def test_ranking_loss_has_the_gradient_of_its_value(kind):
    inputs = [vectors(n, seed).requires_grad_() for seed, n in enumerate((4, 4, 3))]
    target, keep = torch.tensor([2, 0, 3, 1]), masks(kind, 4, 7)
    assert torch.autograd.gradcheck(lambda a, p, n: ranking_loss(a, p, target, n, keep, 3.0), inputs)


def test_a_row_of_nothing_but_its_positive_costs_nothing_and_spoils_nothing():
    anchors, positives, negatives = (vectors(n, seed).requires_grad_() for seed, n in enumerate((2, 2, 3)))
    keep = torch.ones(2, 5, dtype=torch.bool)
    keep[0] = False
    target = torch.arange(2)
    loss = ranking_loss(anchors, positives, target, negatives, keep)
    loss.backward()
    alone = ranking_loss(anchors[1:], positives, target[1:], negatives)
    assert loss.item() == pytest.approx(alone.item() / 2)
    assert torch.equal(anchors.grad[0], torch.zeros(D, dtype=torch.float64))
    assert anchors.grad[1].norm() > 0
    assert all(x.grad.isfinite().all() for x in (anchors, positives, negatives))


def test_every_row_masked_leaves_a_graph():
    anchors, positives = (vectors(3, seed).requires_grad_() for seed in range(2))
    loss = ranking_loss(anchors, positives, torch.arange(3), keep=torch.zeros(3, 3, dtype=torch.bool))
    assert loss.item() == 0
    loss.backward()
    assert torch.equal(anchors.grad, torch.zeros_like(anchors))


def test_a_step_downhill_pulls_the_positive_and_pushes_the_negatives():
    anchors, positives, negatives = (vectors(n, seed).requires_grad_() for seed, n in enumerate((1, 1, 2)))
    ranking_loss(anchors, positives, torch.tensor([0]), negatives, scale=2.0).backward()
    assert (anchors.detach() * positives.grad).sum() < 0
    assert (anchors.detach() * negatives.grad).sum(dim=-1).gt(0).all()


def test_only_kept_candidates_matter():
    anchors, positives, negatives = vectors(2, 0), vectors(2, 1), vectors(2, 2)
    keep = torch.tensor([[True, True, False, True], [True, True, False, True]])
    target = torch.arange(2)
    masked = ranking_loss(anchors, positives, target, negatives, keep)
    assert masked.item() == pytest.approx(ranking_loss(anchors, positives, target, negatives[1:]).item())
    moved = torch.stack([vectors(1, 9)[0], negatives[1]])
    assert masked.item() == ranking_loss(anchors, positives, target, moved, keep).item()


def test_the_scale_multiplies():
    anchors = positives = torch.eye(2, dtype=torch.float64)
    for scale in (1.0, 5.0, 20.0):
        loss = ranking_loss(anchors, positives, torch.arange(2), scale=scale).item()
        assert loss == pytest.approx(math.log1p(math.exp(-scale)), rel=1e-6, abs=1e-15)


def test_equal_candidates_share_the_probability():
    anchor = vectors(1, 0)
    assert ranking_loss(anchor, anchor, torch.tensor([0]), anchor.repeat(3, 1)).item() == pytest.approx(math.log(4))


def test_mixed_precision_does_not_round_the_cosines():
    anchors, positives = vectors(8, 0).float(), vectors(8, 1).float()
    plain = ranking_loss(anchors, positives, torch.arange(8))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = ranking_loss(anchors, positives, torch.arange(8))
    assert mixed.dtype == torch.float32
    assert torch.equal(plain, mixed)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (2, 3)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"keep has shape .* \(2, 2\)"):
        ranking_loss(vectors(2, 0), vectors(2, 1), torch.arange(2), keep=torch.ones(shape, dtype=torch.bool))


def test_duplicates_mask_by_hand():
    stories = torch.tensor([10, 11, 10, 0, 4, -1, 2])
    anchors, positives = torch.tensor([0, 1, 2]), torch.tensor([10, 11, 10])
    mask = duplicates_mask(stories, anchors, positives)
    for i in range(3):
        for c, story in enumerate(stories.tolist()):
            assert mask[i, c].item() == (story not in (-1, anchors[i].item(), positives[i].item()))


def test_the_very_same_story_never_counts_against_itself():
    # Rows 0 and 2 have one positive between them: neither may see the other's copy, and both keep their own.
    positives = vectors(3, 1)
    positives[2] = positives[0]
    anchors, target = vectors(3, 0), torch.arange(3)
    keep = duplicates_mask(torch.tensor([10, 11, 10]), torch.tensor([0, 1, 2]), torch.tensor([10, 11, 10]))
    expected = by_hand(anchors, positives, target, None, torch.tensor([[1, 1, 0], [1, 1, 1], [0, 1, 1]]), 20.0)
    assert ranking_loss(anchors, positives, target, keep=keep).item() == pytest.approx(expected)


def test_own_negatives_mask_by_hand():
    owners, rows = torch.tensor([4, 3, 4, -1]), torch.tensor([3, 4])
    expected = [[True, True, True, False, True, False, False], [True, True, True, True, False, True, False]]
    assert own_negatives_mask(owners, rows, positives=3).tolist() == expected
    assert own_negatives_mask(owners[:0], rows, positives=3).tolist() == [[True] * 3] * 2
