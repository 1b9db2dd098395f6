"""The benchmark: every part runs on both sides, and its JSON file contains what its table shows."""

import importlib
import logging
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest
import torch
from backend_files import hide_openvino
from json_files import read_json

from narrlit.models import capabilities
from narrlit.models.capabilities import has_bf16

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
JOBS = {"embedding", "ranking", "cached ranking", "self-distillation", "step with cached teacher", "search", "memory"}
JOBS |= {"frozen projection", "frozen BiLSTM", "start: --help", "exported", "passages"}


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    logger = logging.getLogger("lightning.pytorch")
    threads = torch.get_num_threads()
    level = logger.level
    module = importlib.import_module("bench")
    hide_openvino(monkeypatch, module.runtimes)
    yield module
    logger.setLevel(level)
    torch.set_num_threads(threads)


@pytest.mark.long
@pytest.mark.slow
def test_every_part_measures_both_sides(bench, tmp_path, capsys):
    bench.main(["--quick", "--threads", "1", "--out", str(tmp_path / "bench.json")])
    record = read_json(tmp_path / "bench.json")
    rows = record["rows"]

    assert {row["job"].partition(",")[0] for row in rows} == JOBS

    missing = [row for row in rows if not row["ours"]]
    assert {row["precision"] for row in missing} == (set() if has_bf16(torch.device("cpu")) else {"bf16"})

    rows = [row for row in rows if row["ours"]]
    assert all(min(row["ours"]) > 0 for row in rows)
    assert sum(bool(row["peer"]) for row in rows) > len(rows) / 2
    assert all(row["ratio"] == median(row["peer"]) / median(row["ours"]) for row in rows if row["peer"])
    assert all(row["share_of_limit"] > 0 for row in rows if row["job"].startswith(("embedding", "ranking")))

    table = capsys.readouterr().out
    assert all(f"{row['job']} " in table for row in rows)


@pytest.mark.long
@pytest.mark.slow
def test_adapters_of_a_large_model_are_trained_by_both_overlays(bench, tmp_path):
    bench.main(["large-model", "--quick", "--threads", "1", "--out", str(tmp_path / "bench.json")])
    rows = read_json(tmp_path / "bench.json")["rows"]
    assert [row["job"].partition(",")[0].rpartition(" ")[2] for row in rows] == ["nf4", "bfloat16"]
    assert all(min(row["ours"]) > 0 for row in rows)


def test_ratio_is_the_peers_cost_over_ours_round_by_round(bench):
    row = bench.Row("job", peer=[2.0, 9.0, 8.0], ours=[1.0, 3.0, 2.0], unit="stories/s", count=6, flops=30)
    record = row.record({"fp32": 60})
    assert record["ratio"] == 3.0
    assert record["range"] == [2.0, 4.0]
    assert record["share_of_limit"] == 0.25
    assert row.cells({"fp32": 60})[3:] == ["0.75 stories/s", "3 stories/s", "3.00", "2.00-4.00", "-", "25%"]


def test_results_that_differ_end_the_run_with_an_error(bench, monkeypatch, tmp_path):
    monkeypatch.setitem(bench.PARTS, "embedding", lambda setting: iter([bench.Row("a job", wrong="by far")]))
    with pytest.raises(SystemExit, match="a job, , fp32: by far"):
        bench.main(["--quick", "--threads", "1", "--out", str(tmp_path / "bench.json"), "embedding"])


@pytest.mark.parametrize("part", ["embedding", "ranking", "cached", "distillation"])
def test_bf16_on_a_processor_without_it_is_a_row_that_says_so(bench, monkeypatch, part):
    monkeypatch.setattr(capabilities, "has_bf16", lambda device: False)
    training = importlib.import_module("training")
    monkeypatch.setattr(training, "ours", lambda *args: pytest.fail("no fit is needed"))
    clock = SimpleNamespace(step=1.0, losses=[0.5])
    monkeypatch.setattr(training, "interleave", lambda variants, rounds: {name: [clock] for name in variants})
    monkeypatch.setattr(bench.measure, "storyworld", lambda count: [f"Story {i} of a king." for i in range(count)])
    setting = bench.Setting(1, 1, "cpu", None, part == "embedding")
    rows = list(bench.PARTS[part](setting))
    half = [row for row in rows if row.precision == "bf16"]

    assert half
    assert all(row.note.endswith("not on this processor") and not row.ours for row in half)
    assert all(row.ours for row in rows if row.precision == "fp32")
    assert "bf16" not in bench.measure.gemm_limits("cpu", 8)
    assert all(row.cells({"fp32": 1.0}) for row in rows)
