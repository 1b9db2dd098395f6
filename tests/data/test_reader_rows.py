"""Readers: which rows are dropped or suspicious, how they are counted, and labels from a file of their own."""

from pathlib import Path

import pytest

from narrlit.data.readers import Reading, read_examples, read_stories, read_triples
from narrlit.data.records import Story, Triple
from narrlit.errors import DataError

AB = {"anchor_text": "x", "text_a": "p", "text_b": "q", "text_a_is_closer": True}
TRIPLE = Triple("x", "p", "q", True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text_a": ""}, "empty text_a"),
        ({"text_a": " \t\n"}, "empty text_a"),
        ({"text_a": None}, "missing text_a"),
        ({"text_b": 5}, "text_b is not text"),
        ({"anchor_text": ["x"]}, "anchor_text is not text"),
        ({"anchor_text": "broken \ud83d escape"}, "anchor_text has half a surrogate pair"),
    ],
)
@pytest.mark.parametrize("read", [read_triples, read_examples])
def test_rows_that_are_dropped(make, read, change, reason):
    path = make("t.jsonl", [AB, AB | change, AB])
    reading = read(path)
    assert (len(reading.records), reading.total, reading.dropped) == (2, 3, {reason: 1})
    with pytest.raises(DataError, match=f"t.jsonl:2: {reason}; mend the row$"):
        read(path, strict=True)


@pytest.mark.parametrize("value", [3, [1], None, "text"])
def test_rows_that_are_no_objects_are_dropped(make, value):
    assert read_triples(make("t.jsonl", [AB, value])).dropped == {"row is not an object": 1}


def test_stories_that_are_dropped(make):
    rows = [{"text": "a"}, "b", 3, None, {"story": "c"}, "", {"text": " "}]
    reading = read_stories(make("s.jsonl", rows))
    assert reading.records == [Story("a"), Story("b")]
    assert reading.dropped == {"text is not text": 1, "missing text": 2, "empty text": 2}


def test_a_row_with_several_faults_counts_once(make):
    reading = read_triples(make("t.jsonl", [AB, {}, {"anchor_text": None, "text_a": "", "text_b": 2}]))
    assert reading.dropped == {"missing anchor_text": 2}
    assert reading.total == 3


def test_a_short_csv_row_has_missing_fields(make):
    reading = read_triples(make("t.csv", "anchor_text,text_a,text_b\nx,p,q\nx,p\n"))
    assert reading.dropped == {"missing text_b": 1}


@pytest.mark.parametrize(
    ("read", "sound", "first", "reason"),
    [
        (read_stories, {"text": "a story"}, {"id": 1}, "missing text"),
        (read_stories, {"story": "a story"}, {"id": 1}, "missing story"),
        (read_stories, "a story", {"id": 1}, "missing text"),
        (read_stories, {"text": "a story"}, 3, "text is not text"),
        (read_triples, AB, {"id": 1}, "missing anchor_text"),
        (read_triples, AB, {"anchor_text": "x", "text_b": "q"}, "missing text_a"),
        (read_triples, AB, [1], "row is not an object"),
        (read_examples, AB, {"id": 1}, "missing anchor_text"),
        (read_examples, {"anchor": "x", "positive": "p"}, {"anchor": "x"}, "missing positive"),
        (read_examples, {"anchor": "x", "positive": "p"}, "x", "row is not an object"),
    ],
)
def test_the_layout_is_that_of_the_first_row_that_has_one(make, read, sound, first, reason):
    path = make("f.jsonl", [first, sound])
    reading = read(path)
    assert (len(reading.records), reading.total, reading.dropped) == (1, 2, {reason: 1})
    with pytest.raises(DataError, match=f"f.jsonl:1: {reason}; mend the row$"):
        read(path, strict=True)


def test_a_short_first_csv_row_is_dropped(make):
    reading = read_triples(make("t.csv", "anchor_text,text_a,text_b\nx,p\nx,p,q\n"))
    assert (len(reading.records), reading.dropped) == (1, {"missing text_b": 1})


def test_strict_takes_a_sound_file(make):
    assert read_triples(make("t.jsonl", [AB]), strict=True).records == [TRIPLE]
    assert read_stories(make("s.jsonl", ["Café – “naïve”…"]), strict=True).total == 1


@pytest.mark.parametrize(
    "text",
    [
        "it\ufffds",
        *(good.encode().decode("cp1252", "replace") for good in ("it’s", "café", "a – b", "50 £", "a 🙂")),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_mojibake_is_kept_and_counted_strict_or_not(make, text, strict):
    reading = read_triples(make("t.jsonl", [AB, AB | {"text_a": text}]), strict=strict)
    assert reading.records[1].a == text
    assert reading.suspicious == {"mojibake in text_a": 1}
    assert reading.summary() == "t.jsonl: 2 rows; suspicious: 1 mojibake in text_a"


def test_utf8_read_as_latin_1_is_suspicious(make):
    assert read_stories(make("s.jsonl", ["it’s".encode().decode("latin-1")])).suspicious == {"mojibake in text": 1}


@pytest.mark.parametrize("text", ["Weiß’s", "São Paulo", "âge", "MAÇÃ", "à la", "这个", "ℛ\u200d", "a\x85b", "“Â”"])
def test_sound_text_is_not_suspicious(make, text):
    assert read_stories(make("s.jsonl", [text])).suspicious == {}


def test_mojibake_in_negatives_counts_once_a_row(make):
    rows = [{"anchor": "x", "positive": "p", "negatives": ["itâ€™s", "Ã©t"]}]
    assert read_examples(make("e.jsonl", rows)).suspicious == {"mojibake in negatives": 1}


def test_summary():
    path = Path("folder/x.jsonl")
    assert Reading(["r"], path).summary() == "x.jsonl: 1 row"
    dropped = {"text_b is not text": 1, "empty text_a": 1, "no label": 3}
    expected = "x.jsonl: 2 of 7 rows, dropped 5 (3 no label, 1 empty text_a, 1 text_b is not text)"
    assert Reading(["r", "s"], path, dropped).summary() == expected


def one_line(error):
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.jsonl", '{"text_a_is_closer": false}\n{"text_a_is_closer": true}\n{"text_a_is_closer": null}\n'),
        ("l.jsonl", "false\ntrue\nnull\n"),
        ("l.csv", 'text_a_is_closer\n0\nTrue\n""\n'),
    ],
)
def test_labels_replace_those_of_the_stories_and_count_dropped_rows(make, name, content):
    stories = make("t.jsonl", [AB | {"text_a": ""}, AB | {"text_a_is_closer": False}, AB])
    reading = read_triples(stories, labels=make(name, content))
    assert [t.a_is_closer for t in reading.records] == [True, None]
    assert reading.dropped == {"empty text_a": 1}


def test_labels_pass_over_rows_that_are_no_objects(make):
    reading = read_triples(make("t.jsonl", [AB, 3, AB]), labels=make("l.jsonl", "true\ntrue\nfalse\n"))
    assert [t.a_is_closer for t in reading.records] == [True, False]


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_labels_is_refused(make, count):
    with pytest.raises(DataError, match=rf"l.jsonl has {count} labels but .*t.jsonl has 2 rows; give") as error:
        read_triples(make("t.jsonl", [AB, AB]), labels=make("l.jsonl", "true\n" * count))
    one_line(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('true\n"perhaps"', r"l.jsonl:2: text_a_is_closer is not true or false; write true, false or null"),
        ('true\n{"closer": true}', r"l.jsonl:2: no text_a_is_closer; give one"),
        ("true\n{", r"l.jsonl:2: broken JSON"),
        (
            'true\n{"text_a_is_closer": true, "anchor_text": "another"}',
            r"l.jsonl:2: its anchor_text is not the one at .*t.jsonl:2; put the labels in the order",
        ),
    ],
)
def test_labels_that_cannot_be_used_are_refused(make, content, message):
    with pytest.raises(DataError, match=message) as error:
        read_triples(make("t.jsonl", [AB, AB]), labels=make("l.jsonl", content))
    one_line(error)


def test_labels_for_stories_that_name_the_similar_one_are_refused(make):
    stories = make("t.csv", "anchor_story,similar_story,dissimilar_story\nx,p,q\n")
    with pytest.raises(DataError, match="leave the file of labels out"):
        read_triples(stories, labels=make("l.jsonl", "false\n"))


@pytest.mark.parametrize("row", [AB, {"anchor": "x", "positive": "p"}])
def test_training_rows_may_say_which_source_they_are_copies_of(make, row):
    rows = [row | {"group": "s1"}, row | {"group": 7}, row | {"group": None}, row, row | {"group": [1]}]
    reading = read_examples(make("t.jsonl", rows))
    assert [example.group for example in reading.records] == ["s1", "7", None, None]
    assert reading.dropped == {"group is not text": 1}
