"""Batches: one for all that is asked, taken up where an interrupted job left them, none sent twice."""

import asyncio
import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from llm_jobs import STORIES, content, job, options, request, sound, theme, themes

from narrlit.errors import ModelError
from narrlit.llm import batch as batch_module
from narrlit.llm import batch_service
from narrlit.llm.batch_lines import reply_of_line
from narrlit.llm.batch_records import Batch, BatchRecords
from narrlit.llm.batch_service import BatchService, why_failed
from narrlit.llm.log import Log
from narrlit.llm.retrying import Fault
from narrlit.llm.usage import Usage


class PowerCutError(Exception):
    """Ends the job where it is."""


def cut(*arguments):
    raise PowerCutError


def batched(llm, folder, **given):
    return job(llm, folder, transport="batch", **given)


def sizes(llm):
    """How many requests each batch that was made has."""
    return [len(llm.batches.files[made["input_file_id"]].splitlines()) for made in llm.batches.made.values()]


def left(folder):
    with BatchRecords(folder / "job.log.jsonl.batches") as records:
        return records.left


def test_all_that_is_asked_is_one_batch_and_replies_come_to_their_questions(llm, tmp_path, capfd):
    asker = batched(llm, tmp_path)
    assert themes(asker) == [sound(story) for story in STORIES]
    assert sizes(llm) == [len(STORIES)]
    assert asker.usage.asked == len(STORIES)
    assert left(tmp_path) == {}
    assert "batch batch_0: completed; 12 of 12 requests came back" in capfd.readouterr().err


def test_a_batchs_file_is_what_the_interface_wants_and_the_same_bodies_as_a_chats(llm, tmp_path):
    themes(batched(llm, tmp_path), ["S"])
    (made,) = llm.batches.made.values()
    assert (made["endpoint"], made["completion_window"]) == ("/v1/chat/completions", "24h")
    line = json.loads(llm.batches.files[made["input_file_id"]])
    assert set(line) == {"custom_id", "method", "url", "body"}
    assert (line["custom_id"], line["method"]) == (request("S").key("tiny"), "POST")
    (kept,) = (path for path in (tmp_path / "job.log.jsonl.batches").iterdir() if path.name != "batches.jsonl")
    assert kept.read_bytes() == llm.batches.files[made["input_file_id"]]
    themes(job(llm, tmp_path, log=str(tmp_path / "chat")), ["S"])
    assert llm.bodies[0] == llm.bodies[1] == line["body"]


def test_what_is_asked_again_makes_the_next_batch(llm, tmp_path):
    again = {content(story) for story in STORIES[:5]}
    llm.mode = lambda body: "placeholder" if body["seed"] == 42 and body["messages"][1]["content"] in again else None
    found = themes(batched(llm, tmp_path), attempts=3)
    assert found == [sound(story, 43 if place < 5 else 42) for place, story in enumerate(STORIES)]
    assert sizes(llm) == [12, 5]


def test_questions_asked_at_once_and_one_after_the_other_share_batches(llm, tmp_path):
    async def work(story, ask):
        await asyncio.gather(ask(request(story)), ask(request(story, 1)))
        return (await ask(request(story, 2))).finish

    assert batched(llm, tmp_path).run(["S", "T"], work, "story") == ["stop"] * 2
    assert sizes(llm) == [4, 2]


def test_a_batch_waits_for_those_who_are_about_to_ask(llm, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "QUIET_SECONDS", 0.6)

    async def work(seconds, ask):
        await asyncio.sleep(seconds)
        return (await ask(request(str(seconds)))).finish

    assert batched(llm, tmp_path).run([0.0, 0.2, 0.4, 0.6, 0.8], work, "story") == ["stop"] * 5
    assert sizes(llm) == [5]


def test_what_is_too_much_for_one_batch_is_several(llm, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_module, "MOST_REQUESTS", 5)
    assert themes(batched(llm, tmp_path)) == [sound(story) for story in STORIES]
    assert sizes(llm) == [5, 5, 2]
    monkeypatch.setattr(batch_module, "MOST_BYTES", 1000)
    themes(batched(llm, tmp_path / "b"))
    assert all(len(content) < 1000 for content in list(llm.batches.files.values())[6::2][:3])
    assert sum(sizes(llm)[3:]) == 12


def test_requests_that_failed_in_passing_are_in_the_next_batch_and_others_are_told(llm, tmp_path):
    once = iter(["500", "429"])
    llm.mode = lambda body: "400" if content(STORIES[3]) == body["messages"][1]["content"] else next(once, None)
    asker = batched(llm, tmp_path)
    found = themes(asker)
    assert found == [sound(s) if place != 3 else "none: HTTP 400" for place, s in enumerate(STORIES)]
    assert sizes(llm) == [12, 2]
    assert asker.usage.retries == {"HTTP 500": 1, "HTTP 429": 1}
    assert asker.usage.failures == {"HTTP 400": 1}


def test_an_expired_batch_gives_what_it_has_and_the_same_command_asks_the_rest(llm, tmp_path, capfd):
    llm.batches.ends = iter(["expired"])
    asker = batched(llm, tmp_path)
    found = themes(asker)
    assert found == [sound(s) if place % 2 == 0 else "none: batch expired" for place, s in enumerate(STORIES)]
    assert asker.usage.failures == {"batch expired": 6}
    assert "expired; 12 of 12" in capfd.readouterr().err
    assert themes(batched(llm, tmp_path)) == [sound(story) for story in STORIES]
    assert sizes(llm) == [12, 6]
    assert set(llm.answered.values()) == {1}


def test_a_batch_that_failed_ends_the_job_with_its_words_and_is_not_waited_for_again(llm, tmp_path):
    llm.batches.ends = iter(["failed"])
    with pytest.raises(ModelError, match=r"batch_0 failed: no such model \(line 1\)"):
        themes(batched(llm, tmp_path))
    assert left(tmp_path) == {}
    assert themes(batched(llm, tmp_path)) == [sound(story) for story in STORIES]


def test_a_server_without_batches_is_told(llm, tmp_path):
    llm.batches.before_making = lambda body: (404, {}, {"detail": "Not Found"})
    with pytest.raises(ModelError, match="--transport chat"):
        themes(batched(llm, tmp_path))


STATIONS = {
    "before anything is sent": (BatchService, "send", True),
    "before the service answers": (BatchRecords, "made", True),
    "while it is under way": (BatchService, "ended", True),
    "before the replies are read": (BatchService, "lines", True),
    "before a reply is kept": (Log, "answered", True),
    "after the first replies are kept": (Log, "answered", False),
}


@pytest.mark.parametrize("station", STATIONS)
def test_wherever_a_job_ends_its_batch_is_taken_up_and_nothing_is_asked_twice(llm, tmp_path, monkeypatch, station):
    kind, name, at_once = STATIONS[station]
    real, calls = getattr(kind, name), []

    def later(*arguments):
        calls.append(name)
        return cut() if len(calls) > 3 else real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(kind, name, cut if at_once else later)
        with pytest.raises(PowerCutError):
            themes(batched(llm, tmp_path))
    assert len(left(tmp_path)) == 1
    again = batched(llm, tmp_path)
    assert themes(again) == [sound(story) for story in STORIES]
    assert sizes(llm) == [12]
    assert set(llm.asked.values()) == {1}
    assert (again.usage.asked, again.usage.from_log) == ((12, 0) if at_once else (9, 3))
    assert left(tmp_path) == {}


def test_a_batch_that_was_made_although_no_answer_came_is_not_made_twice(llm, tmp_path):
    answers = iter([None, None, (500, {}, {"error": {"message": "lost"}})])
    llm.batches.after_making = lambda body: next(answers, None)
    for story in "STU":
        assert themes(batched(llm, tmp_path), [story]) == [sound(story)]
    assert sizes(llm) == [1, 1, 1]


def test_what_a_batch_brings_for_questions_that_nobody_asks_now_waits_for_them(llm, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(BatchService, "ended", cut)
        with pytest.raises(PowerCutError):
            themes(batched(llm, tmp_path))
    assert themes(batched(llm, tmp_path), STORIES[:2]) == [sound(story) for story in STORIES[:2]]
    assert len(left(tmp_path)) == 1
    assert themes(batched(llm, tmp_path)) == [sound(story) for story in STORIES]
    assert sizes(llm) == [12]


ODD = {
    "no status": ("/v1/batches/", {"id": "batch_0"}),
    "a list": ("/v1/batches/", [7]),
    "a page": ("/v1/batches/", "<html>wait</html>"),
    "a page for lines": ("/v1/files/", "<html>wait</html>"),
    "lines that are no objects": ("/v1/files/", b'7\n["x"]\n'),
    "lines of nothing": ("/v1/files/", b"{}\n"),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_is_a_broken_one_and_asked_for_again(llm, tmp_path, monkeypatch, odd):
    monkeypatch.setattr(batch_service, "FIRST_POLL", 0.01)
    start, answer = ODD[odd]
    real, odd_ones = llm.batches.get, []

    def get(path):
        if path.startswith(start) and not odd_ones:
            odd_ones.append(path)
            return 200, {}, answer
        return real(path)

    llm.batches.get = get
    asker = batched(llm, tmp_path)
    assert themes(asker) == [sound(story) for story in STORIES]
    assert asker.usage.retries == {"broken answer": 1}
    assert sizes(llm) == [12]


@pytest.mark.parametrize("answer", ["<html>wait</html>", {}, {"id": None}])
def test_an_odd_answer_to_a_new_batch_is_looked_after_and_none_is_made_twice(llm, tmp_path, answer):
    once = iter([(200, {}, answer)])
    llm.batches.after_making = lambda body: next(once, None)
    assert themes(batched(llm, tmp_path), ["S"]) == [sound("S")]
    assert sizes(llm) == [1]


def test_a_batch_is_looked_for_on_all_pages(llm):
    entries = [{"id": f"batch {i}", "metadata": {"narrlit": f"n{i}"} if i % 2 else None} for i in range(250)]
    asked = []

    class Client:
        async def get(self, path, cast_to):
            asked.append(path)
            after = dict(parse_qsl(urlsplit(path).query)).get("after")
            start = 0 if after is None else [entry["id"] for entry in entries].index(after) + 1
            return {"data": entries[start : start + 100], "has_more": start + 100 < 250}

    service = BatchService(options(llm).server(), Client(), Usage(), 0)
    assert asyncio.run(service.find(Batch("n201", []))) == "batch 201"
    assert asyncio.run(service.find(Batch("n9", []))) == "batch 9"
    assert asyncio.run(service.find(Batch("none", []))) is None
    assert len(asked) == 3 + 1 + 3


@pytest.mark.parametrize("gone", ["batch", "file"])
def test_a_batch_that_the_service_has_no_more_is_told_and_asked_again(llm, tmp_path, monkeypatch, capfd, gone):
    with monkeypatch.context() as patch:
        patch.setattr(BatchService, "ended" if gone == "batch" else "lines", cut)
        with pytest.raises(PowerCutError):
            themes(batched(llm, tmp_path))
    (llm.batches.made if gone == "batch" else llm.batches.files).clear()
    assert themes(batched(llm, tmp_path, retries=0)) == [sound(story) for story in STORIES]
    assert "batch batch_0: " in (told := capfd.readouterr().err)
    assert "asked again" in told
    assert left(tmp_path) == {}


def test_a_server_without_batches_does_not_end_those_that_were_sent(llm, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(BatchService, "ended", cut)
        with pytest.raises(PowerCutError):
            themes(batched(llm, tmp_path))
    real = llm.batches.get
    llm.batches.get = lambda path: (404, {}, {"detail": "Not Found"})
    with pytest.raises(ModelError, match="--transport chat"):
        themes(batched(llm, tmp_path))
    llm.batches.get = real
    assert themes(batched(llm, tmp_path)) == [sound(story) for story in STORIES]
    assert sizes(llm) == [12]


def test_a_job_by_chat_goes_on_with_the_replies_of_a_batch(llm, tmp_path):
    themes(batched(llm, tmp_path), STORIES[:4])
    asker = job(llm, tmp_path)
    assert asker.run(STORIES, theme, "story") == [sound(story) for story in STORIES]
    assert set(llm.asked.values()) == {1}


def test_a_service_that_repeats_the_key_in_its_codes_and_errors_is_not_heard(llm):
    key = "sk-Tr0ub4dor-and_3"
    with pytest.raises(Fault) as caught:
        reply_of_line({"error": {"code": f"{key}!" + "x" * 99, "message": key}}, key)
    assert (caught.value.reason, caught.value.detail) == ("[key]!" + "x" * 34, "[key]")
    found = {"id": "b", "errors": {"data": [{"message": f"bad {key}\n" + "x " * 999, "line": 1}]}}
    told = str(why_failed(found, options(llm, api_key=key).server()))
    assert "batch b failed: bad [key] x" in told
    assert key not in told
    assert len(told) < 400
    for odd in ({}, {"errors": "no"}, {"errors": {"data": ["no"]}}):
        assert "without a word" in str(why_failed(odd, options(llm).server()))
