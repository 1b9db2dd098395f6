import json
from collections import Counter
from pathlib import Path

import pytest
from llm_server import llm_server
from scripted_writer import ScriptedWriter, write_rows_of

from narrlit.data.readers import read_examples
from narrlit.data.records import DIMENSIONS
from narrlit.data.views import read_views
from narrlit.prompts import load_prompt

KEY = "sk-not-a-real-key-9f3a"


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
            "generate", action, rows, "--out", "out.jsonl", "--llm", server.url, "--llm-model", "tiny", *options
        )

    return run


def report():
    return json.loads(Path("out.jsonl.report.json").read_text(encoding="utf-8"))


def test_negatives_are_written_with_a_report_and_a_second_run_asks_nothing(generate, server, tmp_path):
    done = generate("negatives")
    assert done.code == 0, done.err
    made = read_examples("out.jsonl").records
    kinds = ["triple", *(kind for kind in DIMENSIONS for _ in range(3))]
    assert [[n.kind for n in example.negatives] for example in made] == [kinds] * 3
    told = report()
    assert (told["items"], told["whole"], told["shortfalls"]) == (3, 3, [])
    assert told["replies"] == {kind: {"sound": 9} for kind in DIMENSIONS}
    assert told["prompts"] == {f"negatives_{kind}": load_prompt(f"negatives_{kind}").digest for kind in DIMENSIONS}
    assert told["usage"]["asked"] == len(server.bodies) == 27
    assert "sound" in done.out
    assert done.out.splitlines()[-1].split() == ["sum", "9", "9", "9", "27"]
    before = (tmp_path / "out.jsonl").read_bytes()
    assert generate("negatives").code == 0
    assert len(server.bodies) == 27
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert report()["usage"]["from_log"] == 27


def test_what_is_sent_is_what_the_options_say(generate, server):
    done = generate(
        "negatives", "--candidates", "1", "--temperature", "0.5", "--max-tokens", "99", "--leave-out", "top_p"
    )
    assert done.code == 0, done.err
    assert len(server.bodies) == 9
    for body in server.bodies:
        assert (body["temperature"], body["seed"], "top_p" in body) == (0.5, 42, False)
        assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))
        assert body["messages"][0]["content"].startswith("You write stories.")


def test_views_are_written_as_files_of_views_are_read(generate, server):
    done = generate("views")
    assert done.code == 0, done.err
    found = read_views("out.jsonl")
    assert (len(found.records), found.dropped) == (9, {})
    assert report()["replies"] == {"views": {"sound": 9}}
    assert all(body["temperature"] == 0.3 and "top_p" not in body for body in server.bodies)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("cut off", "cut off"),
        ("placeholder", "placeholder"),
        ("wrong schema", "unparsable"),
        ("broken JSON", "unparsable"),
        ("empty", "unparsable"),
        ("500", "no answer: HTTP 500"),
        ("429", "no answer: HTTP 429"),
        ("time-out", "no answer: time-out"),
        ("text around", None),
    ],
)
@pytest.mark.parametrize("action", ["negatives", "views"])
def test_a_job_ends_and_counts_every_failure(generate, server, action, mode, reason):
    server.mode = mode
    seconds = "0.5" if mode == "time-out" else "60"
    done = generate(action, "--retries", "0", "--timeout", seconds, "--attempts", "2", "--concurrency", "16")
    told = report()
    if reason is None:
        assert (done.code, told["whole"]) == (0, told["items"])
        return
    assert (done.code, told["whole"]) == (1, 0), done.err
    counted = Counter({verdict: count for kind in told["replies"].values() for verdict, count in kind.items()})
    assert list(counted) == [reason]
    kinds = 3 if action == "negatives" else 1
    assert all(set(kind) == {reason} for kind in told["replies"].values())
    assert len(told["replies"]) == kinds
    assert len(told["shortfalls"]) == told["items"]
    if action == "negatives":  # the rows are kept, with their own negatives
        assert [len(example.negatives) for example in read_examples("out.jsonl").records] == [1, 1, 1]
    else:
        assert "no views" in done.err


def test_what_fails_in_some_rows_leaves_the_others_whole_and_is_made_later(generate, server, writer):
    anchor = read_examples("rows.jsonl").records[1].anchor
    server.mode = lambda body: "500" if json.loads(body["messages"][1]["content"])["anchor"] == anchor else None
    done = generate("negatives", "--retries", "0")
    assert done.code == 1
    assert [len(example.negatives) for example in read_examples("out.jsonl").records] == [10, 1, 10]
    assert "row 2 lacks 3 theme (3 no answer: HTTP 500)" in done.err
    server.mode = None
    asked = len(writer.asked)
    assert generate("negatives").code == 0
    assert len(writer.asked) == asked + 9
    assert [len(example.negatives) for example in read_examples("out.jsonl").records] == [10, 10, 10]


def test_the_key_stands_in_no_file_and_no_message(generate, server, tmp_path, monkeypatch):
    server.key = KEY
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = generate("negatives", "--candidates", "1")
    assert done.code == 0, done.err
    assert KEY not in done.out + done.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 4
    assert not any(KEY in path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("views", "rows.jsonl", "--out", "out.jsonl", "--candidates", "2"), "--candidates is an option of negatives"),
        (("views", "rows.jsonl", "--out", "out.jsonl", "--allow-names"), "--allow-names is an option of negatives"),
        (("negatives", "rows.jsonl", "--out", "out.csv"), "ends in .jsonl"),
        (("negatives", "rows.jsonl", "--out", "./rows.jsonl"), "name another"),
        (("negatives", "nowhere.jsonl", "--out", "out.jsonl"), "nowhere.jsonl does not exist"),
        (("negatives", "rows.jsonl", "--out", "out.jsonl", "--attempts", "0"), "--attempts 0"),
        (
            ("negatives", "rows.jsonl", "--out", "out.jsonl", "--prompts", "nowhere"),
            "--prompts nowhere: no such folder",
        ),
        (("stories", "rows.jsonl", "--out", "out.jsonl"), "stories"),
    ],
)
def test_mistakes_are_told_in_one_line(narrlit, tmp_path, arguments, said):
    write_rows_of(tmp_path / "rows.jsonl", 1)
    done = narrlit("generate", *arguments, "--llm", "http://127.0.0.1:9/v1", "--llm-model", "tiny")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
