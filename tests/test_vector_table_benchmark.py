"""The benchmark of vector tables runs, and the vector index of a small table misses nothing."""

import importlib
from pathlib import Path

import pytest
from json_files import read_json

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.long
@pytest.mark.slow
def test_a_small_table_is_measured(monkeypatch, tmp_path, tiny):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS), prepend=":")
    benchmark = importlib.import_module("vector_table")
    out = tmp_path / "vector_table.json"
    sizes = ["--stories", "300", "--triples", "2", "--queries", "3"]
    benchmark.main([*sizes, "--model", str(tiny()), "--out", str(out)])
    [figures] = read_json(out)

    assert figures["stories"] == 300
    assert figures["recall"] == 1
    assert figures["disk_gigabytes"] > 300 * 32 * 4 / 1e9
    assert figures["index_gigabytes"] > 0
    assert figures["indexed"]["p95_milliseconds"] >= figures["indexed"]["median_milliseconds"] > 0
