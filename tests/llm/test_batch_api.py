import json

import pytest
from refusals import refused

from narrlit.llm.cache import AnswerCache

STORIES = [f"story {i}" for i in range(12)]


@pytest.fixture
def batched(job):
    return lambda stories=STORIES, **options: job(stories, batch=True, **options)


def test_all_requests_go_into_one_batch_with_the_answers_of_chat(batched, job, llm, capfd, tmp_path):
    themes = batched()
    assert len(llm.batches.made) == 1
    assert "12 requests sent" in capfd.readouterr().err
    assert job.llm.usage.answered == 12
    assert job.llm.usage.completion_tokens > 0

    job.cache = tmp_path / "other"
    assert job(STORIES) == themes

    job.cache = tmp_path / "answers.sqlite"
    assert job(STORIES) == themes
    assert job.llm.usage.from_cache == 12


def test_a_batch_has_a_limit_of_requests_and_bytes(batched, llm, monkeypatch):
    monkeypatch.setattr("narrlit.llm.batch_api.MAX_REQUESTS", 5)
    batched()
    assert len(llm.batches.made) == 3

    monkeypatch.setattr("narrlit.llm.batch_api.MAX_BYTES", 1500)
    batched([f"other {i}" for i in range(4)])
    assert len(llm.batches.made) > 4


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_answers_of_an_expired_batch_are_kept_and_the_next_run_sends_the_rest(batched, llm, status):
    llm.batches.ends = iter([status])
    themes = batched()
    assert themes.count(f"batch_{status}") == 6
    assert sum(llm.answered.values()) == 6
    assert all(theme.startswith("{") for theme in batched())
    assert set(llm.answered.values()) == {1}


def test_requests_that_fail_are_counted_and_sent_again_by_the_next_run(batched, job, llm):
    llm.modes = iter(["500", "400", "no choices"])
    themes = batched()
    assert sorted(theme for theme in themes if not theme.startswith("{")) == [
        "HTTP 400",
        "HTTP 500",
        "malformed answer",
    ]
    assert sum(job.llm.usage.failures.values()) == 3

    batched()
    assert job.llm.usage.answered == 3
    assert job.llm.usage.from_cache == 9


def test_a_refused_parameter_is_left_out_of_the_next_batch(batched, job, llm):
    llm.refuses = ("seed",)
    assert all(theme.startswith("{") for theme in batched())
    assert len(llm.batches.made) == 2
    assert job.llm.usage.refused_parameters == ["seed"]


def test_a_batch_that_the_server_refuses_ends_the_job(batched, llm):
    llm.batches.ends = iter(["failed"])
    with refused("batch_refused", batch="batch_0", reason="no such model"):
        batched()
    assert all(theme.startswith("{") for theme in batched())
    assert len(llm.batches.made) == 2


class Killed(Exception):
    pass


def interrupt(monkeypatch, name):
    """Stop the job where `name` is called first."""
    original = getattr(AnswerCache, name)
    calls = []

    def stop(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise Killed
        return original(*arguments)

    monkeypatch.setattr(AnswerCache, name, stop)


@pytest.mark.parametrize("place", ["set_batch_id", "finish_batch"])
def test_an_interrupted_job_waits_for_its_batch_and_sends_nothing_again(batched, job, llm, monkeypatch, place):
    """Before the batch's id is recorded, and before its answers are."""
    interrupt(monkeypatch, place)
    with pytest.raises(Killed):
        batched()
    assert all(theme.startswith("{") for theme in batched())
    assert len(llm.batches.made) == 1
    assert job.llm.usage.from_cache == 12


def test_a_batch_that_never_reached_the_server_is_sent(batched, llm):
    llm.batches.before_making = lambda body: (500, {}, {"error": {"message": "out of order"}})
    with refused("batch_failed", reason="InternalServerError"):
        batched()

    llm.batches.before_making = lambda body: None
    assert all(theme.startswith("{") for theme in batched())
    assert len(llm.batches.made) == 1


def test_a_batch_that_the_server_forgot_is_sent_again(batched, llm, monkeypatch, capfd):
    interrupt(monkeypatch, "finish_batch")
    with pytest.raises(Killed):
        batched()

    llm.batches.made.clear()
    assert all(theme.startswith("{") for theme in batched())
    assert "no longer on the server" in capfd.readouterr().err


def test_a_server_without_batches_is_named(batched, llm, monkeypatch):
    monkeypatch.setattr(llm.batches, "upload", lambda *form: (404, {}, {"detail": "Not Found"}))
    with refused("batch_failed"):
        batched()


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: b"[1]",
        lambda line: b"[" * 100_000,
        lambda line: json.dumps({**json.loads(line), "response": "none"}).encode(),
        lambda line: b"\xff\xfe",
    ],
    ids=["cut", "list", "deep", "other type", "bytes"],
)
def test_a_broken_line_affects_only_its_own_answer(batched, job, llm, capfd, damage):
    get = llm.batches.get

    def damaged(path):
        status, headers, body = get(path)
        if path.endswith("/content"):
            first, *others = body.splitlines()
            body = b"\n".join([damage(first), *others])
        return status, headers, body

    llm.batches.get = damaged
    themes = batched()

    assert sum(theme.startswith("{") for theme in themes) == 11
    assert "11 answers, 1 broken lines" in capfd.readouterr().err

    llm.batches.get = get
    assert all(theme.startswith("{") for theme in batched())
    assert job.llm.usage.answered == 1
    assert job.llm.usage.from_cache == 11
