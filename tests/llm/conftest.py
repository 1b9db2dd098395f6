"""A small job for the scripted server, with one request and one short reply per item; a writer of StoryWorld."""

import json
from hashlib import sha256

import pytest
from llm_server import MODEL
from pydantic import BaseModel, ConfigDict
from scripted_writer import ScriptedWriter

from narrlit.llm.client import LLM
from narrlit.llm.completions import RequestFailed
from narrlit.llm.options import LLMOptions
from narrlit.llm.requests import Request, Sampling
from narrlit.prompts import Prompt

SYSTEM = 'Tell the theme of the story, as {"theme": "..."}.'
PROMPT = Prompt("themes", SYSTEM, sha256(SYSTEM.encode()).hexdigest())


class Theme(BaseModel):
    model_config = ConfigDict(extra="forbid")
    theme: str


def request(story="story 0", seed=42, **sampling):
    content = json.dumps({"story": story}, ensure_ascii=False)
    return Request(PROMPT, content, Theme, Sampling(**{"max_tokens": 64, **sampling}), seed)


class Job:
    """job(stories) -> reply texts, or the reason of failure; `job.llm` is the model of the last call."""

    def __init__(self, url, folder):
        self.url, self.folder = url, folder
        self.cache = folder / "answers.sqlite"

    def __call__(self, stories, sampling=None, **options):
        given = {"base_url": self.url, "llm_model": MODEL, "retries": 0, "timeout": 20, **options}
        self.llm = LLM(LLMOptions(**given), self.cache)

        async def work(story):
            try:
                reply = await self.llm.ask(request(story, **(sampling or {})))
            except RequestFailed as failure:
                return failure.reason
            return reply.finish if reply.finish != "stop" else reply.text

        return self.llm.run(stories, work, "story")


@pytest.fixture
def job(llm, tmp_path):
    return Job(llm.url, tmp_path)


@pytest.fixture
def writer(llm):
    """Writer of three of StoryWorld's triples, in place of the server's language model."""
    writer = ScriptedWriter(count=3)
    llm.reply_of = writer.reply_of
    return writer
