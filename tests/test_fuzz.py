"""The fuzzer: it finds tracebacks, hangs and changed inputs, and none in a few runs of every command."""

import importlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fuzz")


@pytest.fixture
def run(fuzz, monkeypatch, tmp_path):
    """run(main, way): the outcome of a command that does as main does, on inputs broken in that way."""
    template = tmp_path / "inputs"
    for name in ("model", "world"):
        (template / name).mkdir(parents=True)
    (template / "config.yaml").write_text("a: 1\n")
    (template / "stories.jsonl").write_text('{"text": "A king."}\n')

    WAYS = fuzz.WAYS

    def outcome(main, way="unbroken", limit=2.0):
        monkeypatch.setattr(fuzz, "main", main)
        monkeypatch.setattr(fuzz, "WAYS", {way: WAYS.get(way, lambda case: None)})
        fuzz.shuffled_pairs.cache_clear()
        job = fuzz.Job(("embed", "stories.jsonl", "--out", "e.npy"))
        return fuzz.run_case(fuzz.Setting(template, tmp_path / "runs", [job], 1, limit), 0)

    return outcome


def fails():
    raise ZeroDivisionError


def refuses():
    print("narrlit: error: stories.jsonl is empty", file=sys.stderr)
    return 2


def prints():
    print("x" * 100_000)
    return 0


def sleeps_once():
    if not Path("begun").exists():
        Path("begun").touch()
        time.sleep(60)
    return 0


@pytest.mark.long
def test_what_goes_wrong_is_counted(run):
    assert run(fails).faults == ["traceback"]
    assert run(lambda: 1).faults == ["traceback"]  # no finding of this command
    assert run(lambda: 2).faults == ["traceback"]  # without a line
    assert run(lambda: time.sleep(60)).faults == ["hang"]
    assert run(lambda: Path("stories.jsonl").unlink() or 0).faults == ["changed"]
    assert run(lambda: Path("world/new").write_text("x") * 0).faults == []  # no input of this command


@pytest.mark.long
def test_what_goes_right_is_not(run):
    assert run(refuses).code == 2
    assert run(refuses).faults == []
    assert run(lambda: Path("e.npy").write_text("x") * 0, "bit flips").faults == []
    assert run(sleeps_once, "killed", limit=50).faults == []  # seconds: a busy machine takes long to start again


def test_streams_are_those_that_a_way_makes(run):
    assert run(prints, "broken pipe").faults == ["traceback"]  # an exit code of the interpreter
    assert (
        run(lambda: 0 if sys.stdout is None or sys.stdin is None or sys.stderr is None else 9, "closed streams").code
        == 0
    )


def test_a_run_depends_on_its_number_alone(fuzz, tmp_path):
    jobs = fuzz.jobs("http://127.0.0.1:1/v1")

    def pairs(seed, count=50):
        setting = fuzz.Setting(tmp_path, tmp_path, jobs, seed, 60)
        return [setting.pair(number) for number in range(count)]

    assert pairs(seed=1) == pairs(seed=1)
    assert pairs(seed=1) != pairs(seed=2)
    assert len(set(pairs(seed=1))) > 45

    weights = sum(job.weight for job in jobs)
    every = set(pairs(seed=1, count=weights * len(fuzz.WAYS)))
    assert len(every) == len(jobs) * len(fuzz.WAYS)


@pytest.mark.long
@pytest.mark.slow
def test_a_few_runs_find_nothing():
    words = [sys.executable, str(BENCHMARKS / "fuzz.py"), "--seed", "1", "--runs", "12", "--limit", "600"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert "12 runs: 0 tracebacks, 0 hangs, 0 inputs changed" in done.stdout
