"""Shards and memory-mapped reads."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import save_file

from narrlit.embedding_cache.listing import remove_cache
from narrlit.embedding_cache.shards import read_arrays
from narrlit.embedding_cache.space import content_keys
from narrlit.embedding_cache.storage import EmbeddingCache, MappedEmbeddings

KEYS = content_keys({"model": "m"}, [str(i) for i in range(40)])
GIVEN = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))


def cache_of(folder, spans, dtype="float32"):
    cache = EmbeddingCache(folder, dtype)
    for start, end in spans:
        cache.add(KEYS[start:end], GIVEN[start:end])
    return cache


@pytest.mark.parametrize("spans", [[(0, 40)], [(25, 40), (0, 10), (10, 25)]])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_embeddings_are_those_stored_in_the_order_of_the_keys(tmp_path, spans, dtype):
    cache = cache_of(tmp_path, spans, dtype)
    assert len(cache) == 40
    assert cache.missing(KEYS) == []
    assert cache.dimension == 6

    order = torch.randperm(40, generator=torch.Generator().manual_seed(1)).tolist()
    expected = GIVEN[order].to(getattr(torch, dtype))
    for again in (cache, EmbeddingCache(tmp_path, dtype)):
        assert torch.equal(again.read([KEYS[i] for i in order]), expected)
        assert (read_arrays(tmp_path, [KEYS[i] for i in order])[0] == expected.float().numpy()).all()
        mapped = again.mapped([KEYS[i] for i in order])
        assert len(mapped) == 40
        assert mapped.dimension == 6
        positions = np.array([7, 0, 39, 7, 22])
        assert torch.equal(mapped[positions], expected[positions].float())
        assert mapped[np.array([], dtype=np.int64)].shape == (0, 6)


def test_arrays_are_none_if_one_is_missing(tmp_path):
    assert read_arrays(tmp_path, KEYS[:1]) is None
    cache_of(tmp_path, [(0, 10)])
    assert read_arrays(tmp_path, KEYS[:11]) is None
    assert read_arrays(tmp_path, [])[1].shape == (0, 5)


@settings(deadline=None)
@given(st.data())
def test_any_positions_over_any_shards_equal_a_plain_loop(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    shards = [torch.randn(size, 3) for size in sizes]
    places = [(shard, row) for shard, size in enumerate(sizes) for row in range(size)]
    pairs = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=9))
    positions = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=12))

    numbers, rows = np.array(pairs, dtype=np.int64).T
    found = MappedEmbeddings(shards, numbers, rows)[np.array(positions, dtype=np.int64)]

    expected = []
    for position in positions:
        shard, row = pairs[position]
        expected.append(shards[shard][row].tolist())
    assert found.tolist() == expected


def test_reading_does_not_change_the_cache(tmp_path):
    cache_of(tmp_path, [(0, 40)]).mapped(KEYS)[np.arange(40)].zero_()
    assert torch.equal(EmbeddingCache(tmp_path).read(KEYS), GIVEN)


def test_additions_of_others_are_visible_after_a_refresh(tmp_path):
    cache = cache_of(tmp_path, [(0, 10)])
    cache_of(tmp_path, [(5, 20)])
    assert cache.missing(KEYS) == list(range(10, 40))

    cache.refresh()
    assert cache.missing(KEYS) == list(range(20, 40))
    assert torch.equal(cache.read(KEYS[:20]), GIVEN[:20])
    with refused("missing_embeddings", missing=3, keys=4):
        cache.mapped(KEYS[19:23])


def damaged(whole):
    """Contents of a shard that has been cut, emptied, overwritten with zeros, or changed in one bit anywhere."""
    variants = {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"{}", "zeros": bytes(len(whole))}
    variants["zeros within"] = whole[:-700] + bytes(100) + whole[-600:]
    for place in (3, whole.index(b'"format"') + 3, whole.index(b"checksum") + 2, 600, len(whole) - 700, len(whole) - 5):
        variants[f"a bit at {place}"] = whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
    return variants


def test_a_damaged_shard_is_set_aside_and_named_and_its_embeddings_are_missing(tmp_path, capsys):
    cache_of(tmp_path, [(0, 25), (25, 40)])
    path = next(path for path in tmp_path.iterdir() if KEYS[3] in path.read_bytes())
    whole = path.read_bytes()
    for name, content in damaged(whole).items():
        for read in (lambda: EmbeddingCache(tmp_path).missing(KEYS), lambda: read_arrays(tmp_path, KEYS)):
            path.write_bytes(content)
            capsys.readouterr()
            assert read() in (None, [*range(25)]), name
            lines = capsys.readouterr().err.splitlines()
            assert len(lines) == 1, name
            assert f"{path} is damaged" in lines[0]
            assert "computed again" in lines[0]
            assert not path.exists()
            assert path.with_name(f"{path.name}.damaged").read_bytes() == content
            assert torch.equal(EmbeddingCache(tmp_path).read(KEYS[25:]), GIVEN[25:])
            assert capsys.readouterr().err == ""

    cache = EmbeddingCache(tmp_path)
    cache.add(KEYS[:25], GIVEN[:25])

    assert torch.equal(cache.read(KEYS), GIVEN)

    remove_cache(tmp_path)
    assert not tmp_path.exists()


def test_damage_after_the_cache_was_opened_is_found_before_the_first_use(tmp_path):
    cache_of(tmp_path, [(0, 25), (25, 40)])
    cache = EmbeddingCache(tmp_path)
    path = next(path for path in tmp_path.iterdir() if KEYS[3] in path.read_bytes())
    with path.open("r+b") as file:
        file.seek(-5, 2)
        file.write(b"\xff")

    with refused("missing_embeddings", missing=25, keys=40):
        cache.read(KEYS)

    cache.refresh()
    assert cache.missing(KEYS) == [*range(25)]


def test_a_damaged_shard_in_a_folder_that_cannot_be_written_is_ignored(tmp_path, monkeypatch, capsys):
    cache_of(tmp_path, [(0, 40)])
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-100])

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.rename", refused)
    cache = EmbeddingCache(tmp_path)
    cache.refresh()

    assert cache.missing(KEYS) == [*range(40)]
    assert capsys.readouterr().err.count("ignored; its embeddings are computed again") == 1


def test_shards_of_other_origin(tmp_path, capsys):
    """One of an earlier version has no checksum; foreign files and those of killed processes are no shards."""
    vectors = GIVEN[:2].clone()
    keys = torch.tensor([list(key) for key in KEYS[:2]], dtype=torch.uint8)
    save_file({"keys": keys, "vectors": vectors}, tmp_path / "old.safetensors", {"format": "narrlit vectors 1"})
    save_file({"keys": keys, "vectors": vectors}, tmp_path / "foreign.safetensors", {"format": "pt"})
    (tmp_path / ".half-written.safetensors").write_bytes(b"half")

    assert torch.equal(EmbeddingCache(tmp_path).read(KEYS[:2]), vectors)
    assert "foreign.safetensors is damaged (it is not a shard of embeddings)" in capsys.readouterr().err
    assert (read_arrays(tmp_path, KEYS[:2])[0] == vectors.numpy()).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".half-written.safetensors",
        "foreign.safetensors.damaged",
        "old.safetensors",
    ]


def test_different_dimensions_and_nan_are_refused(tmp_path):
    cache = cache_of(tmp_path, [(0, 10)])
    with refused("dimension_of_cache", found=5, needed=6):
        cache.add(KEYS[10:11], torch.ones(1, 5))
    with refused("embeddings_not_finite", cause="the model is broken"):
        cache.add(KEYS[10:11], torch.full((1, 6), torch.nan))
    with refused("embeddings_not_finite", n=1, embeddings=1):
        EmbeddingCache(tmp_path, "float16").add(KEYS[10:11], torch.full((1, 6), 1e6))
    assert len(EmbeddingCache(tmp_path)) == 10
