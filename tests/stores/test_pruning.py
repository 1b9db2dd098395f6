"""What may go goes, nothing else does, and at no moment is a vector missing."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from stored_vectors import (
    add_spans,
    aged,
    assert_whole,
    description,
    flip,
    keys_in,
    keys_of,
    leftover,
    make_plain,
    make_store,
    prune,
    shard_of,
    vectors_of,
)

from narrlit.errors import OptionError
from narrlit.stores import pruning
from narrlit.stores.pruning import plan
from narrlit.stores.selection import Selection
from narrlit.stores.shards import read_head, shard_paths, write_shard
from narrlit.stores.upkeep import find_stores, size_of
from narrlit.stores.vectors import VectorStore
from narrlit.stores.verifying import verify_store

MERGE = Selection(merge=True)


def files_of(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_plan_changes_nothing(tmp_path):
    folder = make_store(tmp_path, (0, 5), (3, 8))
    leftover(folder, 2)
    flip(shard_of(make_plain(tmp_path / "plain", (0, 4), (4, 6)), 4))
    before = files_of(tmp_path)
    for selection in (Selection(), MERGE, Selection(broken=True), Selection("org/name"), Selection(older_than=1e-9)):
        steps, _ = plan(find_stores(tmp_path), selection)
        assert steps
    assert files_of(tmp_path) == before


def test_by_itself_old_leftovers_go_and_nothing_else(tmp_path):
    folder = make_store(tmp_path, (0, 5), (5, 8))
    old = [leftover(folder, 1.1), leftover(folder, 99, ".space-x_2abcde.json")]
    young = leftover(folder, 0.9, ".0123456789abcdef01234567-abcdefgh.safetensors")
    others = [leftover(folder, 99, name) for name in ("notes.txt", ".notes-abcdefgh.txt", ".cafe-abcdefgh.safetensors")]
    before = files_of(tmp_path)
    (step,), faults = prune(tmp_path)
    assert (set(step.files), step.freed, step.kept, faults) == (set(old), 200, {}, [])
    assert files_of(tmp_path) == {path: content for path, content in before.items() if path not in old}
    assert young.exists()
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_doubled_vectors_go_and_the_largest_shard_keeps_them(tmp_path, dtype):
    folder = make_store(tmp_path, (0, 10), (2, 6), (8, 13), (20, 22), dtype=dtype)
    largest, untouched = shard_of(folder, 10), shard_of(folder, 2)
    before = files_of(folder)
    steps, _ = prune(tmp_path)
    assert sorted(read_head(path).rows for path in shard_paths(folder)) == [2, 3, 10]
    assert all(path.read_bytes() == before[path] for path in (largest, untouched))
    assert sorted(keys_in(folder)) == sorted(keys_of(13) + keys_of(22)[20:])
    assert_whole(folder, 13, dtype)
    assert verify_store(folder).faults == ()
    assert sum(step.freed for step in steps) == pytest.approx(
        sum(map(len, before.values())) - size_of(files_of(folder)), abs=400
    )
    assert prune(tmp_path) == ([], [])


def test_a_store_that_holds_nothing_twice_is_not_read(tmp_path):
    make_store(tmp_path, (0, 5), (5, 8))
    make_store(tmp_path, (0, 5), model="org/one")
    read = []
    plan(find_stores(tmp_path), Selection(), read.append)
    assert read == []
    plan(find_stores(tmp_path), MERGE, read.append)
    assert sum(read) == 8 * 6 * 4  # of one shard nothing can be merged


def test_a_copy_that_may_be_the_only_sound_one_stays(tmp_path):
    folder = make_store(tmp_path, (0, 10), (2, 6))
    flip(shard_of(folder, 10))
    before = files_of(tmp_path)
    for merge in (False, True):
        steps, (fault,) = prune(tmp_path, merge=merge)
        assert (steps, fault.path) == ([], shard_of(folder, 10))
    assert files_of(tmp_path) == before


def test_copies_that_differ_stay(tmp_path):
    folder = make_store(tmp_path, (0, 10), (10, 12))
    write_shard(folder, keys_of(4), -vectors_of(4))
    before = files_of(tmp_path)
    steps, faults = prune(tmp_path)
    assert (steps, len(faults)) == ([], 2)
    assert files_of(tmp_path) == before


def test_broken_files_go_and_are_made_anew(tmp_path):
    folder = make_store(tmp_path, (0, 5), (5, 8), (8, 20))
    flip(shard_of(folder, 3))
    cut = shard_of(folder, 12)
    cut.write_bytes(cut.read_bytes()[:99])
    foreign = folder / "model.safetensors"
    save_file({"weight": torch.ones(3)}, foreign)
    left = leftover(folder, 99)
    (step,), (fault,) = prune(tmp_path, broken=True)
    assert (len(step.files), fault.path) == (2, foreign)
    assert set(folder.iterdir()) == {shard_of(folder, 5), description(folder), foreign, left}
    foreign.unlink()
    store = VectorStore(folder)
    assert store.missing(keys_of(20)) == list(range(5, 20))
    add_spans(store, (5, 20))
    assert_whole(folder, 20)


def test_a_broken_description_goes_and_the_shards_stay(tmp_path):
    folder = make_store(tmp_path, (0, 5))
    description(folder).write_text("{")
    prune(tmp_path, broken=True)
    assert make_store(tmp_path) == folder
    assert_whole(folder, 5)


def test_whole_stores_of_a_model_go(tmp_path):
    gone = [make_store(tmp_path, (0, 5)), make_store(tmp_path, (0, 3), pooling="cls")]
    kept = [make_store(tmp_path, (0, 5), model="org/names"), make_plain(tmp_path / "plain", (0, 4))]
    leftover(gone[0], 0)
    before = files_of(tmp_path)
    steps, _ = prune(tmp_path, model="org/name")
    assert [step.folder for step in steps] == sorted(gone)
    assert sum(step.freed for step in steps) == sum(len(before[path]) for path in before if path.parent in gone)
    assert not any(folder.exists() for folder in gone)
    assert set(files_of(tmp_path)) == {path for path in before if path.parent in kept}


def test_another_programs_files_in_a_removed_store_stay(tmp_path):
    folder = make_store(tmp_path, (0, 5))
    save_file({"weight": torch.ones(3)}, folder / "model.safetensors")
    (folder / "notes.txt").write_text("mine")
    make_plain(folder / "inner", (0, 3))
    prune(tmp_path, model="org/name")
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "notes.txt", "inner"}
    assert_whole(folder / "inner", 3)


def test_a_description_that_is_another_programs_stays(tmp_path):
    plain = make_plain(tmp_path / "plain", (0, 5))
    description(plain).write_text('{"planets": 9}')
    aged(plain, 9)
    prune(tmp_path, older_than=8)
    assert list(plain.iterdir()) == [description(plain)]


def test_what_may_not_be_read_stays(tmp_path, monkeypatch):
    folder = make_store(tmp_path, (0, 5), (5, 8))
    locked = shard_of(folder, 3)
    flip(locked)
    monkeypatch.setattr("os.access", lambda path, mode: path != locked)
    steps, (fault,) = prune(tmp_path, broken=True)
    assert (steps, fault.path) == ([], locked)


def test_an_unknown_model_is_told_with_those_there_are(tmp_path):
    make_store(tmp_path, (0, 5))
    make_store(tmp_path, model="org/b")
    make_plain(tmp_path / "plain", (0, 4))
    with pytest.raises(OptionError, match=r"--model name: .* the models are org/b, org/name$"):
        prune(tmp_path, model="name")


def test_stores_that_have_not_changed_for_so_long_go(tmp_path):
    old, young, described = (make_store(tmp_path, (0, 5), model=f"org/{name}") for name in ("old", "young", "new"))
    plain = make_plain(tmp_path / "plain", (0, 4))
    for folder, days in ((old, 31), (young, 29), (plain, 31), (described, 31)):
        aged(folder, days)
    aged(description(described), 1)  # one file is enough
    steps, _ = prune(tmp_path, older_than=30)
    assert [step.folder for step in steps] == sorted([old, plain])
    assert sorted(find_stores(tmp_path)) == sorted([young, described])


def test_model_and_age_narrow_each_other(tmp_path):
    old, young = make_store(tmp_path, (0, 5)), make_store(tmp_path, (0, 5), pooling="cls")
    other = make_store(tmp_path, (0, 5), model="org/other")
    for folder, days in ((old, 9), (young, 1), (other, 9)):
        aged(folder, days)
    steps, _ = prune(tmp_path, model="org/name", older_than=7)
    assert [step.folder for step in steps] == [old]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_small_shards_become_one(tmp_path, dtype):
    spans = [(i, i + 3) for i in range(0, 30, 3)]
    folder = make_store(tmp_path, *spans, dtype=dtype)
    before, store = size_of(files_of(folder)), VectorStore(folder, dtype)
    mapped = store.mapped(keys_of(30))
    (step,), _ = prune(tmp_path, merge=True)
    assert len(step.files) == 10
    (merged,) = shard_paths(folder)
    assert read_head(merged).dtype == dtype
    assert sorted(keys_in(folder)) == sorted(keys_of(30))
    assert_whole(folder, 30, dtype)
    assert verify_store(folder).faults == ()
    assert step.freed == pytest.approx(before - size_of(files_of(folder)), abs=400)
    # Who had the old ones mapped reads on, and who only knew of them finds the new one.
    expected = vectors_of(30).to(getattr(torch, dtype)).float()
    assert torch.equal(mapped[np.arange(30)], expected)
    assert torch.equal(store.mapped(keys_of(30))[np.arange(30)], expected)
    assert prune(tmp_path, merge=True) == ([], [])


def test_merged_shards_are_of_limited_size_and_large_ones_stay(tmp_path, monkeypatch):
    folder = make_store(tmp_path, *[(i, i + 4) for i in range(0, 40, 4)], (40, 60))
    large = shard_of(folder, 20)
    row = 32 + 6 * 4
    monkeypatch.setattr(pruning, "MERGED_BYTES", 17 * row)
    prune(tmp_path, merge=True)
    assert sorted(read_head(path).rows for path in shard_paths(folder)) == [8, 16, 16, 20]
    assert large.exists()
    assert_whole(folder, 60)
    pair = tmp_path / "pair"
    make_store(pair, (0, 10), (10, 14))
    monkeypatch.setattr(pruning, "MERGED_BYTES", 14 * row)  # both would fit, but half of it is large already
    assert prune(pair, merge=True) == ([], [])
    monkeypatch.setattr(pruning, "MERGED_BYTES", 21 * row)
    assert len(prune(pair, merge=True)[0]) == 1


def test_shards_of_different_dtypes_are_not_mixed(tmp_path):
    folder = make_plain(tmp_path / "plain", (0, 3), (3, 5))
    add_spans(VectorStore(folder, "float16"), (5, 9), (9, 10))
    prune(tmp_path, merge=True)
    heads = [read_head(path) for path in shard_paths(folder)]
    assert {(head.dtype, head.rows) for head in heads} == {("float32", 5), ("float16", 5)}
    assert VectorStore(folder).missing(keys_of(10)) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"older_than": 0}, "--older-than 0: a number of days above 0"),
        ({"older_than": -1}, "--older-than -1"),
        ({"older_than": float("nan")}, "--older-than nan"),
        ({"older_than": float("inf")}, "--older-than inf"),
        ({"broken": True, "merge": True}, "--broken and --merge have no use together"),
        ({"model": "m", "merge": True}, "--model or --older-than and --merge have no use together"),
        ({"older_than": 1, "broken": True}, "--model or --older-than and --broken have no use together"),
    ],
)
def test_selections_without_use_are_refused_by_name(options, said):
    with pytest.raises(OptionError, match=said):
        Selection(**options)
