"""Searches in new processes: without LanceDB by the copy of the stories, without torch by the exported encoder."""

import shutil
import subprocess
import sys
from importlib.util import find_spec

import lancedb
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from refusals import refused
from tiny_models import world_texts

from narrlit.encoding import exported
from narrlit.encoding.exported import ExportedEncoder
from narrlit.encoding.loading import load
from narrlit.library.index import Index
from narrlit.library.index_storage import IndexStorage
from narrlit.library.stored_snapshot import STORED
from narrlit.measures import MEASURES

QUERY = "They argued about the money. Nobody came to the feast."
LONG = "They argued about the money. Nobody came to the feast, and the harvest failed. " * 12
SEARCH = """
import sys
from narrlit.cli import main

assert main(sys.argv[2:]) == 0
print("imported:", *sorted(set(sys.argv[1].split(",")) & set(sys.modules)))
"""
"""Run a command, and print which of the modules in the first argument it has imported."""


@pytest.fixture(autouse=True)
def exporting(monkeypatch):
    """Encoders are exported if the extra is installed, which no other tests do."""
    monkeypatch.setattr(exported, "find_spec", find_spec)


@pytest.fixture(scope="module")
def made(tiny, tmp_path_factory):
    """An index of 30 stories, with a copy of them."""
    texts = world_texts(10)
    rows = [{"id": f"s{row}", "text": text, "year": 1800 + row} for row, text in enumerate(texts)]
    index = Index.create(tmp_path_factory.mktemp("index") / "tales.index", pd.DataFrame(rows), tiny())
    IndexStorage(index.path).store_snapshot()
    return index


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made.path, tmp_path / "i")


def run(heavy, *command):
    """Output of a command in a new process, and the modules of `heavy` that it has imported."""
    words = [sys.executable, "-c", SEARCH, ",".join(heavy), *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output, _, modules = done.stdout.rpartition("imported:")
    return output, modules.split()


@pytest.mark.parametrize("measure", MEASURES)
def test_a_search_in_the_copy_gives_the_results_of_the_table(copied, measure):
    with_copy = Index(copied)
    results = with_copy.like("s4", k=8, measure=measure).table(), with_copy.search(QUERY, k=8, measure=measure).table()
    assert "_table" not in vars(with_copy._storage)

    (copied / STORED).unlink()
    from_table = Index(copied)
    assert_frame_equal(results[0], from_table.like("s4", k=8, measure=measure).table())
    assert_frame_equal(results[1], from_table.search(QUERY, k=8, measure=measure).table())


@pytest.mark.parametrize("vectors", ["float16", "int8"])
def test_the_copy_of_vectors_in_half_precision_gives_the_results_of_the_table(tiny, tmp_path, vectors):
    index = Index.create(tmp_path / "i", world_texts(3), tiny(), vectors=vectors)
    IndexStorage(index.path).store_snapshot()
    with_copy = Index(index.path)
    results = with_copy.like("2", k=8, measure="cosine", distinct=0.9999).table()
    assert "_table" not in vars(with_copy._storage)

    (index.path / STORED).unlink()
    assert_frame_equal(results, Index(index.path).like("2", k=8, measure="cosine", distinct=0.9999).table())


def test_conditions_are_checked_and_applied_with_the_copy(copied):
    index = Index(copied)
    assert set(index.like("s4", k=30, where="year < 1803").table()["id"]) == {"s0", "s1", "s2"}
    with refused("invalid_condition"):
        index.like("s4", where="nothing = 1").table()


def test_the_copy_follows_changes_of_the_stories(copied):
    open_before = Index(copied)
    assert "s3" in open_before
    secret = open_before.collection()["s3"].text.encode()
    assert secret in (copied / STORED).read_bytes()

    changed = Index(copied)
    changed.delete("s3")
    assert secret not in (copied / STORED).read_bytes()
    changed.add(pd.DataFrame([{"id": "new", "text": QUERY, "year": 2000}]))

    current = Index(copied)
    for index in (open_before, current):
        assert "s3" not in index
        assert len(index) == 30
        assert index.search(QUERY, k=1).table()["id"].tolist() == ["new"]
    assert "_table" not in vars(current._storage)


def test_the_copy_is_ignored_after_another_client_changes_the_stories(copied):
    open_before = Index(copied)
    lancedb.connect(str(copied)).open_table("stories").delete("id = 's3'")
    for index in (open_before, Index(copied)):
        assert "s3" not in index
        assert len(index) == 29
        assert "s3" not in index.like("s4", k=30).table()["id"].tolist()


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[: len(content) // 2], lambda _: b"x"])
def test_a_damaged_copy_is_ignored(copied, damage):
    path = copied / STORED
    path.write_bytes(damage(path.read_bytes()))
    assert len(Index(copied).like("s4", k=3).table()) == 3


def test_a_large_index_has_no_copy(copied, monkeypatch):
    monkeypatch.setattr("narrlit.library.index_storage.COMPARED_ALL", 28)
    Index(copied).delete("s3")
    assert not (copied / STORED).exists()


@pytest.mark.slow
def test_a_search_by_a_story_imports_neither_torch_nor_lancedb(copied):
    heavy = ("torch", "sentence_transformers", "sklearn", "scipy", "lancedb")
    output, imported = run(heavy, "search", copied, "--like", "s4", "--k", "2")
    assert imported == []
    assert len(output.splitlines()) == 3


def test_nothing_is_prepared_without_the_extra(made, monkeypatch):
    monkeypatch.setattr(exported, "find_spec", lambda name: None)
    assert not made.prepare_search()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The user's cache, for exported encoders."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def prepared(cache, copied, monkeypatch):
    monkeypatch.setenv("NARRLIT_CACHE", str(cache))
    index = Index(copied)
    assert index.prepare_search()
    return index


def test_an_export_that_fails_is_reported_and_the_index_stays(cache, tiny, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NARRLIT_CACHE", str(tmp_path / "file"))
    index = Index.create(tmp_path / "i", [QUERY], tiny())
    assert not index.prepare_search()
    assert "searches load the model with torch" in capsys.readouterr().err
    assert len(Index(tmp_path / "i").search(QUERY).table()) == 1


@pytest.mark.parametrize("long", ["windows", "truncate"])
@pytest.mark.parametrize(("kind", "pooling"), [("bert", "mean"), ("roberta", "cls"), ("mpnet", "mean")])
def test_an_exported_encoder_reads_and_embeds_as_the_model(cache, monkeypatch, tiny, kind, pooling, long):
    from narrlit.exporting.onnx import export_for_search

    monkeypatch.setenv("NARRLIT_CACHE", str(cache))
    encoder = load(tiny(kind, pooling), long=long, max_length=40, device="cpu")
    folder = export_for_search(encoder)
    texts = [QUERY, LONG, "A fox.", QUERY]

    vectors, readings = ExportedEncoder.open(folder, long).embed(texts)

    np.testing.assert_allclose(vectors, encoder.embed(texts), atol=1e-5)  # float32, sums in another order
    assert np.array_equal(vectors[0], vectors[3])
    assert readings[:, 3].tolist() == [0, 1, 0, 0]
    assert (readings[1, 4] < 1) == (long == "truncate")
    again = load(tiny(kind, pooling), long=long, max_length=40, device="cpu").exported()
    np.testing.assert_allclose(again.embed(texts), vectors, atol=1e-6)
    assert "module" not in vars(again)
    assert again.facts == encoder.facts


def test_a_prepared_search_ranks_as_before(prepared, made):
    again = Index(prepared.path)
    results, expected = again.search(LONG, k=30).table(), made.search(LONG, k=30).table()
    assert results["id"].tolist() == expected["id"].tolist()
    np.testing.assert_allclose(results["similarity"], expected["similarity"], atol=1e-5)
    assert results["snippet"].tolist() == expected["snippet"].tolist()
    assert "module" not in vars(again.encoder)


def test_other_settings_are_not_exported(cache, monkeypatch, tiny):
    from narrlit.exporting.onnx import export_for_search

    monkeypatch.setenv("NARRLIT_CACHE", str(cache))
    for settings in ({"fusion": "equal", "missing_views": "positional"}, {"precision": "bf16"}, {"device": "cuda"}):
        encoder = load(tiny(), **settings)
        assert encoder.export_folder is None
        assert encoder.exported() is encoder
        assert export_for_search(encoder) is None
    assert load(tiny(), max_length=40).export_folder != load(tiny()).export_folder


def test_a_changed_model_is_refused_and_a_damaged_export_named(prepared, tiny, tmp_path, monkeypatch):
    moved = shutil.copytree(tiny(), tmp_path / "model")
    index = Index.create(tmp_path / "other", [QUERY], moved)
    index.prepare_search()
    (moved / "note.txt").write_text("changed")
    with refused("other_files"):
        Index(tmp_path / "other").search(QUERY).table()

    folder = prepared.encoder.export_folder
    kept = (folder / exported.GRAPH).read_bytes()
    (folder / exported.GRAPH).write_bytes(kept[:100])
    with refused("broken_exported_encoder"):
        Index(prepared.path).search(QUERY).table()
    (folder / exported.GRAPH).write_bytes(kept)


@pytest.mark.slow
def test_a_prepared_search_for_a_text_imports_neither_torch_nor_lancedb(prepared, made):
    heavy = ("torch", "transformers", "sentence_transformers", "sklearn", "scipy", "lancedb")
    output, imported = run(heavy, "search", prepared.path, QUERY, "--k", "3")
    assert imported == []
    for id in made.search(QUERY, k=3).table()["id"]:
        assert f" {id} " in output


@pytest.mark.long
@pytest.mark.slow
def test_narrlit_mini_is_exported_with_its_adapter(cache, monkeypatch):
    from narrlit.exporting.onnx import export_for_search

    monkeypatch.setenv("NARRLIT_CACHE", str(cache))
    encoder = load("narrlit-mini", device="cpu")
    folder = export_for_search(encoder)
    vectors, _ = ExportedEncoder.open(folder, "windows").embed([QUERY, LONG * 3])
    np.testing.assert_allclose(vectors, encoder.embed([QUERY, LONG * 3]), atol=1e-5)
