"""The check on a GPU: each part has its time, what finished is written, and figures.py takes the file."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = {"data": "even", "precision": "fp32", "note": "peer: fp32; cosines differ by 4e-07", "unit": "stories/s"}
RECORD = {
    "tiny": False,
    "machine": {"gpu": "NVIDIA A", "driver": "1.2", "memory": "80 GB", "processor": "a CPU"},
    "versions": {"python": "3.12"},
    "commit": "0123abcd",
    "date": "2026-01-02",
    "seconds": 500,
    "parts": {"tests": {"status": "finished"}, "hits": {"status": "not run"}},
    "table": "| job | 12.5 |",
}


@pytest.fixture
def load(monkeypatch):
    """load(path): a script of the repository as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))

    def load_script(path):
        specification = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
        module = importlib.util.module_from_spec(specification)
        monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look it up
        specification.loader.exec_module(module)
        return module

    return load_script


@pytest.fixture
def check(load, monkeypatch, tmp_path):
    """check(**commands): run the check with these commands as its parts; exit code and what it wrote."""
    script = load("release/gpu_check.py")

    def run(seconds=60, left=1000.0, **commands):
        parts = {name: script.Part(seconds, "", f"-c {command}") for name, command in commands.items()}
        monkeypatch.setattr(script, "PARTS", parts)
        monkeypatch.setattr(script, "SECONDS", left)
        monkeypatch.setattr(script, "PATIENCE", 1)
        with pytest.raises(SystemExit) as stopped:
            script.main(["--tiny", "--out", str(tmp_path / "check.json"), "--parts", *commands])
        return bool(stopped.value.code), json.loads((tmp_path / "check.json").read_text("utf-8"))

    return run


def test_every_part_that_finished_is_written_beside_those_that_did_not(check):
    failed, record = check(good="1", bad="1/0")
    assert failed
    assert {name: part["status"] for name, part in record["parts"].items()} == {"good": "finished", "bad": "failed"}
    assert record["table"].splitlines()[2:] == ["| bad | | failed | |"]
    assert record["tiny"]
    assert len(record["commit"]) >= 8


def test_a_part_is_stopped_when_its_time_is_over(check):
    failed, record = check(seconds=1, slow="while(1):pass")
    assert not failed
    assert record["parts"]["slow"]["status"] == "out of time"
    assert record["table"].splitlines()[2:] == ["| slow | | out of time | |"]


def test_a_part_without_time_is_not_run(check):
    failed, record = check(left=1.0, good="1")
    assert not failed
    assert record["parts"]["good"] == {"status": "not run"}


def test_rows_are_medians_and_counts(load, tmp_path):
    script = load("release/gpu_check.py")
    entry = {**ROW, "job": "embedding", "peer": [2.0, 4.0, 9.0], "ours": [1.0, 2.0, 4.0], "count": 8, "ratio": 2.0}
    (tmp_path / "embedding.json").write_text(json.dumps({"rows": [entry, {**entry, "peer": [], "count": 0}]}))
    fast, alone = script.rows("embedding", tmp_path)
    assert fast == {"job": "embedding, even, fp32 (peer: fp32)", "peer": "2 stories/s", "narrlit": "4 stories/s"} | {
        "ratio": "2.00"
    }
    assert (alone["peer"], alone["narrlit"]) == ("", "2 stories/s")

    (tmp_path / "tests.xml").write_text('<a><b errors="1" failures="2" skipped="3" tests="10"/></a>')
    assert script.rows("tests", tmp_path)[0]["narrlit"] == "4 passed, 3 failed, 3 skipped"

    (tmp_path / "quickstart/ddp").mkdir(parents=True)
    (tmp_path / "quickstart/ddp/run.json").write_text('{"best": {"correct": 7, "n": 8}}')
    assert script.rows("ddp", tmp_path)[0]["narrlit"] == "7 of 8 triples right"
    assert script.rows("fsdp", tmp_path) == []


def test_the_check_ends_within_nine_minutes(load):
    script = load("release/gpu_check.py")
    assert script.SECONDS < 540
    assert list(script.PARTS) == ["tests", "embedding", "ranking", "distillation", "large-model", "ddp", "fsdp", "hits"]


def test_figures_take_the_file_with_the_machine_and_what_did_not_run(load, monkeypatch, tmp_path):
    figures = load("benchmarks/figures.py")
    monkeypatch.setattr(figures, "RECORD", tmp_path / "figures.json")
    path = tmp_path / "check.json"
    path.write_text(json.dumps(RECORD))
    figures.main(["--gpu", str(path)])

    entry = json.loads(figures.RECORD.read_text("utf-8"))["figures"]["gpu"]
    assert entry["processor"] == "NVIDIA A, 80 GB, driver 1.2; a CPU"
    assert (entry["commit"], entry["date"], entry["versions"]) == ("0123abcd", "2026-01-02", {"python": "3.12"})
    assert entry["parts"] == {"tests": "finished", "hits": "not run"}
    assert entry["values"] == {"check/table": "| job | 12.5 |"}
    assert figures.is_record_of(entry, figures.read_measurements()["gpu"])


@pytest.mark.parametrize("content", ["", "[]", '{"rows": []}', json.dumps({**RECORD, "tiny": True}), None])
def test_figures_refuse_another_file_and_a_tiny_run(load, monkeypatch, tmp_path, content):
    figures = load("benchmarks/figures.py")
    monkeypatch.setattr(figures, "RECORD", tmp_path / "figures.json")
    path = tmp_path / "check.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit, match=r"check\.json: "):
        figures.main(["--gpu", str(path)])
    assert not figures.RECORD.exists()


def test_wheels_that_are_not_there_are_refused(tmp_path):
    environment = {**os.environ, "WHEELS": str(tmp_path / "none")}
    command = ["bash", str(ROOT / "release/gpu_check.sh"), "--tiny"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no such folder" in done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_every_part_runs_on_a_cpu(tmp_path):
    environment = {**os.environ, "PYTHON": sys.executable}
    command = ["bash", str(ROOT / "release/gpu_check.sh"), "--tiny", "--out", str(tmp_path / "check.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    record = json.loads((tmp_path / "check.json").read_text("utf-8"))
    statuses = {name: part["status"] for name, part in record["parts"].items()}
    assert statuses == dict.fromkeys(statuses, "finished"), done.stdout
    assert done.returncode == 0
    assert all(part["rows"] for part in record["parts"].values())
