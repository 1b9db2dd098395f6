"""Writers: what is written is read back equal, and what would not be is refused before a file is touched."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrlit.data.readers import read_examples, read_stories, read_triples
from narrlit.data.records import KINDS, Example, Negative, Story, Triple
from narrlit.data.writers import write_examples, write_stories, write_triples
from narrlit.errors import DataError, OptionError

TABLES = ["f.jsonl", "f.csv", "f.tsv"]
HARD = 'a "quoted", text\r\nwith\rbreaks\u2028and\u2029more\x85, \t tabs; \ufeff \\n é 🙂 '

# Hypothesis seldom finds these by itself; U+0000 is apart, as CSV refuses it.
awkward = st.sampled_from('\n\r\t",;\\ \u2028\u2029\x85\x0b\x0c\x1c\ufeff\u00a0')
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | awkward
texts = st.text(characters, min_size=1, max_size=20).filter(lambda text: text.strip())
stories = st.builds(Story, texts, st.none() | texts)
triples = st.builds(Triple, texts, texts, texts, st.sampled_from([True, False, None]))


@st.composite
def examples(draw):
    anchor, positive, *others = draw(st.lists(texts, min_size=2, max_size=5, unique=True))
    negatives = tuple(Negative(o, draw(st.sampled_from([None, *KINDS]))) for o in others)
    return Example(anchor, positive, negatives, draw(st.none() | texts))


def back(write, read, name, records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path, records)
        assert [entry.name for entry in Path(folder).iterdir()] == [name]
        return read(path).records


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=60, deadline=None)
@given(records=st.lists(stories, min_size=1, max_size=4))
def test_stories_come_back(name, records):
    assert back(write_stories, read_stories, name, records) == records


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=60, deadline=None)
@given(records=st.lists(triples, min_size=1, max_size=4))
def test_triples_come_back(name, records):
    assert back(write_triples, read_triples, name, records) == records


@settings(max_examples=60, deadline=None)
@given(records=st.lists(examples(), min_size=1, max_size=4))
def test_examples_come_back(records):
    assert back(write_examples, read_examples, "f.jsonl", records) == records


@pytest.mark.parametrize("name", TABLES)
def test_hard_text_comes_back(name):
    assert back(write_stories, read_stories, name, [Story(HARD)]) == [Story(HARD)]


def test_json_keeps_nul_and_csv_refuses_it(tmp_path):
    assert back(write_stories, read_stories, "f.jsonl", [Story("a\0b")]) == [Story("a\0b")]
    with pytest.raises(DataError, match=r"f.csv: a text holds a NUL character.*name a .jsonl file"):
        write_stories(tmp_path / "f.csv", [Story("a\0b")])
    assert list(tmp_path.iterdir()) == []


def test_json_is_written_as_it_reads(tmp_path):
    write_triples(tmp_path / "f.jsonl", [Triple("é", "b", "c", False), Triple("x", "b", "c")])
    assert (tmp_path / "f.jsonl").read_bytes().decode() == (
        '{"anchor_text": "é", "text_a": "b", "text_b": "c", "text_a_is_closer": false}\n'
        '{"anchor_text": "x", "text_a": "b", "text_b": "c"}\n'
    )


def test_negatives_are_written_with_their_kind(tmp_path):
    write_examples(tmp_path / "f.jsonl", [Example("x", "p", (Negative("n", "mined"), Negative("m")))])
    written = '{"anchor": "x", "positive": "p", "negatives": [{"text": "n", "kind": "mined"}, {"text": "m"}]}\n'
    assert (tmp_path / "f.jsonl").read_text() == written


def test_columns_without_values_are_left_out_of_csv(tmp_path):
    write_triples(tmp_path / "f.csv", [Triple("a", "b", "c")])
    assert (tmp_path / "f.csv").read_text() == '"anchor_text","text_a","text_b"\n"a","b","c"\n'


def test_a_generator_and_a_new_folder_will_do(tmp_path):
    write_stories(tmp_path / "new/f.jsonl", (Story(text) for text in "ab"))
    assert len(read_stories(tmp_path / "new/f.jsonl").records) == 2


@pytest.mark.parametrize(
    ("write", "record", "reason"),
    [
        (write_stories, Story(" \n"), "cannot write story 2: empty text"),
        (write_stories, Story("a", ""), "cannot write story 2: empty id"),
        (write_stories, Story("a\ud800"), "story 2: text has half a surrogate pair"),
        (write_triples, Triple("a", "", "c"), "cannot write triple 2: empty text_a; mend it or leave it out"),
        (write_examples, Example("a", " "), "cannot write example 2: empty positive"),
        (write_examples, Example("a", "b", (Negative(""),)), "example 2: empty negative"),
        (write_examples, Example("a", "b", (Negative("c", "mood"),)), "example 2: unknown kind"),
        (write_examples, Example("a", "a"), "example 2: anchor is its positive"),
        (write_examples, Example("a", "b", (Negative("a"),)), "example 2: anchor among its negatives"),
    ],
)
def test_records_that_would_not_come_back_are_refused(tmp_path, write, record, reason):
    sound = {write_stories: Story("a"), write_triples: Triple("a", "b", "c"), write_examples: Example("a", "b")}[write]
    path = tmp_path / "f.jsonl"
    path.write_text("before")
    with pytest.raises(DataError, match=reason):
        write(path, [sound, record])
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", [write_stories, write_triples, write_examples])
def test_nothing_to_write_is_refused(tmp_path, write):
    with pytest.raises(DataError, match="to write; give at least one"):
        write(tmp_path / "f.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_kinds_of_file_that_are_not_written(tmp_path):
    with pytest.raises(OptionError, match=r"f.csv: examples have any number of negatives; name a .jsonl file"):
        write_examples(tmp_path / "f.csv", [Example("a", "b")])
    with pytest.raises(OptionError, match=r"f.txt: unknown kind of file '.txt'; name a .jsonl, .csv or .tsv file"):
        write_stories(tmp_path / "f.txt", [Story("a")])
    with pytest.raises(OptionError, match="is a folder"):
        (tmp_path / "d.jsonl").mkdir()
        write_triples(tmp_path / "d.jsonl", [Triple("a", "b", "c")])
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.jsonl"]
