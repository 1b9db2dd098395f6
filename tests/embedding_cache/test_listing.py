"""Caches under a folder: what is listed, and that removal leaves other files alone."""

import pytest
import torch
from json_files import read_json
from refusals import refused

from narrlit.embedding_cache.listing import embedding_caches, remove_cache
from narrlit.embedding_cache.shards import SPACE
from narrlit.embedding_cache.space import EmbeddingSpace, content_keys
from narrlit.embedding_cache.storage import EmbeddingCache, open_cache
from narrlit.models.config import EncoderConfig


def fill(cache, count):
    cache.add(content_keys({"model": "m"}, [str(i) for i in range(count)]), torch.ones(count, 6))
    return cache


@pytest.fixture
def frozen(tmp_path):
    space = EmbeddingSpace.of_frozen(EncoderConfig("org/name"), "float32")
    return fill(open_cache(tmp_path / "embeddings", space), 40)


@pytest.fixture
def teacher(tmp_path):
    return fill(EmbeddingCache(tmp_path / "run/teachers/round_1/embeddings"), 7)


def test_caches_of_models_and_teachers_are_listed(tmp_path, frozen, teacher):
    assert read_json(frozen.folder / SPACE)["model"] == "org/name"

    listing = embedding_caches(tmp_path)
    infos = {info.folder: info for info in listing.caches}
    assert set(infos) == {frozen.folder, teacher.folder}

    info = infos[frozen.folder]
    assert info.model == "org/name"
    assert info.embeddings == 40
    assert info.dimension == 6
    assert info.dtype == "float32"
    assert info.bytes == sum(path.stat().st_size for path in frozen.folder.iterdir())
    assert listing.table()["embeddings"].tolist() == [40, 7]
    assert listing.record[1] == {
        "folder": str(teacher.folder),
        "model": "round_1",
        "embeddings": 7,
        "dimension": 6,
        "dtype": "float32",
        "bytes": infos[teacher.folder].bytes,
    }
    assert [line.split(": ")[0] for line in str(listing).splitlines()] == [str(frozen.folder), str(teacher.folder)]


def test_what_is_selected_is_removed_and_other_files_stay(tmp_path, frozen, teacher):
    (frozen.folder / "notes.txt").write_text("mine")
    embedding_caches(tmp_path, "org/name").remove()
    assert [path.name for path in frozen.folder.iterdir()] == ["notes.txt"]
    assert [info.folder for info in embedding_caches(tmp_path).caches] == [teacher.folder]

    embedding_caches(tmp_path).remove()
    assert not teacher.folder.exists()
    assert str(embedding_caches(tmp_path)) == f"{tmp_path}: no cached embeddings"


def test_a_folder_without_a_cache_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with refused("not_a_cache"):
            remove_cache(folder)
    with refused("no_cache_folder"):
        embedding_caches(tmp_path / "none")
