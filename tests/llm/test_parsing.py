"""Objects in replies: the last that fits, and none in strings, in other objects or behind what is broken."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_jobs import SCHEMA, SYSTEM

from narrlit.llm.parsing import Unparsable, parse_object
from narrlit.llm.schema import misfit

T = '{"theme": "t"}'
FOUND = {
    "alone": (T, "t"),
    "spaces around": (f" \n{T}\n", "t"),
    "text around": (f"Here it is: {T} Is that all right?", "t"),
    "fence": (f"```json\n{T}\n```", "t"),
    "braces in the text": (f"As asked {{see above}}: {T} {{end}}", "t"),
    "the last of several": ('{"theme": "draft"} or better {"theme": "final"}', "final"),
    "the last that fits": (f'{T} {{"closer": "A"}} {{}}', "t"),
    "thoughts first": (f'<think>maybe {{"theme": "no"}} or {{"the</think>{T}', "t"),
    "thoughts in a string": ('{"theme": "<think> </think> {} t"}', "<think> </think> {} t"),
    "broken object first": (f'{{"theme": }} sorry: {T}', "t"),
    "braces in the string": ('{"theme": "a } and {\\"theme\\": \\"x\\"} and {"}', 'a } and {"theme": "x"} and {'),
    "line break in the string": ('{"theme": "two\nlines"}', "two\nlines"),
    "in a list": (f"[{T}]", "t"),
    "escapes": ('{"theme": "\\u00e9\\ud83d\\ude00"}', "é\U0001f600"),
    "other alphabets": ('{"theme": "тема"}', "тема"),
}
REFUSED = {
    "nothing": ("", "no JSON object"),
    "no JSON": ("The theme is loss.", "no JSON object"),
    "cut off in the string": ('{"theme": "a long', "no JSON object"),
    "cut off before the brace": ('{"theme": "t"', "no JSON object"),
    "cut off in an escape": ('{"theme": "t\\u00', "no JSON object"),
    "single quotes": ("{'theme': 't'}", "no JSON object"),
    "behind a broken string": ('{"theme": "he said \\q {"theme": "x"}', "no JSON object"),
    "quoted with bare quotes": ('{"note": "the story says {"theme": "x"}", "theme": "t"', "no JSON object"),
    "inside another object": ('{"answer": {"theme": "t"}}', "theme is missing"),
    "a list of texts": ('["theme"]', "no JSON object"),
    "a number": ("42", "no JSON object"),
    "thoughts alone": (f"<think>{T} or", "no JSON object"),
    "key twice": ('{"theme": "a", "theme": "b"}', "a key stands twice"),
    "wrong type": ('{"theme": 42}', "theme is no text"),
    "null": ('{"theme": null}', "theme is no text"),
    "blank": ('{"theme": " \\n"}', "theme is too short"),
    "another key besides": ('{"theme": "t", "why": "x"}', "a key that was not asked for"),
    "half a surrogate pair": ('{"theme": "\\ud83d"}', "half a surrogate pair"),
    "no number": ('{"theme": NaN}', "no JSON object"),
    "very deep": ('{"theme":' * 100_000, "no JSON object"),
    "very many braces": ("{" * 100_000, "no JSON object"),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_is_found(case):
    text, theme = FOUND[case]
    assert parse_object(text, SCHEMA) == {"theme": theme}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    text, reason = REFUSED[case]
    with pytest.raises(Unparsable, match=reason) as caught:
        parse_object(text, SCHEMA)
    assert str(caught.value) == caught.value.reason


def test_a_reply_that_repeats_the_prompt_gives_the_objects_of_the_reply():
    assert parse_object(f"{SYSTEM}\n{T}", SCHEMA) == {"theme": "t"}
    # The template's own object comes back where the model wrote nothing else: that is for validation to refuse.
    assert parse_object(SYSTEM, SCHEMA) == {"theme": "..."}


JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(JSON_TEXT, st.booleans())
def test_any_text_in_a_string_comes_back_as_it_was(text, ascii_only):
    reply = json.dumps({"theme": text}, ensure_ascii=ascii_only)
    assert parse_object(reply, SCHEMA) == {"theme": text}
    assert parse_object(f"Sure: ```{reply}```", SCHEMA) == {"theme": text}


@given(JSON_TEXT, st.data())
def test_a_reply_that_was_cut_off_anywhere_gives_nothing(text, data):
    # Whatever the story holds, JSON too, is inside a string then.
    reply = json.dumps({"theme": f'{text}{{"theme": "x"}}'})
    end = data.draw(st.integers(0, len(reply) - 1))
    with pytest.raises(Unparsable):
        parse_object(reply[:end], SCHEMA)


@given(st.text(st.sampled_from('{}[]":,\\ theme1\n')))
def test_no_reply_ends_in_anything_but_an_object_that_fits_or_a_refusal(text):
    try:
        found = parse_object(text, SCHEMA)
    except Unparsable:
        return
    assert misfit(found, SCHEMA) is None


STRING = {"type": "string"}
LIST = {"type": "array", "items": STRING, "minItems": 2, "maxItems": 3}


@pytest.mark.parametrize(
    ("value", "schema", "fault"),
    [
        (["a", "b"], LIST, None),
        (["a"], LIST, "fewer than 2"),
        (["a"] * 4, LIST, "more than 3"),
        (["a", 1], LIST, "an entry of the object is no text"),
        ("ab", LIST, "no list"),
        ([1, None], {"type": "array"}, None),
        ("A", {"type": "string", "enum": ["A", "B"]}, None),
        ("a", {"type": "string", "enum": ["A", "B"]}, "none of 'A', 'B'"),
        (["A"], {"type": "string", "enum": ["A", "B"]}, "none of"),
        (True, STRING, "no text"),
        ("", STRING, None),
        ([], {"type": "object"}, "no object"),
        ({"more": 1}, {"type": "object"}, None),
        ({"a": ["x"]}, {"type": "object", "properties": {"a": LIST}}, "a has fewer than 2"),
        ({}, {"type": "object", "properties": {"a": LIST}}, None),
    ],
)
def test_schemas(value, schema, fault):
    found = misfit(value, schema)
    assert found is None if fault is None else fault in found


@pytest.mark.parametrize("schema", [{"type": "string", "pattern": "a"}, {"type": "number"}, {}])
def test_a_schema_that_can_not_be_checked_is_a_mistake_of_the_programmers(schema):
    with pytest.raises(ValueError, match="not checked"):
        misfit("a", schema)
