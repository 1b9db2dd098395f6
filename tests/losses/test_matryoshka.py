"""Prefixes of vectors: their values by hand, and their gradients."""

import math

import pytest
import torch
from random_vectors import normal_vectors

from narrlit.losses.matryoshka import unit_prefixes


def test_prefixes_are_the_first_dimensions_divided_by_their_length():
    vectors = normal_vectors(3, 5, seed=0)
    prefixes = unit_prefixes(vectors, [5, 2])

    assert [tuple(prefix.shape) for prefix in prefixes] == [(3, 5), (3, 2)]
    for row, values in enumerate(vectors.tolist()):
        for prefix, dimension in zip(prefixes, (5, 2), strict=True):
            length = math.sqrt(sum(value**2 for value in values[:dimension]))
            expected = [value / length for value in values[:dimension]]
            assert prefix[row].tolist() == pytest.approx(expected)


def test_prefixes_of_rows_of_vectors_are_those_of_each_vector():
    vectors = normal_vectors(2, 3, 4, seed=3)
    (prefixes,) = unit_prefixes(vectors, [2])

    assert prefixes.shape == (2, 3, 2)
    for row, own in zip(vectors, prefixes, strict=True):
        torch.testing.assert_close(own, unit_prefixes(row, [2])[0])


def test_gradients_match_differences():
    vectors = normal_vectors(2, 3, 4, seed=1).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(unit_prefixes(x, [4, 3, 1])), vectors)


def test_a_prefix_has_no_gradient_beyond_it():
    vectors = normal_vectors(3, 5, seed=2).requires_grad_()
    unit_prefixes(vectors, [2])[0][:, 0].sum().backward()

    assert (vectors.grad[:, :2] != 0).all()
    assert (vectors.grad[:, 2:] == 0).all()


@pytest.mark.parametrize("dimension", [0, 6])
def test_a_prefix_that_vectors_do_not_have_is_refused(dimension):
    with pytest.raises(ValueError, match=f"vectors of 5 dimensions have no prefix of {dimension}"):
        unit_prefixes(torch.ones(2, 5), [5, dimension])
