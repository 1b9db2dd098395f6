"""Every fault of a store is found, and named by its file."""

import pytest
import torch
from safetensors.torch import save_file
from stored_vectors import (
    DIMENSION,
    add_spans,
    description,
    flip,
    keys_of,
    leftover,
    make_plain,
    make_store,
    shard_of,
    vectors_of,
    without_checksum,
)

from narrlit.stores import shards
from narrlit.stores.shards import read_head, shard_paths, write_shard
from narrlit.stores.vectors import VectorStore
from narrlit.stores.verifying import verify_store


@pytest.fixture
def folder(tmp_path):
    return make_store(tmp_path, (0, 5), (5, 8))


def only_fault(folder):
    (fault,) = verify_store(folder).faults
    assert str(fault) == f"{fault.path}: {fault.reason}"
    return fault


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_sound_store_has_no_fault(tmp_path, dtype):
    folder = make_store(tmp_path, (0, 5), (5, 8), dtype=dtype)
    leftover(folder, 2)
    read = []
    found = verify_store(folder, read.append)
    assert found.faults == ()
    assert (found.vectors, found.unchecked) == (8, 0)
    assert set(found.keys) == set(shard_paths(folder))
    assert sum(read) == 8 * DIMENSION * (4 if dtype == "float32" else 2)


def test_large_shards_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROWS_A_BLOCK", 3)
    folder = make_store(tmp_path, (0, 10))
    read = []
    assert verify_store(folder, read.append).faults == ()
    assert read == [3 * 24, 3 * 24, 3 * 24, 24]
    monkeypatch.setattr(shards, "ROWS_A_BLOCK", 4)  # the checksum does not depend on them
    assert verify_store(folder).faults == ()


@pytest.mark.parametrize("place", [0, -1])
def test_a_changed_bit_of_a_vector_is_found(folder, place):
    path = shard_of(folder, 3)
    flip(path, "vectors", place)
    fault = only_fault(folder)
    assert (fault.path, "checksum" in fault.reason) == (path, True)


def test_a_changed_bit_of_a_key_is_found(folder):
    path = shard_of(folder, 3)
    flip(path, "keys")
    fault = only_fault(folder)
    assert (fault.path, "keys" in fault.reason) == (path, True)


def test_shards_of_earlier_releases_are_told_as_unchecked(folder):
    path = shard_of(folder, 3)
    without_checksum(path)
    assert read_head(path).checksum is None
    found = verify_store(folder)
    assert (found.faults, found.unchecked) == ((), 1)
    flip(path)  # the lowest bit of a mantissa: a number as good as any
    assert verify_store(folder).faults == ()


def with_row(vector):
    return torch.cat([vectors_of(9)[7:], vector.expand(1, DIMENSION)])


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (with_row(torch.tensor(float("nan"))), "1 of 3 vectors hold numbers that are not finite"),
        (with_row(torch.tensor([1.0, 2, 3, 4, 5, float("inf")])), "1 of 3 vectors hold numbers that are not finite"),
        (with_row(torch.tensor(0.0)), "1 of 3 vectors are zero"),
        (vectors_of(3)[:, :5].contiguous(), "vectors of 5 numbers, those of the other shards have 6"),
        (vectors_of(3).half(), "vectors in float16, float32 is needed"),
        (vectors_of(3).to(torch.int32), "vectors in I32, float32 is needed"),
    ],
)
def test_what_can_be_no_sound_vectors_is_found(folder, vectors, said):
    path = write_shard(folder, keys_of(11)[8:], vectors)
    fault = only_fault(folder)
    assert (fault.path, fault.reason) == (path, said)
    assert set(verify_store(folder).keys) == set(shard_paths(folder)) - {path}


def test_of_a_store_without_a_description_both_dtypes_will_do(tmp_path):
    folder = make_plain(tmp_path / "plain", (0, 5))
    add_spans(VectorStore(folder, "float16"), (5, 8))
    assert verify_store(folder).faults == ()


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "rows", "wide", "numbers"])
def test_what_is_no_shard_is_found(folder, damage):
    path = shard_of(folder, 3)
    metadata = {"format": shards.FORMAT}
    keys, vectors = torch.zeros(3, 32, dtype=torch.uint8), vectors_of(3)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-4])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "other":
        save_file({"weight": vectors}, path, metadata=metadata)
    elif damage == "rows":
        save_file({"keys": keys, "vectors": vectors[:2].clone()}, path, metadata=metadata)
    elif damage == "wide":
        save_file({"keys": keys[:, :31].contiguous(), "vectors": vectors}, path, metadata=metadata)
    else:
        save_file({"keys": keys.int(), "vectors": vectors}, path, metadata=metadata)
    fault = only_fault(folder)
    assert fault.path == path
    assert "can't be read" in fault.reason or "no shard" in fault.reason
    assert str(path) not in fault.reason


def test_another_programs_file_is_found_and_one_of_another_format(folder):
    save_file({"keys": torch.zeros(1, 32, dtype=torch.uint8), "vectors": vectors_of(1)}, folder / "x.safetensors")
    fault = only_fault(folder)
    assert (fault.path.name, "no shard" in fault.reason) == ("x.safetensors", True)


def test_a_broken_description_is_a_fault(folder):
    description(folder).write_text("{")
    fault = only_fault(folder)
    assert fault.path == description(folder)
    assert len(verify_store(folder).keys) == 2


def test_the_same_vector_in_two_shards_is_no_fault(folder):
    store = VectorStore(folder)
    noise = torch.randn(4, DIMENSION, generator=torch.Generator().manual_seed(1)) * 1e-3  # as of another batch
    store.add(keys_of(7)[3:], vectors_of(7)[3:] + noise)
    found = verify_store(folder)
    assert found.faults == ()
    assert found.vectors == 8


def test_two_vectors_of_one_key_that_differ_are_found_in_both_files(folder):
    other = write_shard(folder, [keys_of(8)[7], keys_of(9)[8]], torch.stack([-vectors_of(8)[7], vectors_of(9)[8]]))
    found = verify_store(folder)
    one = shard_of(folder, 3)
    assert {fault.path: fault.reason for fault in found.faults} == {
        one: f"a vector that {other.name} also holds differs there (cosine -1.0000)",
        other: f"a vector that {one.name} also holds differs there (cosine -1.0000)",
    }
    assert set(found.keys) == {shard_of(folder, 5)}


def test_a_key_twice_in_one_shard_is_compared_too(tmp_path):
    folder = make_plain(tmp_path / "plain", (0, 5))
    path = write_shard(folder, keys_of(7)[6:] * 2, vectors_of(2))
    assert {fault.path for fault in verify_store(folder).faults} == {path}
