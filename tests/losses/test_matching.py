"""The differentiable score of passages: against the measure's own score, plain loops and finite differences."""

import numpy as np
import pytest
import torch
from contrastive_by_hand import vectors

from narrlit.losses.matching import passage_scores
from narrlit.measures.matching import Matching, match_score

SIZES = ([3, 1, 4, 2], [2, 5, 1])


def present(sizes):
    """Mark the passages of stories with these numbers of passages."""
    return torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]


@pytest.mark.parametrize("spread", [0.1, 0.4, float("inf")])
def test_the_score_is_that_of_the_measure(spread):
    first, second = vectors(4, 4, seed=0), vectors(3, 5, seed=1)
    scores = passage_scores(first, second, present(SIZES[0]), present(SIZES[1]), spread)
    expected = [
        [
            match_score(one[:size].numpy(), other[:length].numpy(), Matching(spread, support=0))
            for other, length in zip(second, SIZES[1], strict=True)
        ]
        for one, size in zip(first, SIZES[0], strict=True)
    ]

    assert scores.dtype == torch.float64
    # The measure computes positions in float32.
    np.testing.assert_allclose(scores.numpy(), expected, rtol=0, atol=1e-6)


def test_a_sharp_softmax_is_the_best_match_and_a_flat_one_the_mean():
    first, second = vectors(4, 4, seed=0), vectors(3, 5, seed=1)
    masks = present(SIZES[0]), present(SIZES[1])
    best = passage_scores(first, second, *masks)
    torch.testing.assert_close(passage_scores(first, second, *masks, sharpness=1e5), best, rtol=0, atol=1e-4)

    flat = passage_scores(first, second, *masks, spread=float("inf"), sharpness=1e-9)
    for row, size in enumerate(SIZES[0]):
        for column, length in enumerate(SIZES[1]):
            weights = (first[row, :size] @ second[column, :length].T).clamp(min=0)
            assert flat[row, column].item() == pytest.approx(weights.mean().item(), abs=1e-6)


@pytest.mark.parametrize("sharpness", [None, 10.0])
def test_it_passes_gradcheck(sharpness):
    # Entries of one sign keep the cosines away from 0, where the score has a kink.
    first, second = vectors(2, 3, seed=0).abs().requires_grad_(), vectors(2, 2, seed=1).abs().requires_grad_()
    masks = present([3, 2]), present([1, 2])
    assert torch.autograd.gradcheck(lambda a, b: passage_scores(a, b, *masks, 0.4, sharpness), (first, second))


@pytest.mark.parametrize("sharpness", [None, 10.0])
def test_padding_changes_neither_scores_nor_gradients(sharpness):
    first, second = vectors(2, 3, seed=0), vectors(2, 2, seed=1)
    masks = present([3, 2]), present([1, 2])
    scores = passage_scores(first, second, *masks, 0.4, sharpness)
    spoilt = first.masked_fill(~masks[0][..., None], 1e6).requires_grad_()
    found = passage_scores(spoilt, second, *masks, 0.4, sharpness)
    found.sum().backward()

    torch.testing.assert_close(found, scores)
    assert torch.equal(spoilt.grad[1, 2], torch.zeros(spoilt.shape[-1], dtype=torch.float64))
    assert spoilt.grad[masks[0]].ne(0).any(1).all()


def test_the_score_is_symmetric():
    first, second = vectors(4, 4, seed=0), vectors(3, 5, seed=1)
    masks = present(SIZES[0]), present(SIZES[1])
    torch.testing.assert_close(passage_scores(first, second, *masks), passage_scores(second, first, *reversed(masks)).T)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32_also_under_autocast(dtype):
    first, second = vectors(2, 3, seed=0).to(dtype), vectors(2, 2, seed=1).to(dtype)
    masks = present([3, 2]), present([1, 2])
    exact = passage_scores(first.float(), second.float(), *masks)
    with torch.autocast("cpu", torch.bfloat16):
        found = passage_scores(first, second, *masks)

    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact)
