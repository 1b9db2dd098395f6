import math

import pytest
import torch
from random_vectors import unit_vectors

from narrlit.losses.triplet import adaptive_margin, distances, triplet_loss

METRICS = ("cosine", "euclidean", "squared_euclidean")


def vectors(n, seed):
    return unit_vectors(n, 4, seed=seed)


def distance_by_hand(x, y, metric):
    if metric == "cosine":
        return 1 - sum(p * q for p, q in zip(x, y, strict=True))
    squares = sum((p - q) ** 2 for p, q in zip(x, y, strict=True))
    return squares if metric == "squared_euclidean" else math.sqrt(squares)


def triplet_loss_by_hand(positive, negative, margins):
    """Mean of max(0, d(anchor, positive) - d(anchor, negative) + margin) over the rows."""
    costs = []
    for near, far, margin in zip(positive.tolist(), negative.tolist(), margins, strict=True):
        costs.append(max(0.0, near - far + margin))
    return sum(costs) / len(costs)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("b", [1, 5])
def test_distances_match_their_formulas(metric, b):
    x, y = vectors(b, 0), vectors(b, 1)
    expected = [distance_by_hand(p, q, metric) for p, q in zip(x.tolist(), y.tolist(), strict=True)]
    assert distances(x, y, metric).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_distances_pass_gradcheck(metric):
    inputs = (vectors(3, 0).requires_grad_(), vectors(3, 1).requires_grad_())
    assert torch.autograd.gradcheck(lambda x, y: distances(x, y, metric), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("gap", [0.0, 1e-30, 1e-8])
def test_gradients_are_finite_where_vectors_are_equal(metric, gap, dtype):
    x = vectors(2, 0).to(dtype)
    x[0] = 0
    y = x.clone()
    y[:, 0] += gap
    x, y = x.requires_grad_(), y.requires_grad_()
    d = distances(x, y, metric)
    d.sum().backward()

    assert all(tensor.isfinite().all() for tensor in (d, x.grad, y.grad))
    assert metric != "euclidean" or x.grad.norm(dim=-1).max() < 1.001


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("b", [1, 5])
def test_triplet_loss_matches_plain_loops(margin, b):
    positive = vectors(b, 2)[:, 0].abs()
    negative = vectors(b, 3)[:, 0].abs()
    expected = triplet_loss_by_hand(positive, negative, [margin] * b)

    assert triplet_loss(positive, negative, margin).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("b", [1, 5])
def test_triplet_loss_accepts_one_margin_per_triple(margin, b):
    positive = vectors(b, 2)[:, 0].abs()
    negative = vectors(b, 3)[:, 0].abs()
    margins = torch.linspace(0, margin, b, dtype=torch.float64)
    expected = triplet_loss_by_hand(positive, negative, margins.tolist())

    assert triplet_loss(positive, negative, margins).item() == pytest.approx(expected, abs=1e-12)


def test_triplet_loss_has_sign_margin_and_gradient():
    near = torch.tensor([0.2], requires_grad=True)
    far = torch.tensor([0.9], requires_grad=True)
    assert triplet_loss(near, far, 0.3).item() == 0
    assert triplet_loss(near, far, 1.0).item() == pytest.approx(0.3)

    loss = triplet_loss(far, near, 0.3)
    assert loss.item() == pytest.approx(1.0)

    loss.backward()
    assert far.grad.item() == 1.0
    assert near.grad.item() == -1.0


def test_distances_and_loss_together_pass_gradcheck():
    inputs = tuple(vectors(4, seed).requires_grad_() for seed in range(3))

    def loss(anchor, positive, negative):
        near = distances(anchor, positive, "squared_euclidean")
        far = distances(anchor, negative, "squared_euclidean")
        return triplet_loss(near, far, adaptive_margin(near, far, base=0.7, maximum=1.9))

    assert loss(*inputs).item() > 0
    assert torch.autograd.gradcheck(loss, inputs)


@pytest.mark.parametrize(("base", "maximum"), [(0.3, 0.3), (0.3, 1.0), (0.0, 4.0)])
def test_adaptive_margin_matches_its_formula(base, maximum):
    gaps = [-3.0, -0.1, 0.0, 0.2, 0.7, 0.8, 5.0]
    d_positive = torch.full((len(gaps),), 0.5, dtype=torch.float64)
    d_negative = d_positive + torch.tensor(gaps, dtype=torch.float64)
    expected = [base + 0.5 * min(max(gap, 0.0), maximum - base) for gap in gaps]
    assert adaptive_margin(d_positive, d_negative, base, maximum).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("detach", "slope"), [(False, 0.5), (True, 1.0)])
def test_gradient_through_the_margin_halves_the_gradient(detach, slope):
    d_positive = torch.tensor([0.5], requires_grad=True)
    d_negative = torch.tensor([0.7], requires_grad=True)
    loss = triplet_loss(d_positive, d_negative, adaptive_margin(d_positive, d_negative, 0.5, 1.0, detach=detach))

    assert loss.item() == pytest.approx(0.4)

    loss.backward()
    assert d_positive.grad.item() == pytest.approx(slope)
    assert d_negative.grad.item() == pytest.approx(-slope)


def test_the_default_distance_is_cosine():
    x, y = vectors(3, 0), vectors(3, 1)
    assert torch.equal(distances(x, y), distances(x, y, "cosine"))


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_of_different_shapes_are_refused(metric):
    # Broadcasting would compare the one row with each of three.
    with pytest.raises(ValueError, match=r"the shapes are \(3, 4\) and \(1, 4\)"):
        distances(vectors(3, 0), vectors(1, 1), metric)


def test_an_unknown_distance_is_refused():
    with pytest.raises(ValueError, match=r"no distance named 'manhattan': cosine, euclidean, squared_euclidean"):
        distances(vectors(2, 0), vectors(2, 1), "manhattan")


def test_without_reduction_each_triple_has_its_loss():
    d_positive = torch.tensor([0.5, 0.25, 0.75])
    d_negative = torch.tensor([0.25, 1.0, 0.75])
    costs = triplet_loss(d_positive, d_negative, 0.5, reduction="none")

    assert costs.tolist() == [0.75, 0.0, 0.5]  # all exact in binary
    assert triplet_loss(d_positive, d_negative, 0.5).item() == pytest.approx(1.25 / 3)
