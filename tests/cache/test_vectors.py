"""Vectors by content: found again, never half-read, never mixed."""

import pytest
import torch
from safetensors.torch import save_file

from narrlit.errors import ModelError
from narrlit.stores.vectors import VectorStore, content_keys

SPACE = {"model": "m", "prompt": "", "length": 96}
TEXTS = ["a knight", "a diver", "", "ein Ritter \ud800"]


def vectors(n=4, d=6, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def test_what_goes_in_comes_out_whatever_the_order(tmp_path):
    store, keys, given = VectorStore(tmp_path / "v"), content_keys(SPACE, TEXTS), vectors()
    store.add(keys[:3], given[:3])
    store.add(keys[3:], given[3:])
    for found in (store, VectorStore(tmp_path / "v")):
        assert torch.equal(found.vectors([keys[3], keys[0], keys[3]]), given[[3, 0, 3]])
        assert len(found) == 4
        assert found.dimension == 6
    assert len(list((tmp_path / "v").iterdir())) == 2


def test_half_precision_halves_the_shard(tmp_path):
    keys, given = content_keys(SPACE, [str(i) for i in range(500)]), vectors(500, 64)
    sizes = {}
    for dtype in ("float32", "float16"):
        store = VectorStore(tmp_path / dtype, dtype)
        store.add(keys, given)
        assert torch.allclose(store.vectors(keys).float(), given, atol=0 if dtype == "float32" else 2e-3)
        sizes[dtype] = next((tmp_path / dtype).iterdir()).stat().st_size
    assert sizes["float16"] < 0.65 * sizes["float32"]


def test_a_key_changes_with_all_that_decides_a_vector():
    plain = content_keys(SPACE, ["a"])[0]
    others = [{**SPACE, "prompt": "p"}, {**SPACE, "length": 97}, {**SPACE, "more": None}]
    keys = {plain, content_keys(SPACE, ["b"])[0], *(content_keys(space, ["a"])[0] for space in others)}
    assert len(keys) == 5
    assert content_keys(dict(reversed(SPACE.items())), ["a"])[0] == plain


def test_missing_vectors_are_told_and_refused(tmp_path):
    store, keys = VectorStore(tmp_path), content_keys(SPACE, TEXTS)
    assert store.missing(keys) == [0, 1, 2, 3]
    store.add(keys[1:3], vectors(2))
    assert store.missing(keys) == [0, 3]
    with pytest.raises(ModelError, match="2 of 4 vectors are missing"):
        store.vectors(keys)


def test_what_another_process_adds_is_found(tmp_path):
    one, two, keys = VectorStore(tmp_path), VectorStore(tmp_path), content_keys(SPACE, TEXTS)
    one.add(keys[:2], vectors(2))
    assert two.missing(keys[:2]) == [0, 1]
    two.refresh()
    assert two.missing(keys) == [2, 3]
    two.add(keys[:2], vectors(2))  # the same shard once more
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_half_written_shards_are_not_read(tmp_path):
    store, keys = VectorStore(tmp_path), content_keys(SPACE, TEXTS)
    store.add(keys, vectors())
    whole = next(tmp_path.glob("*.safetensors"))
    (tmp_path / f".{whole.stem}-xy.safetensors").write_bytes(whole.read_bytes()[:99])
    assert len(VectorStore(tmp_path)) == 4


@pytest.mark.parametrize("damage", ["cut", "other", "rows"])
def test_a_broken_shard_is_named(tmp_path, damage):
    store, keys = VectorStore(tmp_path), content_keys(SPACE, TEXTS)
    store.add(keys, vectors())
    shard = next(tmp_path.glob("*.safetensors"))
    if damage == "cut":
        shard.write_bytes(shard.read_bytes()[:-40])
    elif damage == "other":
        save_file({"x": vectors()}, shard)
    else:
        save_file({"keys": torch.zeros(3, 32, dtype=torch.uint8), "vectors": vectors()}, shard)
    with pytest.raises(ModelError, match=shard.name):
        VectorStore(tmp_path)


def test_vectors_of_another_dimension_or_not_finite_are_refused(tmp_path):
    store, keys = VectorStore(tmp_path), content_keys(SPACE, TEXTS)
    store.add(keys[:2], vectors(2, 6))
    with pytest.raises(ModelError, match="vectors of 5 numbers"):
        store.add(keys[2:], vectors(2, 5))
    with pytest.raises(ModelError, match="finite"):
        store.add(keys[2:], torch.full((2, 6), float("nan")))
    assert len(VectorStore(tmp_path)) == 2
