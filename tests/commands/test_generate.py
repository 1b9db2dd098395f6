import json
import re
from pathlib import Path

import pytest
from llm_server import llm_server
from scripted_writer import ScriptedWriter, write_rows_of

from narrlit.data.readers import read_examples
from narrlit.data.views import read_views
from narrlit.prompts import load_prompt

ASPECTS = ("theme", "action", "outcome")


@pytest.fixture
def writer():
    return ScriptedWriter(count=3)


@pytest.fixture
def server(writer):
    with llm_server(reply_of=writer.reply_of) as running:
        yield running


@pytest.fixture
def generate(narrlit, server, tmp_path):
    """generate("negatives", ...): the command on three rows of StoryWorld."""
    rows = write_rows_of(tmp_path / "rows.jsonl", 3)

    def run(action, *options):
        return narrlit(
            "generate", action, rows, "--out", "out.jsonl", "--base-url", server.url, "--llm-model", "tiny", *options
        )

    return run


def report():
    return json.loads(Path("out.jsonl.report.json").read_text(encoding="utf-8"))


def test_negatives_are_written_with_a_report_and_a_second_run_asks_nothing(generate, server, tmp_path):
    done = generate("negatives")
    assert done.code == 0, done.err

    made = read_examples("out.jsonl")
    kinds = ["triple", *(kind for kind in ASPECTS for _ in range(3))]
    assert [list(example.kinds) for example in made] == [kinds] * 3

    told = report()
    assert told["items"] == 3
    assert told["complete"] == 3
    assert told["incomplete"] == {}
    assert told["replies"] == {kind: {"accepted": 9} for kind in ASPECTS}
    assert told["prompts"] == {f"negatives_{kind}": load_prompt(f"negatives_{kind}").digest for kind in ASPECTS}
    assert told["usage"]["answered"] == len(server.bodies) == 27
    assert told["sampling"] == {"max_tokens": 1200, "temperature": 0.8, "top_p": 0.9}
    assert [line.split() for line in done.out.splitlines()] == [
        ["replies", "theme", "action", "outcome", "all"],
        ["accepted", "9", "9", "9", "27"],
    ]

    before = (tmp_path / "out.jsonl").read_bytes()
    assert generate("negatives").code == 0
    assert len(server.bodies) == 27
    assert (tmp_path / "out.jsonl").read_bytes() == before

    refused = generate("negatives", "--temperature", "0.5")
    assert refused.code == 2
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert "out.jsonl exists, made with other settings: give --overwrite to replace it" in refused.err
    assert report()["usage"]["from_cache"] == 27


def test_views_are_written_as_files_of_views_are_read(generate, server):
    done = generate("views")
    assert done.code == 0, done.err

    found = read_views("out.jsonl")
    assert len(found) == 9
    assert found.report.dropped == {}
    assert report()["replies"] == {"views": {"accepted": 9}}
    assert all(body["temperature"] == 0.3 and "top_p" not in body for body in server.bodies)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("cut off", "cut off"),
        ("placeholder", {"negatives": "placeholder", "views": "placeholder"}),
        ("wrong schema", {"negatives": "neg_* missing", "views": "theme missing"}),
        ("500", "no answer: HTTP 500"),
        ("text around", None),
    ],
)
@pytest.mark.parametrize("kind", ["negatives", "views"])
def test_a_job_ends_and_counts_every_failure(generate, server, kind, mode, reason):
    reason = reason[kind] if isinstance(reason, dict) else reason
    server.mode = mode
    done = generate(kind, "--retries", "0", "--attempts", "2", "--concurrency", "16")
    found = report()
    if reason is None:
        assert done.code == 0
        assert found["complete"] == found["items"]
        return

    assert done.code == 1, done.err
    assert found["complete"] == 0, done.err
    assert len(found["incomplete"]) == found["items"], done.err

    verdicts = {re.sub("neg_[a-z]+", "neg_*", verdict) for counts in found["replies"].values() for verdict in counts}
    assert verdicts - {"no answer: not sent"} == {reason}
    assert len(found["replies"]) == (3 if kind == "negatives" else 1)

    if kind == "negatives":  # the rows stay, with their own negatives
        assert [len(example.negatives) for example in read_examples("out.jsonl")] == [1, 1, 1]
    else:
        assert "no views" in done.err


def test_failures_of_some_rows_do_not_affect_others_and_are_retried_later(generate, server, writer):
    anchor = read_examples("rows.jsonl").texts()[1][0]
    server.mode = lambda body: "500" if json.loads(body["messages"][1]["content"])["anchor"] == anchor else None
    done = generate("negatives", "--retries", "0")

    assert done.code == 1
    assert [len(example.negatives) for example in read_examples("out.jsonl")] == [10, 1, 10]
    assert "row 2 lacks 3 theme (3 no answer: HTTP 500), 3 action (3 no answer" in done.err

    server.mode = None
    asked = len(writer.asked)
    assert generate("negatives").code == 0
    assert len(writer.asked) == asked + 9
    assert [len(example.negatives) for example in read_examples("out.jsonl")] == [10, 10, 10]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("negatives", "rows.jsonl", "--out", "./rows.jsonl"), "name another"),
        (
            ("negatives", "rows.jsonl", "--out", "out.jsonl", "--prompts", "nowhere"),
            "--prompts nowhere: no such folder",
        ),
    ],
)
def test_mistakes_cost_one_line(narrlit, tmp_path, arguments, said):
    write_rows_of(tmp_path / "rows.jsonl", 1)
    done = narrlit("generate", *arguments, "--base-url", "http://127.0.0.1:9/v1", "--llm-model", "tiny")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
