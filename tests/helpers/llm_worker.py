"""A job in a process of its own, to be killed: python llm_worker.py URL FOLDER chat|batch COUNT.

Prints "ready" when it starts to send, and writes out.json when it has all answers.
"""

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from narrlit.llm import batch
from narrlit.llm.client import LLM, LLMOptions, Sampling
from narrlit.llm.generator import Generator, generate
from narrlit.prompts import Prompt

PROMPT = Prompt("themes", "Tell the theme.", "digest")


class Theme(BaseModel):
    theme: str


def stories(count):
    return [f"The tale of number {number} of many." for number in range(count)]


def content(story):
    return json.dumps({"story": story})


def main(url, folder, transport, count):
    from narrlit.llm.checks import Source

    batch.QUIET_SECONDS = batch.POLL_SECONDS = 0.05
    options = LLMOptions(base_url=url, llm_model="tiny", concurrency=4, batch=transport == "batch")
    llm = LLM(options, Path(folder) / "answers.sqlite")
    generators = {"theme": Generator(PROMPT, Theme, {}, Sampling(64))}

    async def work(story):
        generated = await generate(llm, generators, Source(story), "story", 1, 3)
        return generated.accepted["theme"][0].theme

    print("ready", flush=True)
    themes = llm.run(stories(int(count)), work, "story")
    usage = {"answered": llm.usage.answered, "from_cache": llm.usage.from_cache}
    (Path(folder) / "out.json").write_text(json.dumps({"themes": themes, **usage}))


if __name__ == "__main__":
    main(*sys.argv[1:])
