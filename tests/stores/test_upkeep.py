"""Which stores there are, and what each of them holds."""

import os

import pytest
import torch
from safetensors.torch import save_file
from stored_vectors import (
    aged,
    description,
    flip,
    keys_of,
    leftover,
    make_plain,
    make_store,
    shard_of,
    vectors_of,
)

from narrlit.stores.shards import shard_paths
from narrlit.stores.upkeep import find_stores, own_shards, summarize, unfinished


def test_stores_are_found_by_their_shards_or_their_description(tmp_path):
    described = make_store(tmp_path / "vectors", (0, 5))
    empty = make_store(tmp_path / "vectors", model="org/empty")
    teacher = make_plain(tmp_path / "quickstart" / "rounds" / "round_0" / "vectors", (0, 3))
    make_plain(tmp_path / ".hidden", (0, 3))
    (tmp_path / "killed").mkdir()
    leftover(tmp_path / "killed", 1)
    (tmp_path / "model").mkdir()
    save_file({"weight": torch.ones(3)}, tmp_path / "model" / "model.safetensors")
    (tmp_path / "game").mkdir()
    (tmp_path / "game" / "space.json").write_text('{"planets": 9}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "space.json").write_text("{")
    assert find_stores(tmp_path) == sorted([described, empty, teacher, tmp_path / "killed"])
    assert find_stores(teacher) == [teacher]
    assert find_stores(tmp_path / "model") == []


def test_a_store_is_told_as_it_is(tmp_path):
    folder = make_store(tmp_path, (0, 5), (5, 8), (2, 4), pooling="last", max_length=512, dtype="float16")
    left = leftover(folder, hours=5)
    for path in folder.iterdir():
        aged(path, 3)
    os.utime(description(folder), (1.7e9, 1.7e9))
    newest = shard_of(folder, 3)
    os.utime(newest, (1.75e9, 1.75e9))
    found = summarize(folder)
    assert (found.model, found.settings) == ("org/name", {"pooling": "last", "max_length": 512})
    assert (found.vectors, found.doubled, found.shards) == (8, 2, 3)
    assert (found.dimension, found.stored) == (6, ("float16",))
    assert found.size == sum(path.stat().st_size for path in folder.iterdir())
    assert found.leftovers == (left,)
    assert found.changed == max(path.stat().st_mtime for path in shard_paths(folder))
    assert found.faults == ()


def test_settings_that_are_as_usual_are_not_told(tmp_path):
    assert summarize(make_store(tmp_path)).settings == {}
    changed = {"revision": "abc", "pooling": "cls", "normalize": None, "max_length": 9, "quantization": "nf4"}
    assert summarize(make_store(tmp_path, **changed)).settings == changed


def test_a_store_without_a_description_or_without_vectors_is_told(tmp_path):
    plain = summarize(make_plain(tmp_path / "plain", (0, 4)))
    assert (plain.space, plain.model, plain.settings, plain.vectors) == (None, None, {}, 4)
    empty = summarize(make_store(tmp_path))
    assert (empty.vectors, empty.dimension, empty.stored, empty.shards) == (0, None, (), 0)


def test_what_is_broken_is_told_and_the_rest_counted(tmp_path):
    folder = make_store(tmp_path, (0, 5), (5, 8))
    cut = shard_of(folder, 3)
    cut.write_bytes(cut.read_bytes()[:-1])
    description(folder).write_text("{")
    found = summarize(folder)
    assert (found.vectors, found.shards, found.model) == (5, 2, None)
    assert len(found.faults) == 2
    assert found.faults[0].startswith(f"{cut}: this shard of vectors can't be read")
    assert found.faults[1].startswith(f"{description(folder)}: it can't be read")


def test_other_files_do_not_count(tmp_path):
    folder = make_store(tmp_path, (0, 5))
    before = summarize(folder)
    for name in ("notes.txt", ".notes-abcdefgh.txt", ".cafe-abcdefgh.safetensors", ".space.json"):
        (folder / name).write_text("x")
    assert unfinished(folder) == []
    assert summarize(folder).size == before.size
    foreign = folder / "model.safetensors"
    save_file({"weight": torch.ones(3)}, foreign)
    renamed = shard_paths(folder)[0].rename(folder / "mine.safetensors")
    assert own_shards(folder) == [renamed]
    (fault,) = summarize(folder).faults  # a store cannot be read beside it
    assert fault.startswith(f"{foreign}: ")


@pytest.mark.parametrize("name", [".0123456789abcdef01234567-x_2abcde.safetensors", ".space-x_2abcde.json"])
def test_names_of_temporary_files_are_known(tmp_path, name):
    folder = make_store(tmp_path, (0, 5))
    path = leftover(folder, 1, name)
    assert unfinished(folder) == [path]
    assert unfinished(folder, before=path.stat().st_mtime) == []


def test_the_temporary_files_of_a_store_have_such_names(tmp_path, monkeypatch):
    from narrlit.stores import shards, spaces

    seen = []
    for module in (shards, spaces):
        real = module.atomic_path

        def spy(target, real=real):
            context = real(target)
            seen.append(context)
            return context

        monkeypatch.setattr(module, "atomic_path", spy)
    folders = []
    monkeypatch.setattr("pathlib.Path.replace", lambda self, target: folders.append(unfinished(self.parent)))
    spaces.open_space(tmp_path, {"model": "m", "stored": "float32"})
    shards.write_shard(tmp_path, keys_of(2), vectors_of(2))
    assert [len(found) for found in folders] == [1, 1]


def test_reading_what_a_store_holds_changes_nothing(tmp_path):
    folder = make_store(tmp_path, (0, 5))
    flip(shard_of(folder, 5))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    summarize(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
