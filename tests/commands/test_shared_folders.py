"""Folders that a run resumes: one writer at a time, readers meanwhile, the ignored lock of a killed run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused

import narrlit
from narrlit.experiments.plan import Plan, PlannedFit
from narrlit.files import exclusive

HOLD = """
import sys
from narrlit.files import exclusive
with exclusive(sys.argv[1], name=sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold():
    """hold(folder, name): a process that writes the folder until it is killed."""
    processes = []

    def start(folder, name=".lock"):
        command = [sys.executable, "-c", HOLD, str(folder), name]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def is_in_use(found, folder):
    assert found.code == 2, found.err
    assert f"{folder}: another run is writing this folder" in found.err, found.err
    return True


def test_an_index_is_written_by_one_process_and_read_meanwhile(narrlit, tiny, make, hold):
    make("one.csv", "id,text\n1,A king fell ill. He died.\n")
    make("two.csv", "id,text\n2,A queen found a ring.\n")
    index = ["--model", tiny(), "--out", "i"]

    assert narrlit("index", "one.csv", *index).code == 0
    assert not Path("i/.lock").exists()

    writer = hold("i")
    assert is_in_use(narrlit("index", "two.csv", *index), "i")
    assert narrlit("search", "i", "a king").code == 0

    kill(writer)
    assert Path("i/.lock").exists()

    found = narrlit("index", "two.csv", *index)
    assert found.code == 0, found.err
    assert "i: 2 stories" in found.err, found.err


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_that_make_one_index(narrlit, tiny, make):
    make("s.csv", "id,text\n" + "".join(f"{n},A king of {n} years fell ill.\n" for n in range(50)))
    index = ["index", "s.csv", "--model", tiny(), "--out", "i"]
    libraries = "import sys, lancedb, narrlit.library.index; from narrlit.cli import main"
    code = f"{libraries}; print(flush=True); sys.exit(main())"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    other = subprocess.Popen([sys.executable, "-c", code, *index], text=True, **pipes)
    other.stdout.readline()  # its libraries are loaded: both begin now
    here = narrlit(*index)
    codes, errors = [here.code], [here.err]
    errors.append(other.communicate()[1])
    codes.append(other.returncode)

    assert 0 in codes, errors
    assert all(code == 0 or "another run is writing" in err for code, err in zip(codes, errors, strict=True)), errors
    assert "i: 50 stories" in narrlit("index", "s.csv", "--model", tiny(), "--out", "i").err


def test_parts_are_written_by_one_process_of_each_number(narrlit, tiny, make, hold, monkeypatch):
    make("rows.jsonl", [{"plot": f"A king of {n} years fell ill."} for n in range(6)])
    embed = ["embed", "rows.jsonl", "--model", tiny(), "--part-rows", 2, "--out", "out"]
    writer = hold("out", ".lock-0-of-1")

    assert is_in_use(narrlit(*embed), "out")

    kill(writer)
    other = hold("out", ".lock-1-of-2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")

    assert is_in_use(narrlit(*embed), "out")

    monkeypatch.setenv("RANK", "0")
    assert narrlit(*embed).code == 0

    kill(other)


def test_a_lock_leaves_nothing(tmp_path):
    with exclusive(tmp_path / "a" / "b"):
        assert (tmp_path / "a/b/.lock").exists()

    assert not (tmp_path / "a/b").exists()

    with exclusive(tmp_path / "c"):
        (tmp_path / "c/x").touch()
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["x"]


def test_experiments_refuse_a_folder_that_another_run_writes(tmp_path):
    """Before any fit: a second run would remove unfinished work of the first."""
    space = {"model.init_args.scale": {"low": 5, "high": 30}}
    plan = Plan(tmp_path, [PlannedFit("a", {"seed_everything": 1}, "a test")], {"config": {}})
    with exclusive(tmp_path):
        for run in (plan.run, lambda: narrlit.tune([], space=space, trials=1, out=tmp_path)):
            with refused("folder_in_use", option="out"):
                run()

    assert list(tmp_path.iterdir()) == []
