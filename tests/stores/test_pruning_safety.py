"""Pruning that is killed, refused or given any shards: no vector is ever missing."""

import pathlib
import tempfile

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from stored_vectors import (
    assert_whole,
    keys_in,
    keys_of,
    make_store,
    prune,
    vectors_of,
)

from narrlit.errors import OptionError
from narrlit.stores import pruning
from narrlit.stores.shards import shard_paths, write_shard
from narrlit.stores.upkeep import find_stores
from narrlit.stores.vectors import VectorStore
from narrlit.stores.verifying import verify_store


class Killed(BaseException):
    """Ends the process where nothing may catch it."""


def dying_at(monkeypatch, number):
    """From now on the `number`-th change of a file is not made, and is the end."""
    left = [number]

    def counted(real):
        def change(*arguments, **options):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return real(*arguments, **options)

        return change

    for name in ("unlink", "replace", "rmdir"):
        monkeypatch.setattr(pathlib.Path, name, counted(getattr(pathlib.Path, name)))
    monkeypatch.setattr("narrlit.stores.shards.save_file", counted(save_file))


@pytest.mark.parametrize("merge", [False, True])
def test_a_kill_at_any_moment_loses_no_vector_and_the_next_run_ends_it(tmp_path, monkeypatch, merge):
    moments = 0
    while True:
        moments += 1
        root = tmp_path / str(moments)
        folder = make_store(root, (0, 10), (2, 6), (8, 13), (12, 14))
        with monkeypatch.context() as patched:
            dying_at(patched, moments)
            try:
                prune(root, merge=merge)
                break
            except Killed:
                pass
        assert_whole(folder, 14)
        prune(root, merge=merge)
        assert_whole(folder, 14)
        assert sorted(keys_in(folder)) == sorted(keys_of(14))
        assert len(shard_paths(folder)) == (1 if merge else 3)
    assert moments >= 7


def test_a_kill_while_a_store_is_removed_leaves_a_store(tmp_path, monkeypatch):
    for moment in range(1, 4):
        folder = make_store(tmp_path / str(moment), (0, 5), (5, 8))
        with monkeypatch.context() as patched, pytest.raises(Killed):
            dying_at(patched, moment)
            prune(tmp_path / str(moment), model="org/name")
        assert find_stores(tmp_path / str(moment)) == [folder]
        assert verify_store(folder).faults == ()
        prune(tmp_path / str(moment), model="org/name")
        assert not folder.exists()


def test_a_file_that_cannot_be_removed_is_told(tmp_path, monkeypatch):
    make_store(tmp_path, (0, 5))

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    with pytest.raises(OptionError, match=r"cannot remove .*\.safetensors: Permission denied"):
        prune(tmp_path, model="org/name")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=8, unique=True), min_size=1, max_size=6),
    st.booleans(),
    st.integers(1, 20),
)
def test_any_shards_hold_each_vector_once_in_the_end(shards, merge, rows):
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        folder = pathlib.Path(place) / "store"
        for chosen in shards:
            write_shard(folder, [keys_of(20)[i] for i in chosen], vectors_of(20)[chosen])
        patched.setattr(pruning, "MERGED_BYTES", rows * (32 + 6 * 4))
        count = len(shard_paths(folder))
        _, faults = prune(folder, merge=merge)
        assert faults == []
        there = sorted({i for chosen in shards for i in chosen})
        assert sorted(keys_in(folder)) == sorted(keys_of(20)[i] for i in there)
        found = VectorStore(folder).vectors([keys_of(20)[i] for i in there])
        assert torch.equal(found, vectors_of(20)[there])
        assert len(shard_paths(folder)) <= count
        assert prune(folder)[0] == []
