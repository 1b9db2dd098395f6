"""A job in a process of its own, which may be killed: python llm_worker.py URL FOLDER TRANSPORT COUNT.

Prints "ready" when it begins to ask, and writes the outcomes when it has all.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

from llm_jobs import job, themes

from narrlit.data.storyworld import StoryWorld
from narrlit.llm import batch, batch_service


def stories(count):
    return [triple.anchor.text for triple in StoryWorld(11).triples(count)]


def main(url, folder, transport, count):
    batch.QUIET_SECONDS, batch_service.FIRST_POLL = 0.05, 0.05
    texts = stories(int(count))
    limits = {"concurrency": 4} if transport == "chat" else {}  # which batches know nothing of
    asker = job(SimpleNamespace(url=url), Path(folder), transport=transport, **limits)
    print("ready", flush=True)
    found = themes(asker, texts, attempts=3)
    (Path(folder) / "out.json").write_text(json.dumps({"themes": found, "usage": asker.usage.as_dict()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
