"""Jobs killed with SIGKILL at random: nothing that has an answer is sent again."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from llm_worker import content, stories

COUNT = 30
HELPERS = Path(__file__).parents[1] / "helpers"


def start(llm, folder, transport):
    command = [sys.executable, str(HELPERS / "llm_worker.py"), llm.url, str(folder), transport, str(COUNT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), *sys.path])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def answered(folder):
    """(content, seed) of each request with an answer in the cache."""
    if not (folder / "answers.sqlite").exists():
        return set()
    with closing(sqlite3.connect(folder / "answers.sqlite")) as database:
        rows = [json.loads(row) for (row,) in database.execute("SELECT request FROM answers WHERE finish IS NOT NULL")]
    return {(row["content"], row["seed"]) for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["chat", "batch"])
def test_a_killed_job_sends_nothing_that_has_an_answer(llm, tmp_path, transport):
    llm.seconds = 0.05 if transport == "chat" else 0.0
    llm.batches.polls = 8
    again = {content(story) for story in stories(COUNT)[::5]}  # these need a second attempt

    def mode(body):
        return "wrong schema" if body["seed"] == 42 and body["messages"][1]["content"] in again else None

    llm.mode = mode
    process = start(llm, tmp_path, transport)
    time.sleep(random.uniform(0.1, 0.35))
    process.kill()
    assert process.wait() == -9, "killed after its end"
    time.sleep(0.1)  # the server notices
    known, first = answered(tmp_path), len(llm.bodies)
    process = start(llm, tmp_path, transport)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert not known & {(body["messages"][1]["content"], body["seed"]) for body in llm.bodies[first:]}
    # In a chat the four requests under way at the kill may be sent again, in batches none.
    assert sum(times - 1 for times in llm.asked.values()) <= (4 if transport == "chat" else 0)
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["themes"] == [f"{content(s)} {43 if content(s) in again else 42}" for s in stories(COUNT)]
    assert found["answered"] + found["from_cache"] >= COUNT + len(again)
    assert len(answered(tmp_path)) == COUNT + len(again)
