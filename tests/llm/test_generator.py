import json
from collections import Counter

import pytest
from llm_server import MODEL, question
from scripted_writer import SEED

from narrlit.llm.client import LLM
from narrlit.llm.generator import (
    ACCEPTED,
    GenerationSummary,
    Rejected,
    ViewsReply,
    generate_negatives,
    generate_views,
    negative_generators,
    parse_reply,
)
from narrlit.llm.options import GenerationOptions, LLMOptions

VIEWS = {"theme": "t", "plot_events": list("abcde"), "outcome": "o"}
ASPECTS = ("theme", "action", "outcome")


@pytest.fixture
def model(llm, tmp_path):
    """model() is an LLM with the cache of this test; every call starts a new job."""
    return lambda **options: LLM(
        LLMOptions(base_url=llm.url, llm_model=MODEL, **{"retries": 0, **options}), tmp_path / "cache"
    )


def anchors(writer):
    return {triple.anchor.text: [triple.positive.text] for triple in writer.world.triples(3, "train")}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(VIEWS),
        f"Here you are {{as asked}}:\n```json\n{json.dumps(VIEWS, indent=1)}\n```\nI hope this helps.",
        f'<think>First {{"theme": 1}}.</think>{json.dumps(VIEWS)}',
        json.dumps({**VIEWS, "theme": "  t\n "}),
        json.dumps(VIEWS).replace("t", "t\n", 1).replace("t\nheme", "theme"),
    ],
)
def test_the_object_of_a_reply_is_read_with_any_text_around_it(text):
    assert parse_reply(text, ViewsReply) == ViewsReply(**VIEWS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("No.", "no JSON object"),
        (f"{json.dumps(VIEWS)} or {json.dumps(VIEWS)}", "several JSON objects"),
        ("<think>endless " + json.dumps(VIEWS), "no JSON object"),
        ("[" * 100_000 + "{}", "theme missing"),
        (json.dumps({**VIEWS, "outcome": " "}), "outcome empty"),
        (json.dumps({**VIEWS, "plot_events": ["a", "b"]}), "plot_events too short"),
        (json.dumps({**VIEWS, "plot_events": "a"}), "plot_events list type"),
        (json.dumps({**VIEWS, "note": "x"}), "unexpected key"),
        ('{"theme": "t"}', "plot_events missing"),
    ],
)
def test_replies_that_do_not_fit_have_a_short_reason(text, reason):
    with pytest.raises(Rejected, match=reason):
        parse_reply(text, ViewsReply)


def test_negatives_of_each_aspect_under_the_published_keys(model, writer, llm):
    results = generate_negatives(model(), anchors(writer), GenerationOptions())
    assert len(results) == 3
    assert Counter(kind for kind, _, _ in writer.asked) == {"theme": 9, "structure": 9, "outcome": 9}
    for anchor, result in zip(anchors(writer), results, strict=True):
        for aspect, key in (("theme", "theme"), ("action", "structure"), ("outcome", "outcome")):
            assert result.accepted[aspect] == [writer.negative_of(anchor, key, attempt) for attempt in range(3)]

    body = llm.bodies[0]
    assert body["temperature"] == 0.8
    assert body["top_p"] == 0.9
    assert body["max_tokens"] == 1200
    assert {body["messages"][0]["content"] for body in llm.bodies} == {
        generator.prompt.text for generator in negative_generators(model(), GenerationOptions()).values()
    }


def test_a_rejected_reply_is_replaced_and_counted(model, writer):
    anchor = next(iter(anchors(writer)))
    first = writer.negative_of(anchor, "outcome", 0)
    spoiled = {
        ("theme", 0): "...",
        ("structure", 1): json.dumps({"neg_structure": anchor}),
        ("outcome", 2): json.dumps({"neg_outcome": first}),
    }
    writer.spoil = lambda kind, content, attempt: spoiled.get((kind, attempt))
    (result,) = generate_negatives(model(), {anchor: []}, GenerationOptions())

    assert [len(result.accepted[aspect]) for aspect in ASPECTS] == [3, 3, 3]

    rejected = {key: count for key, count in result.verdicts.items() if key[1] != ACCEPTED}
    assert rejected == {
        ("theme", "no JSON object"): 1,
        ("action", "near-copy of the anchor"): 1,
        ("outcome", "duplicate"): 1,
    }
    assert len(writer.asked) == 12
    assert all(anchor not in texts for texts in result.accepted.values())


def test_attempts_end_and_missing_texts_are_named(model, writer):
    writer.spoil = lambda kind, content, attempt: "..." if kind == "outcome" else None
    given = anchors(writer)
    job = model()
    results = generate_negatives(job, given, GenerationOptions(candidates=2, attempts=3))
    summary = GenerationSummary({f"row {number}": result for number, result in enumerate(results, 1)}, 2)

    assert len(writer.asked) == 3 * (2 + 2 + 3 * 2)
    assert summary.lines()[0] == "row 1 lacks 2 outcome (6 no JSON object)"

    found = summary.report(job, GenerationOptions())
    assert found["items"] == 3
    assert found["complete"] == 0
    assert len(found["incomplete"]) == 3
    assert found["replies"]["outcome"] == {"no JSON object": 18}
    assert [line.split() for line in summary.table().splitlines()] == [
        ["replies", "theme", "action", "outcome", "all"],
        [ACCEPTED, "6", "6", "0", "12"],
        ["no", "JSON", "object", "0", "0", "18", "18"],
    ]


def test_the_result_does_not_depend_on_the_order_of_the_answers(model, writer, llm, tmp_path):
    given = anchors(writer)
    writer.spoil = lambda kind, content, attempt: "..." if attempt == 1 else None
    one = generate_negatives(model(concurrency=1), given, GenerationOptions())
    llm.seconds = 0.01
    other = generate_negatives(model(concurrency=16, answer_cache=str(tmp_path / "other")), given, GenerationOptions())

    assert [result.accepted for result in one] == [result.accepted for result in other]


def test_custom_prompts_replace_those_of_the_package(model, tmp_path, llm, writer):
    (tmp_path / "views.txt").write_text("# mine\n---\nWrite views.\n")
    options = GenerationOptions(prompts=str(tmp_path))
    generate_views(model(), list(anchors(writer))[:1], options)

    assert llm.bodies[0]["messages"][0]["content"] == "Write views."
    assert json.loads(question(llm.bodies[0])).keys() == {"story"}
    assert llm.bodies[0]["seed"] == SEED
    assert options.prompt("negatives_theme").text.startswith("You write stories.")


def test_a_prompt_with_a_field_is_the_user_message(model, tmp_path, llm):
    (tmp_path / "views.txt").write_text('Views of "{text}", as {"theme": ...}.')
    generate_views(
        model(temperature=0.1), ["A {text} {anchor_text} \\1."], GenerationOptions(prompts=str(tmp_path), attempts=1)
    )

    assert llm.bodies[0]["messages"] == [
        {"role": "user", "content": 'Views of "A {text} {anchor_text} \\1.", as {"theme": ...}.'}
    ]
    assert llm.bodies[0]["temperature"] == 0.1


@pytest.mark.parametrize("piece", ['{"a":', '{"a":[', "{", '{"', '{"a":{}, '])
def test_the_work_of_reading_a_reply_grows_with_its_length(monkeypatch, piece):
    decode, read = json.JSONDecoder.raw_decode, []

    def counted(decoder, text, start=0):
        read.append(len(text) - start)
        return decode(decoder, text, start)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    work = []
    for count in (2_000, 8_000):
        read.clear()
        with pytest.raises(Rejected):
            parse_reply(piece * count, ViewsReply)
        work.append(sum(read))

    assert work[1] <= 5 * work[0]


def test_texts_rejected_in_all_attempts_are_requested_again_by_the_next_run(model, writer, llm):
    llm.mode = "wrong schema"
    options = GenerationOptions(attempts=2, candidates=1)
    stories = anchors(writer)
    (first, *_) = generate_negatives(model(), stories, options)

    assert first.accepted == {aspect: [] for aspect in ASPECTS}

    llm.mode = None
    requests = len(llm.bodies)
    (second, *_) = generate_negatives(model(), stories, options)

    assert all(len(second.accepted[aspect]) == 1 for aspect in ASPECTS)
    assert len(llm.bodies) > requests

    requests = len(llm.bodies)
    generate_negatives(model(), stories, options)
    assert len(llm.bodies) == requests
