import sqlite3
import stat

from refusals import refused

from narrlit.llm.cache import AnswerCache, Reply

REQUEST = {"model": "m", "prompt": "p", "content": "A story."}
REPLY = Reply("An answer.", "stop", 7, 3)


def test_two_jobs_may_share_a_file(tmp_path):
    with AnswerCache(tmp_path / "c") as one, AnswerCache(tmp_path / "c") as two:
        one.put("one", REQUEST, REPLY)
        two.put("two", REQUEST, REPLY)
        assert one.get("two") == two.get("one") == REPLY


def test_only_its_owner_may_read_it(tmp_path):
    with AnswerCache(tmp_path / "c") as cache:
        cache.put("one", REQUEST, REPLY)
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}


def test_an_empty_answer_and_half_a_surrogate_pair_are_answers(tmp_path):
    with AnswerCache(tmp_path / "c") as cache:
        cache.put("empty", REQUEST, Reply("", None))
        cache.put("half", {**REQUEST, "content": "\ud800"}, Reply("\ud800", "stop"))
        assert cache.get("empty") == Reply("", "stop")
        assert cache.get("half").text == "?"


def test_a_batch_is_recorded_with_its_requests_until_its_end(tmp_path):
    with AnswerCache(tmp_path / "c") as cache:
        cache.add_batch("b", {"one": REQUEST, "two": REQUEST})
        assert cache.batches() == [("b", None)]
        cache.set_batch_id("b", "batch_7")
    with AnswerCache(tmp_path / "c") as cache:
        assert cache.batches() == [("b", "batch_7")]
        assert cache.get("one") is None
        cache.finish_batch("b", {"one": REPLY})
        assert cache.get("one") == REPLY
        assert cache.get("two") is None
        assert cache.batches() == []

    rows = sqlite3.connect(tmp_path / "c").execute("SELECT key, request FROM answers").fetchall()

    assert [key for key, _ in rows] == ["one"]
    assert "A story." in rows[0][1]


def test_a_file_of_another_kind_is_refused_and_stays(tmp_path):
    (tmp_path / "c").write_text("These are my notes, and no database at all. " * 9)
    before = (tmp_path / "c").read_bytes()
    with refused("broken_answer_cache", path="c", reason="file is not a database"):
        AnswerCache(tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == before
    with refused("broken_answer_cache"):
        AnswerCache(tmp_path)
