"""The losses of views: by hand, and their gradients."""

import math
import re

import pytest
import torch
from random_vectors import normal_vectors, unit_vectors

from narrlit.losses.contrastive import alignment_loss, info_nce, view_contrast


def vectors(seed):
    return unit_vectors(5, 4, seed=seed)


def dot(x, y):
    return sum(i * j for i, j in zip(x, y, strict=True))


def squared_distance_of_directions(x, y):
    """Squared distance of the two vectors divided by their lengths."""
    length_x = math.sqrt(dot(x, x))
    length_y = math.sqrt(dot(y, y))
    return sum((i / length_x - j / length_y) ** 2 for i, j in zip(x, y, strict=True))


@pytest.mark.parametrize("temperature", [0.07, 1.0])
def test_view_contrast_matches_plain_loops(temperature):
    anchors = vectors(0)
    positives = vectors(1)
    negatives = vectors(2)
    expected = 0.0
    for anchor, positive, negative in zip(anchors.tolist(), positives.tolist(), negatives.tolist(), strict=True):
        near = math.exp(dot(anchor, positive) / temperature)
        far = math.exp(dot(anchor, negative) / temperature)
        expected -= math.log(near / (near + far)) / len(anchors)

    loss = view_contrast(anchors, positives, negatives, temperature)

    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [0.07, 1.0])
def test_view_contrast_is_info_nce_over_two_candidates(temperature):
    anchors = vectors(0)
    positives = vectors(1)
    negatives = vectors(2)
    cosines = torch.stack([(anchors * positives).sum(-1), (anchors * negatives).sum(-1)], dim=1)
    expected = info_nce(cosines, torch.zeros(5, dtype=torch.long), temperature=temperature)

    loss = view_contrast(anchors, positives, negatives, temperature)

    assert loss.item() == pytest.approx(expected.item())


def test_alignment_matches_its_formula_for_vectors_of_any_length():
    x = normal_vectors(5, 4, seed=0)
    y = normal_vectors(5, 4, seed=1)
    distances = [squared_distance_of_directions(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    expected = sum(distances) / len(x)

    assert alignment_loss(x, y).item() == pytest.approx(expected)
    assert alignment_loss(3 * x, 0.1 * y).item() == pytest.approx(expected)
    assert alignment_loss(x, 2 * x).item() == pytest.approx(0)
    assert alignment_loss(x, -x).item() == pytest.approx(4)


def test_view_losses_pass_gradcheck():
    inputs = [unit_vectors(5, 4, seed=seed).requires_grad_() for seed in range(3)]
    assert torch.autograd.gradcheck(lambda a, p, n: view_contrast(a, p, n, 0.3), inputs)
    assert torch.autograd.gradcheck(alignment_loss, inputs[:2])


def test_the_default_temperature_of_view_contrast_is_0_07():
    a, p, n = vectors(0), vectors(1), vectors(2)
    assert view_contrast(a, p, n) == view_contrast(a, p, n, temperature=0.07)


@pytest.mark.parametrize("rows", [(1, 5, 5), (5, 1, 5), (5, 5, 1)])
def test_views_of_different_shapes_are_refused(rows):
    # Broadcasting would contrast every row with the same one.
    shapes = ", ".join(f"({n}, 4)" for n in rows)
    with pytest.raises(ValueError, match=re.escape(f"compared row by row, but the shapes are {shapes}") + "$"):
        view_contrast(*(unit_vectors(n, 4, seed=seed) for seed, n in enumerate(rows)))
