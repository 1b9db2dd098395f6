"""Jobs killed with SIGKILL three times at random: every story once, and nothing asked again that has a reply."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from llm_jobs import content
from llm_worker import stories

COUNT = 50
TESTS = Path(__file__).parents[1] / "helpers"


def started(llm, folder, transport):
    """A job that has begun to ask."""
    command = [sys.executable, str(TESTS / "llm_worker.py"), llm.url, str(folder), transport, str(COUNT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True, cwd=folder
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def answered(folder):
    """(content, seed) of each request with a reply in whole lines of the log."""
    log = folder / "job.log.jsonl"
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    entries = [json.loads(line) for line in lines]
    return {
        (entry["request"]["content"], entry["request"]["sampling"]["seed"] + entry["request"]["attempt"])
        for entry in entries
        if "reply" in entry
    }


def asked_from(llm, start):
    return [(body["messages"][1]["content"], body["seed"]) for body in llm.bodies[start:]]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["chat", "batch"])
def test_a_job_killed_three_times_asks_nothing_that_has_a_reply_and_makes_every_story_once(llm, tmp_path, transport):
    llm.seconds = 0.05 if transport == "chat" else 0.0
    llm.batches.polls = 6
    # Every fifth story needs a second attempt, and now and then the server fails.
    again = {content(story) for story in stories(COUNT)[::5]}
    failed = []

    def mode(body):
        if body["seed"] == 42 and body["messages"][1]["content"] in again:
            return "wrong schema"
        if len(llm.bodies) % 13 == 7:
            failed.append(body)
            return "500"
        return None

    llm.mode = mode
    kills = []
    while len(kills) < 3:
        process = started(llm, tmp_path, transport)
        time.sleep(random.uniform(0.05, 0.5))
        process.kill()
        assert process.wait() == -9, "it was to be killed before its end"
        time.sleep(0.1)  # the server notices
        kills.append((answered(tmp_path), len(llm.bodies)))
    process = started(llm, tmp_path, transport)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors

    for known, start in kills:
        assert not known & set(asked_from(llm, start))
    # In a chat what was under way at a kill, at most four requests, may be asked again; in a batch nothing is.
    repeated = sum(times - 1 for times in llm.asked.values())
    assert repeated == len(failed) if transport == "batch" else repeated <= len(failed) + 3 * 4
    found = json.loads((tmp_path / "out.json").read_text())
    expected = [f"{content(story)} {43 if content(story) in again else 42}" for story in stories(COUNT)]
    assert found["themes"] == expected
    assert found["usage"]["failures"] == {}
    assert found["usage"]["from_log"] + found["usage"]["asked"] == COUNT + len(again)
    assert len(answered(tmp_path)) == COUNT + len(again)
