"""Writers: what is written is read back equal, and a file appears whole or not at all."""

import csv
import datetime
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_files import read_json_lines
from refusals import refused
from triples import triples_of

from narrlit.data.readers import read_examples, read_stories, read_triples
from narrlit.data.rows import read_rows
from narrlit.data.schema import NEGATIVE_KINDS, Story, StoryTable, TrainingExample, TrainingExamples, composed
from narrlit.data.writers import check_rows, write_examples, write_rows, write_stories, write_table, write_triples

TABLES = ["f.jsonl", "f.csv", "f.tsv"]

# Hypothesis seldom finds these by itself.
awkward = st.sampled_from('\0\n\r\t",;\\ \u2028\u2029\x85\x0b\x0c\x1c\ufeff\u00a0')
characters = st.characters(exclude_categories=["Cs"]) | awkward
texts = st.text(characters, min_size=1, max_size=20).filter(str.strip).map(composed)  # as readers return them
triples = st.tuples(texts, texts, texts, st.sampled_from([True, False, None]))


def back(write, read, name, rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path, rows)
        assert [entry.name for entry in Path(folder).iterdir()] == [name]
        return read(path)


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.builds(Story, texts, texts), min_size=1, max_size=4))
def test_stories_come_back(name, rows):
    assert list(back(write_stories, read_stories, name, rows)) == rows


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(triples, min_size=1, max_size=4))
def test_triples_come_back(name, rows):
    written = triples_of(rows)
    read = back(write_triples, read_triples, name, written)
    assert read.rows == written.rows
    assert read.texts() == written.texts()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_examples_come_back(data):
    table, rows = StoryTable(), []
    for _ in range(data.draw(st.integers(1, 4))):
        anchor, positive, *others = map(table.add, data.draw(st.lists(texts, min_size=2, max_size=5, unique=True)))
        kinds = tuple(data.draw(st.sampled_from([None, *NEGATIVE_KINDS])) for _ in others)
        rows.append(TrainingExample(anchor, positive, tuple(others), kinds, data.draw(st.none() | texts)))

    written = TrainingExamples(table, rows)
    read = back(write_examples, read_examples, "f.jsonl", written)

    assert read.rows == written.rows
    assert read.texts() == written.texts()


FORMULAS = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "'=1", "''-1", "'a", "'", '=HYPERLINK("x")', "-- he said"]
APOSTROPHES = ["", "'", "''"]
formulas = st.builds("{}{}{}".format, st.sampled_from(APOSTROPHES), st.sampled_from("=+-@\t\r'"), texts).map(composed)


@pytest.mark.parametrize("name", ["f.csv", "f.tsv"])
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.builds(Story, texts, formulas | texts), min_size=1, max_size=4))
def test_texts_that_would_run_as_formulas_come_back(name, rows):
    assert list(back(write_stories, read_stories, name, rows)) == rows


@pytest.mark.parametrize("name", ["f.csv", "f.tsv"])
def test_no_cell_of_csv_begins_like_a_formula(tmp_path, name):
    rows = [{"=cmd": text, "@id": -0.5, "n": -3, "text": text} for text in FORMULAS]
    write_table(tmp_path / name, rows, np.array([[-1.0]] * len(rows), dtype=np.float32))
    with (tmp_path / name).open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, delimiter="," if name == "f.csv" else "\t")

    assert header == ["'=cmd", "'@id", "n", "text", "embedding"]
    for cells in lines:
        assert not [cell for cell in (cells[0], cells[3], cells[4]) if cell[:1] in "=+-@\t\r"]
        assert cells[1:3] == ["-0.5", "-3"]  # numbers

    read = [row.value for row in read_rows(tmp_path / name).rows]
    assert [(row["=cmd"], row["@id"], row["text"]) for row in read] == [(text, "-0.5", text) for text in FORMULAS]


def test_texts_of_excel_are_texts_and_come_back(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(tmp_path / "f.xlsx", [{"=cmd": text, "n": -0.5} for text in FORMULAS])
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "f.xlsx").active.iter_rows() for cell in row]

    assert {cell.data_type for cell in cells[::2]} == {"s"}
    assert {cell.value: cell.quotePrefix for cell in cells[::2]} == {
        text: text not in ("'a", "'") for text in ["=cmd", *FORMULAS]
    }
    assert [row.value for row in read_rows(tmp_path / "f.xlsx").rows] == [
        {"=cmd": text, "n": -0.5} for text in FORMULAS
    ]


def test_rows_of_every_column_and_embeddings(tmp_path):
    rows = [{"text": "a", "tags": ["x"], "n": 1}, {"text": 'b "c"', "title": None, "ok": True}]
    embeddings = np.array([[0.5, 1.0], [0.25, -2.0]], dtype=np.float32)
    write_table(tmp_path / "f.jsonl", rows, embeddings)
    lines = read_json_lines(tmp_path / "f.jsonl")

    assert lines == [row | {"embedding": vector} for row, vector in zip(rows, embeddings.tolist(), strict=True)]

    write_table(tmp_path / "f.csv", rows, embeddings)
    written = read_stories(tmp_path / "f.csv").values
    assert list(written[0]) == ["text", "tags", "n", "title", "ok", "embedding"]
    assert written[0]["tags"] == '["x"]'
    assert written[1]["ok"] == "true"
    assert json.loads(written[1]["embedding"]) == [0.25, -2.0]

    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "f.parquet", rows, embeddings)
    table = parquet.read_table(tmp_path / "f.parquet")

    assert table.column("embedding").to_pylist() == embeddings.tolist()
    assert table.column("title").to_pylist() == [None, None]

    write_table(tmp_path / "f.txt", ["a", {"text": "b"}])
    assert (tmp_path / "f.txt").read_text() == "a\nb\n"

    write_table(tmp_path / "f.txt", ["a\nb", "c"])
    assert (tmp_path / "f.txt").read_text() == "a\nb\n\nc\n"


def test_excel_holds_texts_as_they_are_and_a_column_for_each_dimension(tmp_path):
    rows = [{"text": "=1+1", "n": 1, "tags": ["x"]}, {"text": "a\x07b", "n": 2.5, "date": datetime.date(1812, 12, 20)}]
    write_table(tmp_path / "f.xlsx", rows, np.array([[0.5, 1.0], [0.25, -2.0]], dtype=np.float32))
    assert read_stories(tmp_path / "f.xlsx").values == [
        {"text": "=1+1", "n": 1, "tags": '["x"]', "date": None, "embedding_1": 0.5, "embedding_2": 1},
        {"text": "a b", "n": 2.5, "tags": None, "date": "1812-12-20", "embedding_1": 0.25, "embedding_2": -2},
    ]
    with refused("long_for_excel", path="g.xlsx", row=2, characters=32768):
        check_rows(tmp_path / "g.xlsx", [{"text": "a"}, {"text": "b" * 32_768}])


def test_layout_of_what_is_written(tmp_path):
    write_triples(tmp_path / "f.jsonl", triples_of([("é", "b", "c", False)]))
    expected = '{"anchor_text": "é", "text_a": "b", "text_b": "c", "text_a_is_closer": false}\n'
    assert (tmp_path / "f.jsonl").read_text(encoding="utf-8") == expected
    write_triples(tmp_path / "f.csv", triples_of([("a", "b", "c", None)]))
    assert (tmp_path / "f.csv").read_text() == '"anchor_text","text_a","text_b"\n"a","b","c"\n'


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text("before")
    with pytest.raises(TypeError):
        write_rows(path, [{"text": "a row"}, {("no", "name"): 1}])
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".xlsx", ".parquet"])
def test_halves_of_surrogate_pairs_are_written_as_their_escapes(tmp_path, suffix):
    """They are in names of files that are not UTF-8, and in JSON."""
    path = tmp_path / f"rows{suffix}"
    write_table(path, [{"text": "A king.", "id": "Caf\udce9", "of\ud800": 1}])
    (row,) = [row.value for row in read_rows(path).rows]
    escaped = ["Caf\udce9", "of\ud800"] if suffix == ".jsonl" else [r"Caf\udce9", r"of\ud800"]
    assert [row["text"], row["id"], list(row)[2]] == ["A king.", *escaped]


GAPS = [{"id": 1234567890123456789, "year": None}, {"id": 1234567890123456790, "year": 1890}, {"id": None, "year": 7}]


@pytest.mark.parametrize(
    ("name", "ids", "years"),
    [
        ("t.jsonl", [1234567890123456789, 1234567890123456790, None], [None, 1890, 7]),
        ("t.parquet", [1234567890123456789, 1234567890123456790, None], [None, 1890, 7]),
        ("t.xlsx", ["1234567890123456789", "1234567890123456790", None], [None, 1890, 7]),
        ("t.csv", ["1234567890123456789", "1234567890123456790", ""], ["", "1890", "7"]),
        ("t.tsv", ["1234567890123456789", "1234567890123456790", ""], ["", "1890", "7"]),
    ],
)
def test_integers_keep_their_digits(tmp_path, name, ids, years):
    write_table(tmp_path / name, GAPS)
    rows = [row.value for row in read_rows(tmp_path / name).rows]
    assert [repr(row.get("id")) for row in rows] == list(map(repr, ids))
    assert [repr(row.get("year")) for row in rows] == list(map(repr, years))


def test_integers_beyond_64_bits_are_text_where_columns_have_types(tmp_path):
    huge = [{"n": 2**128}, {"n": -5}, {"n": None}]
    for name in ("h.jsonl", "h.parquet", "h.xlsx"):
        write_table(tmp_path / name, huge)
    values = {path.suffix: [row.value.get("n") for row in read_rows(path).rows] for path in tmp_path.iterdir()}
    assert values[".jsonl"] == [2**128, -5, None]
    assert values[".parquet"] == [str(2**128), "-5", None]
    assert values[".xlsx"][:2] == [str(2**128), -5]


@pytest.mark.parametrize("value", [2**53, -(2**53), 2**53 + 1, 2**63])
def test_excel_has_integers_that_are_exact_as_numbers_and_others_as_text(tmp_path, value):
    write_table(tmp_path / "t.xlsx", [{"n": value}])
    [row] = read_rows(tmp_path / "t.xlsx").rows
    assert row.value["n"] == (value if abs(value) <= 2**53 else str(value))
