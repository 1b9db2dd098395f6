"""Jobs killed with SIGKILL: nothing that has an answer is sent again."""

import json
import multiprocessing
import sqlite3
import threading
from contextlib import closing

import pytest
from interruptions import wait_for
from json_files import read_json
from pydantic import BaseModel

from narrlit.llm.checks import SourceStory
from narrlit.llm.client import LLM
from narrlit.llm.generator import Generator, generate_texts
from narrlit.llm.options import LLMOptions
from narrlit.llm.requests import Sampling
from narrlit.prompts import Prompt

STORIES = [f"The tale of number {number} of many." for number in range(30)]
FORK = multiprocessing.get_context("fork")


class Theme(BaseModel):
    theme: str


def content(story):
    return json.dumps({"story": story})


def write_themes(url, folder, transport, ready):
    """The job: one request and one short reply per story; out.json when it has all."""
    options = LLMOptions(base_url=url, llm_model="tiny", concurrency=4, batch=transport == "batch")
    llm = LLM(options, folder / "answers.sqlite")
    generators = {"theme": Generator(Prompt("themes", "Tell the theme.", "digest"), Theme, {}, Sampling(64))}

    async def work(story):
        generated = await generate_texts(llm, generators, SourceStory(story), "story", 1, 3)
        return generated.accepted["theme"][0].theme

    ready.set()
    themes = llm.run(STORIES, work, "story")
    usage = {"answered": llm.usage.answered, "from_cache": llm.usage.from_cache}
    (folder / "out.json").write_text(json.dumps({"themes": themes, **usage}))


def start(llm, folder, transport):
    ready = FORK.Event()
    process = FORK.Process(target=write_themes, args=(llm.url, folder, transport, ready), daemon=True)
    process.start()
    assert ready.wait(30)
    return process


def answered(folder):
    """(content, seed) of each request with an answer in the cache."""
    if not (folder / "answers.sqlite").exists():
        return set()
    with closing(sqlite3.connect(folder / "answers.sqlite")) as database:
        rows = [json.loads(row) for (row,) in database.execute("SELECT request FROM answers WHERE finish IS NOT NULL")]
    return {(row["content"], row["seed"]) for row in rows}


@pytest.mark.parametrize(("transport", "answers"), [("chat", 1), ("chat", 13), ("chat", 29), ("batch", 0)])
def test_a_killed_job_sends_nothing_that_has_an_answer(llm, tmp_path, transport, answers):
    killed, unending = threading.Event(), 10**9
    llm.on_request = lambda number: killed.wait(60) if number >= answers else None
    llm.batches.polls = unending
    again = {content(story) for story in STORIES[::5]}  # these need a second attempt

    def mode(body):
        return "wrong schema" if body["seed"] == 42 and body["messages"][1]["content"] in again else None

    llm.mode = mode
    process = start(llm, tmp_path, transport)
    if transport == "chat":
        wait_for(lambda: sum(llm.answered.values()) == answers and llm.at_once == 4, process)
    else:
        wait_for(lambda: sum(llm.batches.looks.values()) > 3, process)

    process.kill()
    process.join()

    assert process.exitcode == -9

    killed.set()
    llm.batches.polls = 1
    known = answered(tmp_path)
    first = len(llm.bodies)

    assert len(known) >= answers - 4  # the last may have been under way

    process = start(llm, tmp_path, transport)
    process.join(60)
    assert process.exitcode == 0
    assert not known & {(body["messages"][1]["content"], body["seed"]) for body in llm.bodies[first:]}
    # In a chat the four requests under way at the kill may be sent again, in batches none.
    assert sum(times - 1 for times in llm.asked.values()) <= (4 if transport == "chat" else 0)

    found = read_json(tmp_path / "out.json")
    assert found["themes"] == [f"{content(s)} {43 if content(s) in again else 42}" for s in STORIES]
    assert found["answered"] + found["from_cache"] >= len(STORIES) + len(again)
    assert len(answered(tmp_path)) == len(STORIES) + len(again)
