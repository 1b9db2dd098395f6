"""Readers: every layout and kind of file, and the data the task gives."""

import json
import re
from pathlib import Path

import pytest

from narrlit.data.readers import read_examples, read_stories, read_triples
from narrlit.data.records import Example, Negative, Story, Triple
from narrlit.errors import DataError

AB = {"anchor_text": "x", "text_a": "p", "text_b": "q", "text_a_is_closer": True}
TRIPLE = Triple("x", "p", "q", True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.jsonl", '{"text": "one"}\n{"text": "two"}\n'),
        ("s.ndjson", '{"text": "one"}\r\n\r\n  \n{"text": "two"}\r\n'),
        ("s.jsonl", '"one"\n"two"'),
        ("s.jsonl", '"one"\n{"story": "two"}\n'),
        ("s.csv", "text\none\n\ntwo\n"),
        ("s.CSV", 'n,story\r\n1,one\r\n2,"two"\r\n'),
        ("s.tsv", "n\ttext\n1\tone\n2\ttwo\n"),
        ("s.txt", "one\n\n   \ntwo\r\n"),
        ("s.jsonl", b'\xef\xbb\xbf{"text": "one"}\n{"text": "two"}'),
        ("s.csv", b"\xef\xbb\xbftext\none\ntwo\n"),
    ],
)
def test_stories_of_every_kind(make, name, content):
    reading = read_stories(make(name, content))
    assert reading.records == [Story("one"), Story("two")]
    assert (reading.total, reading.dropped, reading.suspicious) == (2, {}, {})


def test_story_ids(make):
    rows = [{"text": "a", "id": "n1"}, {"text": "b", "id": 7}, {"text": "c", "id": None}, {"text": "d", "id": [1]}]
    reading = read_stories(make("s.jsonl", rows))
    assert reading.records == [Story("a", "n1"), Story("b", "7"), Story("c")]
    assert reading.dropped == {"id is not text": 1}
    assert read_stories(make("s.csv", "id,text\nn1,a\n,b\n")).records == [Story("a", "n1"), Story("b")]


def test_unicode_line_separators_do_not_split_rows(make):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    row = json.dumps({"text": text}, ensure_ascii=False)
    assert "\u2028" in row
    assert read_stories(make("s.jsonl", row)).records == [Story(text)]
    assert read_stories(make("s.txt", "a\u2028b\nc\n")).records == [Story("a\u2028b"), Story("c")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl", json.dumps(AB)),
        ("t.csv", "anchor_text,text_a,text_b,text_a_is_closer\nx,p,q,True\n"),
        ("t.csv", "text_b,extra,text_a,anchor_text,text_a_is_closer\nq,!,p,x,1\n"),
        ("t.tsv", "anchor_text\ttext_a\ttext_b\ttext_a_is_closer\nx\tp\tq\tTRUE\n"),
        ("t.csv", "anchor_story,similar_story,dissimilar_story\nx,p,q\n"),
        ("t.jsonl", '{"anchor_story": "x", "similar_story": "p", "dissimilar_story": "q"}'),
        ("t.csv", b"\xef\xbb\xbfanchor_text,text_a,text_b,text_a_is_closer\r\nx,p,q,true\r\n"),
    ],
)
def test_triples_of_every_kind(make, name, content):
    path = make(name, content)
    assert read_triples(path).records == [TRIPLE]
    assert read_examples(path).records == [Example("x", "p", (Negative("q", "triple"),))]


@pytest.mark.parametrize(
    ("label", "value"),
    [(False, False), (0, False), (1, True), ("false", False), ("TRUE", True), (None, None), ("", None)],
)
def test_labels_in_json(make, label, value):
    assert read_triples(make("t.jsonl", [AB | {"text_a_is_closer": label}])).records == [Triple("x", "p", "q", value)]


@pytest.mark.parametrize("label", ["maybe", 2, 0.5, ["true"]])
def test_a_label_that_is_none_of_them_drops_the_row(make, label):
    reading = read_triples(make("t.jsonl", [AB, AB | {"text_a_is_closer": label}]))
    assert reading.records == [TRIPLE]
    assert reading.dropped == {"text_a_is_closer is not true or false": 1}


def test_a_label_may_be_missing_from_the_first_row(make):
    bare = {name: text for name, text in AB.items() if name != "text_a_is_closer"}
    assert [t.a_is_closer for t in read_triples(make("t.jsonl", [bare, AB])).records] == [None, True]


def test_an_example_takes_the_closer_candidate_and_needs_a_label(make):
    rows = [AB, AB | {"text_a_is_closer": False}, AB | {"text_a_is_closer": None}]
    reading = read_examples(make("t.jsonl", rows))
    assert [(e.positive, e.negatives[0].text) for e in reading.records] == [("p", "q"), ("q", "p")]
    assert reading.dropped == {"no label": 1}


def test_examples_with_a_list_of_negatives(make):
    rows = [
        {"anchor": "x", "positive": "p", "negatives": [{"text": "n", "kind": "outcome"}, {"text": "m"}, "o"]},
        {"anchor": "x", "positive": "p", "negatives": []},
        {"anchor": "x", "positive": "p", "negatives": None},
        {"anchor": "x", "positive": "p"},
    ]
    reading = read_examples(make("e.jsonl", rows))
    assert reading.records[0].negatives == (Negative("n", "outcome"), Negative("m"), Negative("o"))
    assert [e.negatives for e in reading.records[1:]] == [(), (), ()]
    assert reading.total == 4


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ({"kind": "mined"}, "mined"),
        ({"dimension": "theme"}, "theme"),
        ({"dimension": "triple"}, "triple"),
        ({"kind": "theme", "dimension": "theme"}, "theme"),
        ({"kind": None, "dimension": "theme"}, "theme"),
        ({"kind": "mined", "dimension": ""}, "mined"),
        ({"kind": ""}, None),
    ],
)
def test_a_kind_may_be_named_dimension(make, stated, kind):
    row = {"anchor": "x", "positive": "p", "negatives": [{"text": "n"} | stated]}
    assert read_examples(make("e.jsonl", [row])).records[0].negatives == (Negative("n", kind),)


@pytest.mark.parametrize(
    ("anchor", "positive"),
    [("anchor", "positive"), ("anchor_text", "positive_text"), ("anchor_story", "similar_story")],
)
def test_examples_with_numbered_negatives(make, anchor, positive):
    header = f"neg_outcome_1,{anchor},{positive},neg_theme_10,neg_theme_2,neg_structure_1"
    reading = read_examples(make("e.csv", f"{header}\no1,x,p,t10,t2,s1\n,x,p,,  ,s1\n,x,p\n"))
    assert reading.records == [
        Example(
            "x",
            "p",
            (Negative("t2", "theme"), Negative("t10", "theme"), Negative("s1", "structure"), Negative("o1", "outcome")),
        ),
        Example("x", "p", (Negative("s1", "structure"),)),
        Example("x", "p"),
    ]


def test_mined_and_triple_negatives_have_fields_too(make):
    header = "anchor,positive,neg_triple_1,negative_1,neg_mined_2,neg_mined_1,neg_outcome_1"
    reading = read_examples(make("e.csv", f"{header}\nx,p,t,u,m2,m1,o\n"))
    found = [(negative.text, negative.kind) for negative in reading.records[0].negatives]
    assert found == [("o", "outcome"), ("m1", "mined"), ("m2", "mined"), ("t", "triple"), ("u", None)]


def test_negatives_without_number_or_kind_are_not_lost(make):
    reading = read_examples(make("e.csv", "anchor,positive,negative,negative_2,neg_mined,neg_theme\nx,p,n,m,i,t\n"))
    expected = (Negative("t", "theme"), Negative("i", "mined"), Negative("n"), Negative("m"))
    assert reading.records[0].negatives == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"negatives": ["x"]}, "anchor among its negatives"),
        ({"negatives": ["p"]}, "positive among its negatives"),
        ({"positive": "x"}, "anchor is its positive"),
        ({"negatives": "n"}, "negatives is not a list"),
        ({"negatives": [3]}, "negative is not text"),
        ({"negatives": [" "]}, "empty negative"),
        ({"negatives": [{"kind": "theme"}]}, "missing negative"),
        ({"negatives": [{"text": "n", "kind": "mood"}]}, "unknown kind"),
        ({"negatives": [{"text": "n", "dimension": "mood"}]}, "unknown kind"),
        ({"negatives": [{"text": "n", "kind": ["theme"]}]}, "unknown kind"),
        ({"negatives": [{"text": "n", "kind": "mined", "dimension": "theme"}]}, "kind and dimension differ"),
        ({"neg_mood_1": "n"}, "unknown kind"),
        ({"neg_theme_1": 4}, "neg_theme_1 is not text"),
        ({"positive": None}, "missing positive"),
        ({"anchor": "\n"}, "empty anchor"),
    ],
)
def test_examples_that_cannot_train_are_dropped(make, change, reason):
    sound = {"anchor": "x", "positive": "p", "negatives": ["n"]}
    path = make("e.jsonl", [sound, sound | change])
    reading = read_examples(path)
    assert len(reading.records) == 1
    assert reading.dropped == {reason: 1}
    with pytest.raises(DataError, match=f"e.jsonl:2: {reason}; mend the row$"):
        read_examples(path, strict=True)


REAL = Path(__file__).parents[2].parent / "shared/data/nsnrl"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the task's data is not beside the checkout")


@real
def test_real_triples():
    dev = read_triples(REAL / "dev/dev_track_a.jsonl", strict=True)
    assert (len(dev.records), dev.dropped, dev.suspicious) == (200, {}, {})
    assert all(triple.a_is_closer is not None for triple in dev.records)
    held_back = read_triples(REAL / "test/test_track_a.jsonl", strict=True)
    assert {triple.a_is_closer for triple in held_back.records} == {None}
    assert held_back.summary() == "test_track_a.jsonl: 400 rows"
    with pytest.raises(DataError, match="400 no label"):
        read_examples(REAL / "test/test_track_a.jsonl")


@real
def test_real_synthetic_data_has_one_row_of_nulls():
    reading = read_examples(REAL / "synthetic/synthetic_data_for_classification_830of1900.jsonl")
    assert (len(reading.records), reading.total, reading.suspicious) == (829, 830, {})
    assert reading.dropped == {"missing anchor_text": 1}


@real
@pytest.mark.parametrize(
    ("name", "count"),
    [("dev/dev_track_b", 479), ("test/test_track_b", 849), ("sample/sample_track_b", 108)],
)
def test_real_stories(name, count):
    assert len(read_stories(REAL / f"{name}.jsonl", strict=True).records) == count


@real
def test_real_labels_may_repeat_the_stories():
    path = REAL / "dev/dev_track_a.jsonl"
    assert read_triples(path, labels=path).records == read_triples(path).records
    with pytest.raises(DataError, match=re.escape("39 labels")):
        read_triples(path, labels=REAL / "sample/sample_track_a.jsonl")


def test_a_triple_may_bring_more_negatives(make):
    row = AB | {"neg_outcome_1": "o", "negatives": [{"text": "m", "kind": "mined"}], "neg_theme_2": ""}
    found = read_examples(make("e.jsonl", json.dumps(row))).records
    expected = (Negative("q", "triple"), Negative("m", "mined"), Negative("o", "outcome"))
    assert found == [Example("x", "p", expected)]
    reading = read_examples(make("f.jsonl", json.dumps(row) + "\n" + json.dumps(AB | {"neg_theme_1": "x"})))
    assert reading.dropped == {"anchor among its negatives": 1}
    assert read_triples(make("t.jsonl", json.dumps(row))).records == [TRIPLE]
