"""The log: what was written is found again, half a line is not, and two jobs do not write one."""

import json
import os
from types import SimpleNamespace

import pytest
from llm_jobs import PROMPT, reply, request

from narrlit.errors import DataError, OptionError
from narrlit.llm import journal
from narrlit.llm.log import Log
from narrlit.llm.messages import Reply


def keys(*stories):
    return [request(story).key("tiny") for story in stories]


def written(path, *stories):
    with Log(path) as log:
        for story in stories:
            log.answered(request(story), "tiny", reply(f"about {story}"))


def read(path, *stories):
    with Log(path) as log:
        return [None if (found := log.reply(key)) is None else found.text for key in keys(*stories)]


def test_replies_are_found_again_at_once_and_later(tmp_path):
    path = tmp_path / "new" / "log.jsonl"
    given = Reply("a\u2028b\n{}", None, 7, 9)
    with Log(path) as log:
        assert log.reply(*keys("S")) is None
        log.answered(request("S"), "tiny", given)
        assert log.reply(*keys("S")) == given
    with Log(path) as log:
        assert log.reply(*keys("S")) == given
        assert log.reply(*keys("T")) is None


def test_a_line_says_what_was_asked_and_the_prompt_stands_there_once(tmp_path):
    written(tmp_path / "log", "S", "T")
    written(tmp_path / "log", "U")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines[0] == {"prompt": PROMPT.digest, "name": "themes", "text": PROMPT.text}
    assert [line["key"] for line in lines[1:]] == keys("S", "T", "U")
    assert lines[1]["request"] == request("S").described("tiny")
    assert lines[1]["reply"] == {"text": "about S", "finish": "stop", "prompt_tokens": 3, "completion_tokens": 1}


def test_every_line_is_in_the_file_when_the_call_returns(tmp_path):
    with Log(tmp_path / "log") as log:
        for number, story in enumerate("STU", 2):
            log.answered(request(story), "tiny", reply())
            assert (tmp_path / "log").read_bytes().count(b"\n") == number


def test_wherever_a_job_is_killed_in_a_line_the_lines_before_it_hold(tmp_path):
    written(tmp_path / "whole", "é S", "T")
    whole = (tmp_path / "whole").read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in [last, last + 1, (last + len(whole)) // 2, len(whole) - 1]:
        (tmp_path / "log").write_bytes(whole[:end])
        assert read(tmp_path / "log", "é S", "T") == ["about é S", None]
        written(tmp_path / "log", "T")
        assert read(tmp_path / "log", "é S", "T") == ["about é S", "about T"]
        for line in (tmp_path / "log").read_bytes().splitlines():
            json.loads(line)


def test_a_failed_request_is_noted_and_not_answered(tmp_path):
    with Log(tmp_path / "log") as log:
        log.failed(request("S"), "tiny", "HTTP 500: out of memory")
    assert read(tmp_path / "log", "S") == [None]
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["failed"] == "HTTP 500: out of memory"
    written(tmp_path / "log", "S")
    with Log(tmp_path / "log") as log:
        log.failed(request("S"), "tiny", "HTTP 500")
    assert read(tmp_path / "log", "S") == ["about S"]


@pytest.mark.parametrize(
    "line", ["{broken", "[]", "7", "{}", '{"text": "a story"}', '{"key": "k", "reply": {"text": "x"}}', '{"reply": 7}']
)
def test_a_file_that_is_no_log_is_refused_by_line_and_left_as_it_is(tmp_path, line):
    written(tmp_path / "log", "S")
    text = (tmp_path / "log").read_text() + line + "\n"
    (tmp_path / "log").write_text(text + '{"half')
    with pytest.raises(DataError, match=r"log:3: .*--log"):
        read(tmp_path / "log", "S")
    assert (tmp_path / "log").read_text() == text + '{"half'


def test_two_jobs_do_not_write_one_log(tmp_path):
    with Log(tmp_path / "log"), pytest.raises(OptionError, match="another job"):
        written(tmp_path / "log", "S")
    written(tmp_path / "log", "S")
    assert read(tmp_path / "log", "S") == ["about S"]


def test_a_log_that_can_not_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="--log"):
        written(tmp_path / "file" / "log", "S")
    with pytest.raises(OptionError, match="--log"):
        written(tmp_path, "S")


def test_half_a_surrogate_pair_is_kept(tmp_path):
    with Log(tmp_path / "log") as log:
        log.answered(request("\ud83d"), "tiny", reply("\ude00"))
    assert read(tmp_path / "log", "\ud83d") == ["\ude00"]
    (tmp_path / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["my only notes", '{"story": "one line"}', "[1, 2", '{"prompts": []}'])
def test_a_file_of_one_line_without_a_break_is_refused_and_left_as_it_is(tmp_path, text):
    (tmp_path / "notes").write_text(text)
    with pytest.raises(DataError, match=r"notes:1: .*--log"):
        written(tmp_path / "notes", "S")
    assert (tmp_path / "notes").read_text() == text


@pytest.mark.parametrize("end", [1, 5, 40])
@pytest.mark.parametrize("nuls", [0, 1, 5000])
def test_half_a_first_line_and_what_a_power_cut_leaves_are_cut_off(tmp_path, end, nuls):
    written(tmp_path / "log", "S")
    whole = (tmp_path / "log").read_bytes()
    for before in (b"", whole):
        (tmp_path / "log").write_bytes(before + whole[:end] + b"\0" * nuls)
        assert read(tmp_path / "log", "S") == ["about S" if before else None]
        assert (tmp_path / "log").read_bytes() == before


def test_a_full_disk_is_told_in_one_line_and_what_was_written_holds(tmp_path):
    resource = pytest.importorskip("resource")
    written(tmp_path / "log", "S")
    whole = (tmp_path / "log").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(OptionError, match=r"cannot write .*log"), Log(tmp_path / "log") as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, hard))
        try:
            log.answered(request("T"), "tiny", reply())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "log").read_bytes() == whole
    assert read(tmp_path / "log", "S", "T") == ["about S", None]


def test_lines_are_brought_to_the_disk_once_a_second_and_at_the_end(tmp_path, monkeypatch):
    now, sizes = [100.0], []
    monkeypatch.setattr(journal, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(journal.os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    lines = journal.Journal(tmp_path / "log", lambda line: None)
    with lines:
        for seconds in (0.0, 0.5, 0.4, 0.2, 0.1):
            now[0] += seconds
            lines.write({})
    assert sizes == [3, 12, 15]
