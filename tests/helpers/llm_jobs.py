"""Small jobs for a language model: one question an item, asked again until the reply can be parsed."""

import json
from hashlib import sha256

from llm_server import MODEL

from narrlit.llm.asking import Asker
from narrlit.llm.messages import Reply, Request, RequestFailed, Sampling
from narrlit.llm.options import LLMOptions
from narrlit.llm.parsing import Unparsable, parse_object
from narrlit.prompts.prompt import Prompt

SYSTEM = 'Tell the theme of the story, as {"theme": "..."}.'
PROMPT = Prompt("themes", SYSTEM, sha256(SYSTEM.encode()).hexdigest())
SCHEMA = {
    "type": "object",
    "properties": {"theme": {"type": "string", "minLength": 1}},
    "required": ["theme"],
    "additionalProperties": False,
}
STORIES = [f"story {i}" for i in range(12)]


def content(story):
    return json.dumps({"story": story}, ensure_ascii=False)


def request(story="story 0", attempt=0, **sampling):
    return Request(PROMPT, content(story), Sampling(**{"max_tokens": 64, "seed": 42, **sampling}), SCHEMA, attempt)


def options(server, **given):
    return LLMOptions(**{"llm": server.url, "llm_model": MODEL, "retries": 2, "timeout": 5, **given})


async def theme(story, ask, attempts=1):
    """The theme of a story, or the reason why there is none."""
    fault = ""
    for attempt in range(attempts):
        try:
            reply = await ask(request(story, attempt))
            if reply.finish == "length":
                fault = "cut off"
            else:
                found = parse_object(reply.text, SCHEMA)["theme"]
                if found != "...":
                    return found
                fault = "placeholder"
        except (RequestFailed, Unparsable) as failed:
            fault = failed.reason
    return f"none: {fault}"


def themes(asker, stories=STORIES, attempts=1):
    return asker.run(stories, lambda story, ask: theme(story, ask, attempts), "story")


def job(server, folder, **given):
    return Asker(options(server, **given), folder / "job.log.jsonl")


def sound(story, seed=42):
    """The theme that a sound server tells."""
    return f"{content(story)} {seed}"


def reply(text="words"):
    return Reply(text, "stop", 3, 1)
