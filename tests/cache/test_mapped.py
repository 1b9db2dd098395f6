"""Rows of memory-mapped shards are the vectors that were stored."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.errors import ModelError
from narrlit.stores.mapped import MappedVectors
from narrlit.stores.vectors import VectorStore, content_keys

KEYS = content_keys({"model": "m"}, [str(i) for i in range(40)])
GIVEN = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))


def store_of(folder, bounds, dtype="float32"):
    """Three shards, of which none begins where the last one ends."""
    store = VectorStore(folder, dtype)
    for start, end in bounds:
        store.add(KEYS[start:end], GIVEN[start:end])
    return store


@pytest.mark.parametrize("bounds", [[(0, 40)], [(25, 40), (0, 10), (10, 25)]])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_are_the_stored_vectors_in_the_order_asked_for(tmp_path, bounds, dtype):
    store = store_of(tmp_path, bounds, dtype)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1)).tolist()
    mapped = store.mapped([KEYS[i] for i in order])
    assert (len(mapped), mapped.dimension) == (40, 6)
    places = np.array([7, 0, 39, 7, 22])
    found = mapped[places]
    assert found.dtype == torch.float32
    expected = torch.stack([GIVEN[order[place]].to(getattr(torch, dtype)) for place in places]).float()
    assert torch.equal(found, expected)
    assert torch.equal(found, store.vectors([KEYS[order[place]] for place in places]).float())
    assert mapped[np.array([], dtype=np.int64)].shape == (0, 6)


@settings(deadline=None)
@given(st.data())
def test_any_places_over_any_shards_equal_a_plain_loop(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    shards = [torch.randn(size, 3) for size in sizes]
    pairs = data.draw(
        st.lists(
            st.integers(0, len(sizes) - 1).flatmap(
                lambda shard: st.tuples(st.just(shard), st.integers(0, sizes[shard] - 1))
            ),
            min_size=1,
            max_size=9,
        )
    )
    places = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=12))
    mapped = MappedVectors(shards, *np.array(pairs, dtype=np.int64).T)
    found = mapped[np.array(places, dtype=np.int64)]
    assert found.tolist() == [shards[pairs[place][0]][pairs[place][1]].tolist() for place in places]


def test_what_is_read_does_not_change_the_store(tmp_path):
    store = store_of(tmp_path, [(0, 40)])
    store.mapped(KEYS)[np.arange(40)].zero_()
    assert torch.equal(VectorStore(tmp_path).vectors(KEYS), GIVEN)


def test_a_vector_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ModelError, match="3 of 4 vectors are missing"):
        store_of(tmp_path, [(0, 10)]).mapped(KEYS[9:13])


def test_shards_that_others_have_merged_are_read_on_and_found_anew(tmp_path):
    store = store_of(tmp_path, [(0, 10), (10, 40)])
    mapped, old = store.mapped(KEYS), sorted(tmp_path.iterdir())
    VectorStore(tmp_path).add(KEYS[::-1], GIVEN.flip(0))
    store.refresh()  # has seen the merged shard while the old ones were there
    for path in old:
        path.unlink()
    assert torch.equal(mapped[np.arange(40)], GIVEN)
    assert torch.equal(store.mapped(KEYS)[np.arange(40)], GIVEN)
    assert torch.equal(store.vectors(KEYS), GIVEN)
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(ModelError, match="40 of 40 vectors are missing"):
        store.vectors(KEYS)
