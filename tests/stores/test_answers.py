"""Answers of other programs: put in order, or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.errors import ModelError
from narrlit.stores.answers import check_vectors, in_order


@given(st.integers(1, 9).flatmap(lambda n: st.permutations(range(n))))
def test_any_order_of_the_entries_gives_the_order_of_the_index(order):
    answer = {"data": [{"index": i, "embedding": [float(i)]} for i in order]}
    assert in_order(answer, len(order), "it") == [[float(i)] for i in range(len(order))]


@given(st.lists(st.integers(-1, 5), min_size=1, max_size=5))
def test_only_indices_that_are_each_place_once_pass(indices):
    answer = {"data": [{"index": i, "embedding": [float(i)]} for i in indices]}
    if sorted(indices) == list(range(len(indices))):
        assert len(in_order(answer, len(indices), "it")) == len(indices)
    else:
        with pytest.raises(ModelError, match=r"^it answered vectors whose index"):
            in_order(answer, len(indices), "it")


@pytest.mark.parametrize("index", [None, "0", 0.0, False, [0]])
def test_what_is_no_whole_number_is_no_index(index):
    with pytest.raises(ModelError, match="index"):
        in_order({"data": [{"index": index, "embedding": [1.0]}]}, 1, "it")


def test_vectors_become_an_array_and_faults_are_numbered_from_the_first_text():
    found = check_vectors([[1, 2.5], [3, 4]], 2, "it")
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 2.5], [3, 4]]
    with pytest.raises(ModelError, match="vector 71 is no list"):
        check_vectors([[1.0], None], 2, "it", first=70)
    with pytest.raises(ModelError, match="it answered 1 vectors for 2 texts"):
        check_vectors([[1.0]], 2, "it")
