import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_server import MODEL, question

from narrlit.llm.client import LLM
from narrlit.llm.generator import Rejected
from narrlit.llm.judge import DISAGREEMENT, Answer, Judgement, ScoredTriple, judge_triples, read_choice, values
from narrlit.llm.options import LLMOptions
from narrlit.prompts import load_prompt

PROMPT = load_prompt("judge")
TRIPLES = [ScoredTriple((f"anchor {i}", f"near {i}", f"far {i}"), (0.5, 0.4)) for i in range(4)]


@pytest.fixture
def judge(llm, tmp_path):
    def run(triples=TRIPLES, swap=False, **options):
        options = LLMOptions(base_url=llm.url, llm_model=MODEL, retries=0, **options)
        return judge_triples(LLM(options, tmp_path / "cache"), triples, PROMPT, swap)

    return run


def nearest(body):
    """A judge that knows: the stories named "near"."""
    return json.dumps({"closer": "A" if json.loads(question(body))["A"].startswith("near") else "B"})


@pytest.mark.parametrize(
    ("text", "is_a"),
    [
        ('{"closer": "A"}', True),
        ('{"closer":"B"}', False),
        ("A", True),
        (" B.\n", False),
        ('"A"', True),
        ('```json\n{"closer": "B"}\n```', False),
        ('<think>A or B?</think>{"closer": "A"}', True),
    ],
)
def test_a_choice_is_read_as_a_letter_or_json(text, is_a):
    assert read_choice(text) is is_a


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("Both have their merits.", "no JSON object"),
        ('{"closer": "C"}', "closer literal error"),
        ('{"closer": "A", "why": "x"}', "unexpected key"),
        ('{"answer": "A"}', "closer missing"),
    ],
)
def test_anything_else_is_not_a_choice(text, reason):
    with pytest.raises(Rejected, match=reason):
        read_choice(text)


@given(st.tuples(st.text(), st.text(), st.text()), st.tuples(st.floats(-1, 1), st.floats(-1, 1)))
def test_the_request_shows_stories_and_numbers_that_agree(texts, scores):
    shown = json.loads(PROMPT.content(values(ScoredTriple(texts, scores))))
    assert (shown["anchor"], shown["A"], shown["B"]) == texts
    assert shown["similarity_a"] == pytest.approx(scores[0], abs=5.1e-5)
    assert shown["difference"] == pytest.approx(shown["similarity_a"] - shown["similarity_b"], abs=1e-9)
    assert "-0.0" not in PROMPT.content(values(ScoredTriple(texts, (0.0, -0.0))))


def test_a_judge_that_knows_agrees_with_itself_when_swapped(judge, llm):
    llm.reply_of = nearest
    found = judge(swap=True)
    assert [answer.a_is_closer for judgement in found for answer in judgement.answers] == [True] * 8
    assert {judgement.fallback for judgement in found} == {None}
    assert len(llm.bodies) == 8
    assert {(body["max_tokens"], body["temperature"]) for body in llm.bodies} == {(64, 0.0)}


def test_a_judge_that_prefers_a_place_is_caught_by_swapping(judge, llm):
    llm.reply_of = lambda body: "A"
    assert {judgement.choice for judgement in judge()} == {True}

    found = judge(swap=True)
    assert len(found) == 4
    for judgement in found:
        assert [answer.a_is_closer for answer in judgement.answers] == [True, False]
    assert {judgement.fallback for judgement in found} == {DISAGREEMENT}
    assert {judgement.a_is_closer for judgement in found} == {True}  # by the similarities


@pytest.mark.parametrize(
    ("mode", "reason", "failed"),
    [
        ("500", "request failed: HTTP 500", True),
        ("cut off", "cut off", False),
        ("wrong schema", "closer missing", False),
        ("text around", None, False),
    ],
)
def test_whatever_the_server_does_there_is_a_decision(judge, llm, mode, reason, failed):
    llm.reply_of, llm.mode = nearest, mode
    for judgement in judge():
        assert judgement.fallback == reason
        assert judgement.failed == failed
        assert judgement.a_is_closer is True


def test_a_tie_counts_as_b_and_one_answer_of_two_is_not_a_choice():
    tie = Judgement((0.5, 0.5), (Answer(None, "empty"),))
    assert tie.a_is_closer is False
    assert tie.by_similarity is False
    assert tie.fallback == "empty"

    half = Judgement((0.4, 0.5), (Answer(True), Answer(None, "cut off")))
    assert half.choice is None
    assert half.fallback == "cut off"
    assert half.a_is_closer is False

    against = Judgement((0.4, 0.5), (Answer(True), Answer(True)))
    assert against.choice is True
    assert against.a_is_closer is True
    assert against.by_similarity is False


@pytest.mark.parametrize("mode", ["cut off", "wrong schema", "empty"])
def test_replies_without_a_choice_are_requested_again_by_the_next_run(judge, llm, mode):
    llm.reply_of = nearest
    llm.modes = iter([mode, None])
    assert [judgement.choice for judgement in judge(concurrency=1)] == [None, True, True, True]
    assert {judgement.choice for judgement in judge()} == {True}
    assert len(llm.bodies) == 5
