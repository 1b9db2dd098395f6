"""Readers: every layout and file type, dropped and suspicious rows, labels, and each message for a broken file."""

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from refusals import refused

from narrlit.data.readers import read_any, read_examples, read_stories, read_triples, replace_texts, row_texts
from narrlit.data.rows import Layout, read_rows
from narrlit.data.schema import StoryTable, Triple

AB = {"anchor_text": "x", "text_a": "p", "text_b": "q", "text_a_is_closer": True}
SOUND = {"anchor": "x", "positive": "p", "negatives": ["n"]}
READERS = [read_stories, read_triples, read_examples]


def texts(stories):
    return [story.text for story in stories]


def negatives(examples, row=0):
    example = examples[row]
    return [(examples.stories[i].text, kind) for i, kind in zip(example.negatives, example.kinds, strict=True)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.jsonl", '{"text": "one"}\n{"text": "two"}\n'),
        ("s.ndjson", '{"text": "one"}\r\n\r\n  \n{"text": "two"}\r\n'),
        ("s.jsonl", '"one"\n"two"'),
        ("s.CSV", 'n,story\r\n1,one\r\n2,"two"\r\n'),
        ("s.csv", 'id;text\r\n1;one\r\n2;"two"\r\n'),
        ("s.tsv", "n\ttext\n1\tone\n2\ttwo\n"),
        ("s.csv", "id|text\n1|one\n2|two\n"),
        ("s.csv", "id\ttext\n1\tone\n2\ttwo\n"),
        ("s.json", '[{"text": "one"},\n {"text": "two"}]\n'),
        ("s.csv", b"\xef\xbb\xbftext\none\ntwo\n"),
    ],
)
def test_stories_of_every_type(make, name, content):
    stories = read_stories(make(name, content))
    assert texts(stories) == ["one", "two"]
    assert stories.report.rows == 2
    assert stories.report.dropped == {}
    assert stories.report.suspicious == {}


def test_stories_keep_ids_lines_and_columns_and_share_a_table(make):
    path = make("s.csv", "title,text,id\nT,a,n1\nU,b,\nV,a,n3\n")
    table = StoryTable.of("b")
    stories = read_stories(path, stories=table)

    assert [(story.id, story.text) for story in stories] == [("n1", "a"), ("0", "b"), ("n3", "a")]
    assert stories.rows == [1, 0, 1]
    assert stories.lines == [2, 3, 4]
    assert len(table) == 2
    assert [value["title"] for value in stories.values] == ["T", "U", "V"]
    assert stories.report.unread == ("title",)
    assert texts(read_stories(path, layout=Layout("title"))) == ["T", "U", "V"]

    rows = [{"text": "a", "id": 7}, {"text": "d", "id": [1]}]
    assert read_stories(make("s.jsonl", rows)).report.dropped == {"id is not text": 1}


def test_unicode_line_separators_do_not_split_rows(make):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    assert texts(read_stories(make("s.jsonl", json.dumps({"text": text}, ensure_ascii=False)))) == [text]
    assert texts(read_stories(make("s.txt", "a\u2028b\nc\n"), layout=Layout(split="lines"))) == ["a\u2028b", "c"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl", json.dumps(AB)),
        ("t.csv", "anchor_text,text_a,text_b,text_a_is_closer\nx,p,q,True\n"),
        ("t.tsv", "anchor_text\ttext_a\ttext_b\ttext_a_is_closer\nx\tp\tq\tTRUE\n"),
        ("t.csv", "anchor_story,similar_story,dissimilar_story\nx,p,q\n"),
        ("t.csv", b"\xef\xbb\xbfanchor_text,text_a,text_b,text_a_is_closer\r\nx,p,q,true\r\n"),
    ],
)
def test_triples_of_every_type(make, name, content):
    path = make(name, content)
    triples = read_triples(path)
    assert triples.texts() == [("x", "p", "q")]
    assert triples.labels.tolist() == [1]

    examples = read_examples(path)
    assert examples.texts() == [("x", "p", "q")]
    assert negatives(examples) == [("q", "triple")]


@pytest.mark.parametrize(
    ("label", "value"), [(False, False), (1, True), ("false", False), (" TRUE ", True), (None, None)]
)
def test_labels_in_json(make, label, value):
    assert read_triples(make("t.jsonl", [AB | {"text_a_is_closer": label}])).rows == [Triple(0, 1, 2, value)]


def test_an_example_takes_the_closer_candidate_and_needs_a_label(make):
    rows = [AB, AB | {"text_a_is_closer": False}, AB | {"text_a_is_closer": None}]
    examples = read_examples(make("t.jsonl", rows))
    assert examples.texts() == [("x", "p", "q"), ("x", "q", "p")]
    assert examples.report.dropped == {"no label": 1}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"text": "n", "kind": "outcome"}, ("n", "outcome")),
        ({"text": "n"}, ("n", None)),
        ("n", ("n", None)),
        ({"text": "n", "dimension": "structure"}, ("n", "action")),
        ({"text": "n", "kind": "mined", "dimension": ""}, ("n", "mined")),
    ],
)
def test_listed_negatives(make, item, expected):
    assert negatives(read_examples(make("e.jsonl", [SOUND | {"negatives": [item]}]))) == [expected]


@pytest.mark.parametrize(
    ("anchor", "positive"),
    [("anchor", "positive"), ("anchor_text", "positive_text"), ("anchor_story", "similar_story")],
)
def test_numbered_negatives(make, anchor, positive):
    header = f"neg_outcome_1,{anchor},{positive},neg_theme_10,neg_theme_2,neg_structure_1"
    examples = read_examples(make("e.csv", f"{header}\no1,x,p,t10,t2,s1\n,x,p,,  ,s1\n,x,p\n"))
    assert negatives(examples) == [("t2", "theme"), ("t10", "theme"), ("s1", "action"), ("o1", "outcome")]
    assert negatives(examples, 1) == [("s1", "action")]
    assert negatives(examples, 2) == []

    examples = read_examples(make("e.csv", "anchor,positive,negative,negative_2,neg_mined,neg_theme\nx,p,n,m,i,t\n"))
    assert negatives(examples) == [("t", "theme"), ("i", "mined"), ("n", None), ("m", None)]


def test_a_triple_may_bring_more_negatives_and_a_group(make):
    row = AB | {"neg_outcome_1": "o", "negatives": [{"text": "m", "kind": "mined"}], "neg_theme_2": "", "group": 7}
    examples = read_examples(make("e.jsonl", [row]))
    assert negatives(examples) == [("q", "triple"), ("m", "mined"), ("o", "outcome")]
    assert examples[0].group == "7"
    assert len(read_triples(make("t.jsonl", [row])).stories) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"negatives": ["p"]}, "positive among its negatives"),
        ({"positive": "x"}, "anchor is its positive"),
        ({"negatives": "n"}, "negatives is not a list"),
        ({"negatives": [3]}, "negative is not text"),
        ({"negatives": [{"text": "n", "kind": "mood"}]}, "unknown kind"),
        ({"negatives": [{"text": "n", "kind": ["theme"]}]}, "unknown kind"),
    ],
)
def test_examples_that_are_dropped(make, change, reason):
    path = make("e.jsonl", [SOUND, SOUND | change])
    examples = read_examples(path)
    assert len(examples) == 1
    assert examples.report.dropped == {reason: 1}
    with refused("unusable_row", place="e.jsonl:2", reason=reason):
        read_examples(path, strict=True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text_a": ""}, "empty text_a"),
        ({"text_a": None}, "missing text_a"),
        ({"text_b": 5}, "text_b is not text"),
        ({"anchor_text": "broken \ud83d escape"}, "anchor_text is not text"),
        ({"text_a_is_closer": "maybe"}, "text_a_is_closer is not true or false"),
    ],
)
@pytest.mark.parametrize("read", [read_triples, read_examples])
def test_rows_that_are_dropped(make, read, change, reason):
    path = make("t.jsonl", [AB, AB | change, AB])
    rows = read(path)
    assert len(rows) == 2
    assert rows.report.rows == 3
    assert rows.report.dropped == {reason: 1}
    with refused("unusable_row", place="t.jsonl:2", reason=reason):
        read(path, strict=True)


@pytest.mark.parametrize(
    ("read", "sound", "first", "reason"),
    [
        (read_stories, {"text": "a story"}, {"id": 1}, "missing text"),
        (read_stories, "a story", {"id": 1}, "missing text"),
        (read_stories, {"text": "a story"}, 3, "row is not an object"),
        (read_triples, AB, {"anchor_text": "x", "text_b": "q"}, "missing text_a"),
        (read_examples, {"anchor": "x", "positive": "p"}, {"anchor": "x"}, "missing positive"),
    ],
)
def test_the_layout_is_that_of_the_first_row_that_has_one(make, read, sound, first, reason):
    rows = read(make("f.jsonl", [first, sound]))
    assert len(rows) == 1
    assert rows.report.dropped == {reason: 1}


@pytest.mark.parametrize(
    "text",
    ["it\ufffds", *(good.encode().decode("cp1252", "replace") for good in ("it’s", "café", "a – b", "50 £", "a 🙂"))],
)
@pytest.mark.parametrize("strict", [False, True])
def test_mojibake_is_read_and_counted_strict_or_not(make, text, strict):
    triples = read_triples(make("t.jsonl", [AB, AB | {"text_a": text}]), strict=strict)
    assert triples.texts()[1][1] == text
    assert triples.report.summary() == "t.jsonl: 2 rows; suspicious: 1 mojibake in text_a"


@pytest.mark.parametrize("text", ["Weiß’s", "São Paulo", "âge", "MAÇÃ", "à la", "这个", "ℛ\u200d", "a\x85b", "“Â”"])
def test_sound_text_is_not_suspicious(make, text):
    assert read_stories(make("s.jsonl", [text])).report.suspicious == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.jsonl", '{"text_a_is_closer": false}\n{"text_a_is_closer": true}\n{"text_a_is_closer": null}\n'),
        ("l.jsonl", "false\ntrue\nnull\n"),
        ("l.csv", 'text_a_is_closer\n0\nTrue\n""\n'),
    ],
)
def test_labels_replace_those_of_the_triples_and_count_dropped_rows(make, name, content):
    path = make("t.jsonl", [AB | {"text_a": ""}, AB | {"text_a_is_closer": False}, AB])
    triples = read_triples(path, labels=make(name, content))
    assert triples.labels.tolist() == [1, -1]
    assert triples.report.dropped == {"empty text_a": 1}


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ("true\n", {"code": "number_of_labels", "labels": "l.jsonl", "n": 1, "path": "t.jsonl", "rows": 2}),
        ('true\n"perhaps"', {"code": "invalid_label", "place": "l.jsonl:2", "column": "text_a_is_closer"}),
        ('true\n{"label": true}', {"code": "missing_label_column", "place": "l.jsonl:2", "column": "text_a_is_closer"}),
        (
            'true\n{"text_a_is_closer": true, "anchor_text": "another"}',
            {
                "code": "labels_of_other_triples",
                "place": "l.jsonl:2",
                "column": "anchor_text",
                "place_of_texts": "t.jsonl:2",
            },
        ),
    ],
)
def test_labels_that_are_refused(make, content, refusal):
    with refused(**refusal):
        read_triples(make("t.jsonl", [AB, AB]), labels=make("l.jsonl", content))
    similar = make("t.csv", "anchor_story,similar_story,dissimilar_story\nx,p,q\nx,p,q\n")
    with refused("labels_and_similar_story"):
        read_triples(similar, labels=make("l.jsonl", "false\nfalse\n"))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("f.jsonl", "", {"code": "empty_file", "path": "f.jsonl"}),
        ("f.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xff\x8d", {"code": "not_text", "path": "f.csv"}),
        ("f.jsonl", '{"text": "a"}\n\n{"text": "b"\n', {"code": "broken_json", "path": "f.jsonl", "line": 3}),
        ("f.jsonl", "[" * 100_000, {"code": "broken_json", "path": "f.jsonl", "line": 1}),
        ("f.parquet", "PAR1", {"code": "broken_parquet", "path": "f.parquet"}),
        ("f.xlsx", b"PK broken", {"code": "broken_workbook", "path": "f.xlsx"}),
        ("f.doc", b"\xd0\xcf\x11\xe0", {"code": "unknown_file_type", "path": "f.doc", "suffix": ".doc"}),
        (
            "f.jsonl",
            [{"tekst": "a", "n": 1}],
            {"code": "no_text_column", "path": "f.jsonl", "line": 1, "found": "tekst, n"},
        ),
        ("f.jsonl", [{}], {"code": "no_text_column", "path": "f.jsonl", "line": 1, "found": "none"}),
        ("f.csv", 'text\n"a"\n"never closed\nb\n', {"code": "broken_csv", "path": "f.csv", "line": 3}),
        (
            "f.csv",
            "text,n\na,1\nb, and c,2\n",
            {"code": "too_many_fields", "path": "f.csv", "line": 3, "found": 3, "needed": 2},
        ),
        ("f.csv", "text,n,text\na,1,b\n", {"code": "same_column_twice", "path": "f.csv", "line": 1, "column": "text"}),
        (
            "f.csv",
            "Once a king fell ill and sent for his three sons.,2\nb,1\n",
            {"code": "no_header", "path": "f.csv"},
        ),
    ],
)
def test_files_that_are_refused(make, read, name, content, refusal):
    with refused(**refusal) as error:
        read(make(name, content))
    assert "\n" not in str(error.value)
    assert "his three sons" not in str(error.value)


def test_files_without_a_row_to_use_are_refused(make):
    with refused("no_usable_row", dropped="2 empty text_a"):
        read_triples(make("f.jsonl", [AB | {"text_a": ""}] * 2))
    with refused("row_without_columns", path="f.jsonl", line=1, found="a line of text"):
        read_triples(make("f.jsonl", '"a"\n'))


def test_lines_in_csv_count_those_within_texts(make):
    path = make("t.csv", 'anchor_text,text_a,text_b\n"x\ny\r\nz",p,q\n\nx,,q\n')
    assert read_triples(path).texts()[0][0] == "x\ny\r\nz"
    with refused("unusable_row", place="t.csv:6", reason="empty text_a"):
        read_triples(path, strict=True)


def test_read_any_gives_every_story_with_its_line(make):
    found = read_any(make("t.jsonl", [AB | {"text_a_is_closer": None}, AB | {"text_a": ""}, AB | {"neg_theme_1": "n"}]))
    assert texts(found) == list("xpqxpqn")
    assert found.lines == [1, 1, 1, 3, 3, 3, 3]
    assert found.report.dropped == {"empty text_a": 1}
    assert texts(read_any(make("e.jsonl", [SOUND]))) == ["x", "p", "n"]
    assert texts(read_any(make("s.txt", "a\nb\n"))) == ["a\nb"]
    assert texts(read_any(make("s.csv", "plot\na\nb\n"))) == ["a", "b"]


def test_raw_texts_are_found_and_replaced(make):
    row = SOUND | {"negatives": ["n", {"text": "m", "kind": "theme"}], "neg_1": "o", "note": "x", "group": "g"}
    kind, found = row_texts(read_rows(make("e.jsonl", [row, 3])))
    expected = {"anchor": "x", "positive": "p", "negatives/0": "n", "negatives/1/text": "m", "neg_1": "o"}

    assert kind == "examples"
    assert found == [expected, {}]

    changed = replace_texts(row, {place: text.upper() for place, text in found[0].items()})
    assert changed == row | {
        "anchor": "X",
        "positive": "P",
        "negatives": ["N", {"text": "M", "kind": "theme"}],
        "neg_1": "O",
    }

    views = {"text": "a", "theme": "t", "plot_events": ["e", "f"], "outcome": "o", "id": "i"}
    kind, found = row_texts(read_rows(make("v.jsonl", [views, "bare"])))
    assert kind == "stories"
    assert list(found[0]) == ["text", "theme", "plot_events/0", "plot_events/1", "outcome"]
    assert found[1] == {"": "bare"}
    assert replace_texts("bare", {"": "B"}) == "B"
    assert row_texts(read_rows(make("t.jsonl", [AB])))[0] == "triples"


def test_reading_imports_neither_torch_nor_pandas():
    modules = "narrlit.data.readers, narrlit.data.splits"
    code = f"import sys, {modules}; print({{'torch', 'pandas', 'sklearn'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


REAL = Path(__file__).parents[2].parent / "shared/data/nsnrl"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the task's data is not beside the checkout")


@real
def test_real_files():
    dev = read_triples(REAL / "dev/dev_track_a.jsonl", strict=True)
    assert len(dev) == 200
    assert dev.report.dropped == {}
    assert dev.report.suspicious == {}
    assert set(dev.labels.tolist()) == {0, 1}
    assert set(read_triples(REAL / "test/test_track_a.jsonl", strict=True).labels.tolist()) == {-1}

    synthetic = read_examples(REAL / "synthetic/synthetic_data_for_classification_830of1900.jsonl")
    assert len(synthetic) == 829
    assert synthetic.report.dropped == {"missing anchor_text": 1}
    for name, count in (("dev/dev_track_b", 479), ("test/test_track_b", 849), ("sample/sample_track_b", 108)):
        assert len(read_stories(REAL / f"{name}.jsonl", strict=True)) == count

    path = REAL / "dev/dev_track_a.jsonl"
    assert read_triples(path, labels=path).rows == dev.rows
    with refused("number_of_labels", n=39):
        read_triples(path, labels=REAL / "sample/sample_track_a.jsonl")


def test_ids_columns_values_and_texts_have_one_form(make):
    decomposed = unicodedata.normalize("NFD", "König")
    rows = [{"Erzählung": f"Ein {decomposed}.", "id": decomposed, "Ort": f"{decomposed}\u00a07", "Jahr": 7}]
    path = make("s.jsonl", rows)
    stories = read_stories(path, layout=Layout(text_column=unicodedata.normalize("NFD", "Erzählung")))
    assert stories.story_ids == ["König"]
    assert stories.metadata == [{"Ort": "König 7", "Jahr": 7}]
    assert (stories[0].id, stories[0].text, stories.values) == (decomposed, "Ein König.", rows)

    twice = read_stories(make("t.jsonl", [{"id": id, "text": "x"} for id in ("König", decomposed)]))
    with refused("repeated_id", first=1, second=2, id="König"):
        twice.story_ids  # noqa: B018


def test_an_anchor_that_is_its_decomposed_positive_is_dropped(make):
    copy = unicodedata.normalize("NFD", "ein könig ").upper()
    rows = [{"anchor": "Ein König", "positive": copy}, {"anchor": "Ein König", "positive": "p", "negatives": [copy]}]
    examples = read_examples(make("e.jsonl", [*rows, SOUND]))
    assert examples.report.dropped == {"anchor is its positive": 1, "anchor among its negatives": 1}


def test_labels_belong_to_triples_whose_texts_are_decomposed(make):
    triples = make("t.jsonl", [{"anchor_text": "König", "text_a": "a", "text_b": "b"}])
    labels = make("l.jsonl", [{"anchor_text": unicodedata.normalize("NFD", "König"), "text_a_is_closer": True}])
    assert read_triples(triples, labels=labels).rows[0].a_is_closer is True
