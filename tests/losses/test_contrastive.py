import math

import numpy as np
import pytest
import torch
from contrastive_by_hand import GRID, by_hand, cosines_by_hand, masks, places, vectors

from narrlit.losses.contrastive import candidate_cosines, info_nce, ranking_loss


@pytest.mark.parametrize("temperature", [0.05, 0.09, 1.0, 3.0])
@GRID
def test_info_nce_over_own_and_in_batch_negatives_matches_plain_loops(b, spare, k, kind, temperature):
    anchors = vectors(b, seed=0)
    positives = vectors(b + spare, seed=1)
    negatives = vectors(b, k, seed=2)
    target = places(b, b + spare)
    keep = masks(kind, b, b + spare + k)
    similarities = candidate_cosines(anchors, positives, negatives)
    loss = info_nce(similarities, target, keep, temperature)

    assert loss.shape == ()
    assert loss.dtype == torch.float64

    expected = by_hand(cosines_by_hand(anchors, positives, negatives), target, keep, temperature)
    assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("b", [1, 2, 5])
@pytest.mark.parametrize("c", [1, 4])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_candidate_cosines_are_dot_products(b, c, k):
    anchors = vectors(b, seed=0)
    positives = vectors(c, seed=1)
    negatives = vectors(b, k, seed=2)
    found = candidate_cosines(anchors, positives, negatives)

    assert found.shape == (b, c + k)
    np.testing.assert_allclose(found.numpy(), cosines_by_hand(anchors, positives, negatives), rtol=0, atol=1e-14)

    if k == 0:
        assert torch.equal(candidate_cosines(anchors, positives), found)
        assert torch.equal(candidate_cosines(anchors, positives, None), found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_cosines_are_not_rounded_below_float32(dtype):
    anchors = vectors(8, seed=0)
    positives = vectors(8, seed=1)
    negatives = vectors(8, 3, seed=2)
    inputs = [anchors.to(dtype), positives.to(dtype), negatives.to(dtype)]
    exact = candidate_cosines(*(rounded.double() for rounded in inputs))

    found = candidate_cosines(*inputs)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=5e-7)


@pytest.mark.parametrize("k", [0, 3])
def test_autocast_does_not_round_the_cosines(k):
    inputs = [x.float() for x in (vectors(8, seed=0), vectors(8, seed=1), vectors(8, k, seed=2))]
    plain = candidate_cosines(*inputs)
    loss = info_nce(plain, torch.arange(8))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = candidate_cosines(*inputs)
        assert torch.equal(info_nce(mixed, torch.arange(8)), loss)

    assert mixed.dtype == torch.float32
    assert torch.equal(plain, mixed)


@pytest.mark.parametrize("kind", ["none", "random", "all masked"])
@pytest.mark.parametrize("k", [0, 2])
def test_info_nce_passes_gradcheck(kind, k):
    inputs = [x.requires_grad_() for x in (vectors(3, seed=0), vectors(4, seed=1), vectors(3, k, seed=2))]
    target = torch.tensor([2, 0, 3])
    keep = masks(kind, 3, 4 + k)
    assert torch.autograd.gradcheck(lambda a, p, n: info_nce(candidate_cosines(a, p, n), target, keep, 0.5), inputs)


@pytest.mark.parametrize("rows", [[0], [0, 2], [0, 1, 2]])
def test_a_row_without_negatives_has_loss_0_and_gradient_0(rows):
    similarities = candidate_cosines(vectors(3, seed=0), vectors(3, seed=1), vectors(3, 2, seed=2)).requires_grad_()
    target = torch.tensor([1, 2, 0])
    keep = torch.ones(3, 5, dtype=torch.bool)
    keep[rows] = False
    loss = info_nce(similarities, target, keep)
    others = [i for i in range(3) if i not in rows]
    rest = info_nce(similarities[others], target[others]).item() * len(others) / 3 if others else 0.0  # mean over 3

    assert loss.grad_fn is not None
    assert loss.item() == pytest.approx(rest)

    loss.backward()
    assert torch.equal(similarities.grad[rows], torch.zeros(len(rows), 5, dtype=torch.float64))
    assert similarities.grad[others].ne(0).all()


@pytest.mark.parametrize("value", [0.0, 5.0, -1e30, 1e30, math.inf, -math.inf, math.nan])
def test_padding_does_not_change_info_nce(value):
    similarities = candidate_cosines(vectors(2, seed=0), vectors(2, seed=1), vectors(2, 3, seed=2))
    keep = torch.ones(2, 5, dtype=torch.bool)
    keep[0, 2] = keep[1, 4] = keep[1, 0] = False
    spoilt = similarities.masked_fill(~keep, value).requires_grad_()
    loss = info_nce(spoilt, torch.arange(2), keep)
    loss.backward()

    assert loss.item() == info_nce(similarities, torch.arange(2), keep).item()
    assert spoilt.grad.isfinite().all()
    assert torch.equal(spoilt.grad.ne(0), keep)


def test_similarities_are_divided_by_the_temperature_0_09_by_default():
    similarities = torch.eye(2, dtype=torch.float64)
    target = torch.arange(2)

    for temperature in (0.05, 0.09, 1.0):
        loss = info_nce(similarities, target, temperature=temperature).item()
        assert loss == pytest.approx(math.log1p(math.exp(-1 / temperature)), rel=1e-6, abs=1e-15)
    assert info_nce(similarities, target) == info_nce(similarities, target, temperature=0.09)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (2, 3), (2,)])
def test_a_mask_of_another_shape_is_refused(shape):
    keep = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"keep has shape .* \(2, 2\)"):
        ranking_loss(vectors(2, seed=0), vectors(2, seed=1), torch.arange(2), keep=keep)
    with pytest.raises(ValueError, match=r"keep has shape .* \(2, 2\)"):
        info_nce(torch.zeros(2, 2), torch.arange(2), keep)


@pytest.mark.parametrize(
    ("similarities", "target"),
    [((4,), (4,)), ((2, 2, 2), (2,)), ((2, 2), (1,)), ((2, 2), (2, 1))],
)
def test_similarities_and_targets_that_do_not_fit_are_refused(similarities, target):
    with pytest.raises(ValueError, match=r"similarities must be \(B, M\), target \(B,\)"):
        info_nce(torch.zeros(similarities), torch.zeros(target, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_info_nce_of_half_precision_is_computed_in_float32(dtype):
    similarities = candidate_cosines(vectors(4, seed=0), vectors(4, seed=1)).to(dtype)
    loss = info_nce(similarities, torch.arange(4))
    assert loss.dtype == torch.float32
    assert torch.equal(loss, info_nce(similarities.float(), torch.arange(4)))
