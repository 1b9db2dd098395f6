"""The whole way with a real model, tiny and random, its JSON held to a schema."""

import pytest
from llm_jobs import PROMPT, content, job

from narrlit.llm.messages import Request, Sampling
from narrlit.llm.parsing import parse_object
from narrlit.stores.endpoint import Endpoint, EndpointOptions

SCHEMA = {
    "type": "object",
    "properties": {
        "theme": {"type": "string"},
        "events": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3},
        "closer": {"type": "string", "enum": ["A", "B"]},
    },
    "required": ["theme", "events", "closer"],
    "additionalProperties": False,
}


@pytest.mark.slow
def test_a_random_model_fills_the_schema_by_its_seed_and_words_without_one(llm, tiny_llm, tmp_path):
    llm.reply_of = tiny_llm

    async def work(attempt, ask):
        given = Request(PROMPT, content("S"), Sampling(max_tokens=400, temperature=1.0, seed=1), SCHEMA, attempt)
        return (await ask(given)).text

    first = job(llm, tmp_path, timeout=60).run([0, 1, 2], work, "try")
    assert len(set(first)) == 3
    for text in first:
        assert set(parse_object(text, SCHEMA)) == {"theme", "events", "closer"}
    assert job(llm, tmp_path, timeout=60, log=str(tmp_path / "other")).run([0, 1, 2], work, "try") == first

    async def plain(story, ask):
        return await ask(Request(PROMPT, content(story), Sampling(max_tokens=5, temperature=0.0)))

    (found,) = job(llm, tmp_path, timeout=60).run(["S"], plain, "story")
    assert found.text


def test_the_server_embeds_too(llm):
    texts = ["a", "b", "c"]
    vectors = Endpoint(llm.url, "tiny", EndpointOptions())(texts)
    assert vectors.shape == (3, 6)
