"""Every command and every piece of Python in the README runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from llm_server import llm_server, schema_of
from scripted_writer import ScriptedWriter

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "bash" for line in block.strip().split("\n")]
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
# What sets up the environment in which the tests run, runs for minutes with a test of its own, or never ends.
ELSEWHERE = {"make demo", "make test", "pip install 'narrlit[minilm]'", "narrlit demo", "tensorboard --logdir runs"}
SERVER = "export OPENAI_BASE_URL=http://localhost:8000/v1 NARRLIT_LLM_MODEL=Qwen/Qwen2.5-32B-Instruct"
ELSEWHERE |= {SERVER}
SHORT = [
    "--trainer.limit_train_batches",
    "1",
    "--trainer.max_epochs",
    "6",
    "--model.init_args.encoder.max_length",
    "32",
    "--trainer.limit_val_batches",
    "1",
]


def test_the_readme_opens_with_the_two_commands():
    assert [line.partition("#")[0].strip() for line in COMMANDS[:2]] == ["make demo", "make test"]


def replies(writer):
    """A language model that writes as StoryWorld does, and judges for A."""

    def reply_of(body):
        return '{"closer": "A"}' if "closer" in schema_of(body)["properties"] else writer.reply_of(body)

    return reply_of


@pytest.mark.slow
def test_every_command_and_program_runs(narrlit, tmp_path, monkeypatch):
    told = [line.partition("  #")[0].strip() for line in COMMANDS]
    assert set(told) >= ELSEWHERE
    run = [shlex.split(line) for line in told if line not in ELSEWHERE]
    assert len(run) >= 10
    writer = ScriptedWriter(48, seed=0, splits=("train", "test"))
    with llm_server(reply_of=replies(writer)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("NARRLIT_LLM_MODEL", "tiny")
        for words in run:
            assert words[0] == "narrlit", words
            done = narrlit(*words[1:], *(SHORT if words[1] == "fit" else []))
            assert done.code == 0, (words, done.err[-3000:])
    assert len(PYTHON) == 2
    for program in PYTHON:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (program, done.stderr)
