"""Generation as a whole: killed and resumed, by batches, and what comes of it in training."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from llm_server import llm_server, question, schema_of
from run_helpers import run_apart
from scripted_writer import SEED, ScriptedWriter, world_triples, write_rows_of

from narrlit.data.readers import read_examples
from narrlit.data.records import DIMENSIONS
from narrlit.data.storyworld import judged_triples
from narrlit.data.views import read_views
from narrlit.data.writers import write_triples

pytestmark = pytest.mark.slow


def sometimes_wrong(kind, content, attempt):
    """Of every third first reply a placeholder, so that the job has something to ask again."""
    return '{"theme": "..."}' if attempt == 0 and len(json.dumps(content)) % 3 == 0 else None


def identity(body):
    """What makes a request of these jobs another: what is asked for, of which story, and the attempt."""
    return json.dumps(schema_of(body)["required"]), question(body), body["seed"] - SEED


def in_log(path):
    """The identities of the requests whose replies a log holds; half a line at its end is not read."""
    found = set()
    for line in path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []:
        entry = json.loads(line)
        if "reply" in entry:
            asked = entry["request"]
            found.add((json.dumps(asked["schema"]["required"]), asked["content"], asked["attempt"]))
    return found


def start(arguments, cwd):
    command = [sys.executable, "-m", "narrlit", *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))


@pytest.mark.parametrize("action", ["negatives", "views"])
def test_a_job_killed_three_times_asks_for_nothing_that_the_log_answers(action, tmp_path):
    rows = write_rows_of(tmp_path / "rows.jsonl", 50)
    rng = random.Random(7)
    writer = ScriptedWriter(count=50, spoil=sometimes_wrong)
    log = tmp_path / "out.jsonl.log.jsonl"
    with llm_server(reply_of=writer.reply_of, seconds=0.02) as server:
        arguments = ["generate", action, rows, "--out", "out.jsonl", "--llm", server.url, "--llm-model", "tiny"]
        known, asked_again = set(), set()
        for _ in range(3):
            before = len(server.bodies)
            job = start(arguments, tmp_path)
            until = before + rng.randint(15, 45)
            deadline = time.monotonic() + 120
            while len(server.bodies) < until and job.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            assert job.poll() is None, job.communicate()
            job.kill()
            job.communicate()
            asked_again |= known & {identity(body) for body in server.bodies[before:]}
            known = in_log(log)
            assert not (tmp_path / "out.jsonl").exists()
        before = len(server.bodies)
        done = run_apart(arguments, tmp_path)
        asked_again |= known & {identity(body) for body in server.bodies[before:]}
        bodies = [identity(body) for body in server.bodies]
    assert done.returncode == 0, done.stderr[-2000:]
    assert asked_again == set()
    # What was on its way at a kill is asked a second time, at most the eight at a time of three kills.
    assert len(bodies) - len(set(bodies)) <= 3 * 8
    told = json.loads((tmp_path / "out.jsonl.report.json").read_text())
    assert told["items"] == told["whole"] == (50 if action == "negatives" else 150)
    assert "sum" in done.stdout
    assert set(bodies) == in_log(log)
    if action == "negatives":
        made = read_examples(tmp_path / "out.jsonl").records
        assert [len(example.negatives) for example in made] == [10] * 50
        assert len({example.anchor for example in made}) == 50
    else:
        found = [story.text for story in read_views(tmp_path / "out.jsonl").records]
        assert len(found) == len(set(found)) == 150


def test_a_round_of_all_rows_is_one_batch(tmp_path):
    rows = write_rows_of(tmp_path / "rows.jsonl", 3)

    def spoil(kind, content, attempt):
        return "..." if (kind, attempt) == ("outcome", 1) else None

    writer = ScriptedWriter(count=3, spoil=spoil)
    with llm_server(reply_of=writer.reply_of) as server:
        reached = ("--llm", server.url, "--llm-model", "tiny", "--transport", "batch")
        done = run_apart(["generate", "negatives", rows, "--out", "out.jsonl", *reached], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(writer.asked) == 3 * 10
    assert done.stderr.count("requests sent") == 2
    assert [len(e.negatives) for e in read_examples(tmp_path / "out.jsonl").records] == [10] * 3


def test_generated_negatives_train_the_quickstart_of_hits(tiny, tmp_path):
    rows = write_rows_of(tmp_path / "rows.jsonl", 12)
    triples = judged_triples(world_triples(16)[12:])
    write_triples(tmp_path / "validation.jsonl", triples)

    def spoil(kind, content, attempt):  # one anchor without negatives of its outcome: a row with fewer
        told = json.dumps({"neg_outcome": "..."})
        return told if kind == "outcome" and content["anchor"] == world_triples(1)[0].anchor.text else None

    writer = ScriptedWriter(count=12, spoil=spoil)
    with llm_server(reply_of=writer.reply_of) as server:
        reached = ("--llm", server.url, "--llm-model", "tiny")
        made = run_apart(["generate", "negatives", rows, "--out", "neg.jsonl", *reached], tmp_path)
    assert made.returncode == 1, made.stderr[-2000:]
    configs = Path(__file__).parents[1] / "configs"
    encoder, logger = "--model.init_args.encoder", "--trainer.logger.init_args"
    arguments = [
        *("fit", "--config", configs / "quickstart_hits.yaml", "--config", configs / "hardware/cpu.yaml"),
        *("--data", "FileData", "--data.train", "neg.jsonl", "--data.validation", "validation.jsonl"),
        *("--data.loading.batch_size", "4", f"{encoder}.model", tiny(), "--model.init_args.mask_margin", "0"),
        *(
            "--trainer.max_epochs",
            "2",
            f"{logger}.save_dir",
            tmp_path,
            f"{logger}.name",
            "hits",
            f"{logger}.version",
            "",
        ),
    ]
    done = run_apart(arguments, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    (masked,) = (line for line in done.stderr.splitlines() if "teacher's mask kept" in line)
    assert all(f"{kind} 0." in masked or f"{kind} 1." in masked for kind in DIMENSIONS)  # all of them reached the loss
    record = json.loads((tmp_path / "hits/run.json").read_text())
    assert [entry["round"] for entry in record["rounds"]] == [0, 1]
    kept = [len(e.negatives) for e in read_examples(tmp_path / "neg.jsonl").records]
    assert kept == [7, *[10] * 11]
    kinds = {n.kind for e in read_examples(tmp_path / "neg.jsonl").records for n in e.negatives}
    assert kinds == {"triple", *DIMENSIONS}
