"""Many questions: in order, each once, a few at a time, and those of an interrupted job not again."""

import asyncio
import json
import logging
from collections import Counter

import pytest
from llm_jobs import STORIES, content, job, options, reply, request, sound, theme, themes
from llm_server import MODES

from narrlit.errors import ModelError, OptionError
from narrlit.llm.asking import Asker
from narrlit.llm.messages import RequestFailed
from narrlit.llm.options import LLMOptions

KEY = "sk-Tr0ub4dor-and-3"


def test_outcomes_come_in_the_items_order_each_question_once(llm, tmp_path):
    llm.seconds = 0.02
    llm.mode = lambda body: "500" if len(llm.bodies) % 4 == 1 else None
    asker = job(llm, tmp_path, concurrency=5)
    assert themes(asker) == [sound(story) for story in STORIES]
    assert set(llm.answered.values()) == {1}
    assert asker.usage.asked == len(STORIES)
    assert asker.usage.retries.keys() == {"HTTP 500"}
    assert asker.usage.failures == {}
    assert 1 < llm.most_at_once <= 5


def test_a_second_run_asks_nothing_and_counts_the_same_tokens(llm, tmp_path):
    first = job(llm, tmp_path, price_in=2.0, price_out=8.0)
    found = themes(first)
    asked = len(llm.bodies)
    second = job(llm, tmp_path, price_in=2.0, price_out=8.0)
    assert themes(second) == themes(second) == found
    assert len(llm.bodies) == asked
    assert (second.usage.asked, second.usage.from_log) == (0, len(STORIES))
    assert second.usage.prompt_tokens == first.usage.prompt_tokens > 0
    expected = (first.usage.prompt_tokens * 2 + first.usage.completion_tokens * 8) / 1e6
    assert second.usage.cost == first.usage.cost == pytest.approx(expected)


def test_the_same_question_of_several_items_is_asked_once(llm, tmp_path):
    llm.seconds = 0.02
    asker = job(llm, tmp_path)
    assert themes(asker, ["S"] * 6 + ["T"]) == [sound("S")] * 6 + [sound("T")]
    assert llm.asked == {(content("S"), 42): 1, (content("T"), 42): 1}
    assert asker.usage.prompt_tokens == sum(
        len(f"{b['messages'][0]['content']} {content('S')}".split()) for b in llm.bodies
    )


def test_an_item_may_ask_several_questions_at_once(llm, tmp_path):
    async def three(story, ask):
        replies = await asyncio.gather(*(ask(request(story, attempt)) for attempt in range(3)))
        return [json.loads(one.text)["theme"] for one in replies]

    assert job(llm, tmp_path).run(["S", "T"], three, "story") == [[sound(s, 42 + i) for i in range(3)] for s in "ST"]


def test_asked_again_is_another_question(llm, tmp_path):
    llm.mode = lambda body: "placeholder" if body["seed"] < 44 else None
    assert themes(job(llm, tmp_path), ["S"], attempts=3) == [sound("S", 44)]
    assert [body["seed"] for body in llm.bodies] == [42, 43, 44]
    assert themes(job(llm, tmp_path), ["S"], attempts=2) == ["none: placeholder"]
    assert len(llm.bodies) == 3


ENDS = {
    "429": "HTTP 429",
    "429 retry-after": "HTTP 429",
    "500": "HTTP 500",
    "503 page": "HTTP 503",
    "400": "HTTP 400",
    "broken answer": "broken answer",
    "no choices": "broken answer",
    "cut off": "cut off",
    "text around": None,
    "placeholder": "placeholder",
    "wrong schema": "theme is missing",
    "broken JSON": "no JSON object",
    "empty": "no JSON object",
    "time-out": "time-out",
    "dripping": "time-out",
    "dropped": "connection broken",
}


@pytest.mark.parametrize("mode", ENDS)
def test_with_each_failure_the_job_ends_and_the_same_command_mends_it(llm, tmp_path, mode):
    broken = {content(story) for story in STORIES[::3]}
    llm.mode = lambda body: mode if body["messages"][1]["content"] in broken else None
    asker = job(llm, tmp_path, retries=1, timeout=1 if ENDS[mode] == "time-out" else 60)
    found = themes(asker)
    for place, outcome in enumerate(found):
        fails = ENDS[mode] is not None and place % 3 == 0
        assert outcome == (f"none: {ENDS[mode]}" if fails else sound(STORIES[place]))
    without_answer = mode not in ("cut off", "text around", "placeholder", "wrong schema", "broken JSON", "empty")
    assert asker.usage.failures == ({ENDS[mode]: len(broken)} if without_answer else {})
    llm.mode = None
    again = job(llm, tmp_path)
    found = themes(again, attempts=2)
    assert all(outcome.startswith(content(story)) for story, outcome in zip(STORIES, found, strict=True))
    assert again.usage.failures == {}
    # The sound ones were never asked a second time.
    assert {times for question, times in llm.answered.items() if question not in broken} == {1}


def test_every_way_to_fail_is_tested():
    assert set(ENDS) == set(MODES) - {"quota"}


def test_parameters_that_the_model_refuses_are_left_out_and_are_another_question(llm, tmp_path):
    themes(job(llm, tmp_path), ["S"])
    themes(job(llm, tmp_path, leave_out="seed"), ["S"])
    assert ["seed" in body for body in llm.bodies] == [True, False]


def test_a_mistake_ends_the_job_at_once_and_what_was_answered_is_kept(llm, tmp_path):
    llm.modes = iter([None, None, "quota"])
    llm.mode = "quota"
    with pytest.raises(ModelError, match="quota"):
        themes(job(llm, tmp_path, concurrency=1))
    assert len(llm.bodies) == 3
    llm.mode = None
    themes(job(llm, tmp_path))
    assert Counter(llm.answered.values()) == {1: len(STORIES)}


def test_what_the_work_raises_ends_the_run_and_cancels_the_others(llm, tmp_path):
    llm.seconds = 0.2

    async def work(story, ask):
        if story == "bad":
            raise ZeroDivisionError
        await ask(request(story))
        raise AssertionError("the others wait no longer")

    with pytest.raises(ZeroDivisionError):
        job(llm, tmp_path).run(["S", "T", "bad"], work, "story")


def test_an_interrupted_job_keeps_what_was_answered(llm, tmp_path):
    async def work(story, ask):
        if story == STORIES[5]:
            raise KeyboardInterrupt
        return await theme(story, ask)

    with pytest.raises(KeyboardInterrupt):
        job(llm, tmp_path, concurrency=1).run(STORIES, work, "story")
    assert len(llm.bodies) == 5
    themes(job(llm, tmp_path))
    assert set(llm.asked.values()) == {1}


def test_no_item_is_no_question(llm, tmp_path):
    assert themes(job(llm, tmp_path), []) == []
    assert llm.bodies == []


def test_the_log_of_the_options_goes_before_the_default(llm, tmp_path):
    asker = job(llm, tmp_path, log=str(tmp_path / "mine"))
    themes(asker, ["S"])
    assert asker.log == tmp_path / "mine"
    assert asker.log.exists()
    assert not (tmp_path / "job.log.jsonl").exists()


def test_another_transport_answers_in_the_servers_place_and_is_logged_alike(tmp_path):
    asked = []

    async def transport(one):
        asked.append(one.content)
        if "bad" in one.content:
            raise RequestFailed("time-out")
        return reply('{"theme": "t"}')

    given = LLMOptions(llm_model="m")
    for _ in range(2):
        asker = Asker(given, tmp_path / "log", transport)
        assert themes(asker, ["S", "bad", "T"]) == ["t", "none: time-out", "t"]
        assert asker.usage.failures == {"time-out": 1}
    assert Counter(asked) == {content("S"): 1, content("T"): 1, content("bad"): 2}


def test_what_is_missing_is_told_before_anything_is_asked(tmp_path, llm):
    with pytest.raises(OptionError, match="--llm URL"):
        Asker(LLMOptions(llm_model="m"), tmp_path / "log")
    with pytest.raises(OptionError, match="--llm_model"):
        Asker(LLMOptions(llm=llm.url), tmp_path / "log")
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("transport", ["chat", "batch"])
def test_the_key_is_in_no_file_and_in_nothing_that_is_printed(llm, tmp_path, capfd, caplog, transport):
    caplog.set_level(logging.DEBUG)
    llm.key = KEY
    llm.reply_of = lambda body: json.dumps({"theme": f"{KEY} was your key"})
    llm.mode = lambda body: "500" if "7" in body["messages"][1]["content"] else None
    (tmp_path / "key").write_text(KEY)
    asker = job(llm, tmp_path, api_key_file=str(tmp_path / "key"), transport=transport, retries=1)
    found = themes(asker)
    (tmp_path / "key").unlink()
    assert found[0] == "[key] was your key"
    printed = capfd.readouterr()
    told = [printed.out, printed.err, caplog.text, repr(asker.usage), repr(options(llm, api_key=KEY)), *found]
    assert not any(KEY in text for text in told)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert asker.log in files
    assert len(files) >= (1 if transport == "chat" else 4)
    assert not any(KEY.encode() in path.read_bytes() for path in files)
