"""Folders of embeddings written from Python: all rows, in parts, by a given encoder."""

import pickle
import sys

import numpy as np
import pytest
from refusals import refused

import narrlit
from narrlit.data.rows import Layout
from narrlit.library.options import PartOptions, TableOptions
from narrlit.library.parts import embed_to_folder
from narrlit.library.vector_table import VectorTable

TEXTS = ["A king fell ill.", "A diver found a pearl.", "A bank lowered its rates."]
NPY = PartOptions(part_rows=2, format="npy")


@pytest.fixture
def stories(make):
    return make("s.jsonl", [{"text": text} for text in TEXTS])


def vectors(folder, manifest):
    return np.concatenate([np.load(folder / part.file) for part in manifest.parts])


def test_parts_contain_the_embeddings_of_the_encoder(stories, tiny, tmp_path):
    encoder = narrlit.load(tiny())
    manifest = embed_to_folder(stories, tmp_path / "v", encoder, parts=NPY)
    assert manifest.complete is True
    assert manifest.rows == 3
    assert manifest.dimension == 32
    assert [(part.file, part.rows) for part in manifest.parts] == [("part-00000.npy", 2), ("part-00001.npy", 1)]
    assert abs(vectors(tmp_path / "v", manifest) - encoder.embed(TEXTS)).max() < 1e-6
    assert embed_to_folder(stories, tmp_path / "v", narrlit.load(tiny()), parts=NPY) == manifest


def test_postprocessing_is_that_of_the_encoder(stories, make, tiny, tmp_path):
    others = make("others.jsonl", [{"text": f"Story {number} of a ship."} for number in range(5)])
    encoder = narrlit.load(tiny(), postprocess="center", fit_on=others)
    manifest = embed_to_folder(stories, tmp_path / "v", encoder, parts=NPY)
    found = vectors(tmp_path / "v", manifest)

    assert abs(found - encoder.fitted_for([]).embed(TEXTS)).max() < 1e-6
    assert abs(found - narrlit.load(tiny()).embed(TEXTS)).max() > 1e-3


def test_what_needs_all_stories_at_once_is_refused(stories, tiny, tmp_path):
    whitened = narrlit.load(tiny(), postprocess="center", transductive=True)
    for encoder, layout in ((whitened, Layout()), (narrlit.load(tiny()), Layout(split="lines"))):
        with refused("whole_files_in_parts"):
            embed_to_folder(stories, tmp_path / "v", encoder, layout=layout)
    assert not (tmp_path / "v").exists()


def test_an_encoder_goes_to_another_process_without_its_weights(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(tiny())
    encoder = narrlit.load("model", max_length=64)
    expected = encoder.embed(TEXTS)
    sent = pickle.dumps(encoder.for_worker())

    assert len(sent) < 20_000

    monkeypatch.chdir("/")
    assert abs(pickle.loads(sent).embed(TEXTS) - expected).max() < 1e-6


def test_without_ray_and_pyarrow_one_command_installs_both(stories, tiny, tmp_path, monkeypatch):
    for package in ("ray", "pyarrow.fs"):
        monkeypatch.setitem(sys.modules, package, None)

    with refused("missing_extra", module="ray", commands="pip install 'narrlit[ray]'"):
        embed_to_folder(stories, tmp_path / "v", narrlit.load(tiny()), parts=PartOptions(engine="ray"))
    with refused("missing_extra", module="ray", commands="pip install 'narrlit[ray]'"):
        VectorTable.create(f"file://{tmp_path}/t", stories, tiny(), options=TableOptions(engine="ray"))
