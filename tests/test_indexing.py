"""The benchmark of indexes of long stories runs, and two stages miss nothing where all stories are candidates."""

import importlib
from pathlib import Path

import pytest
from json_files import read_json

from narrlit.library import index_storage, ranking

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("memoized_minilm")
@pytest.mark.parametrize("large", [False, True])
def test_a_small_index_is_measured(monkeypatch, tmp_path, large):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    indexing = importlib.import_module("indexing")
    monkeypatch.setattr(indexing, "PASSAGES_PER_STORY", 6)
    for module in (ranking, index_storage):
        monkeypatch.setattr(module, "COMPARED_ALL", 5 if large else 1000)
    out = tmp_path / "indexing.json"
    indexing.main(["--stories", "12", "--triples", "2", "--embedded", "1", "--out", str(out)])
    [figures] = read_json(out)

    assert figures["stories"] == 12
    assert figures["words"] > 12 * 6 * 10
    assert figures["text_recall"] == 1
    assert figures["like_recall"] == 1
    assert figures["disk_kilobytes"] > 6 * 384 * 2 / 1000
