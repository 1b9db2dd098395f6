"""Readers: each message for a file that can't be read, and what large or odd but sound files need."""

import csv
import os
import subprocess
import sys

import pytest

from narrlit.data.readers import file_digest, read_examples, read_stories, read_triples
from narrlit.data.records import Story
from narrlit.errors import DataError

AB = {"anchor_text": "x", "text_a": "p", "text_b": "q", "text_a_is_closer": True}
READERS = [read_stories, read_triples, read_examples]


def one_line(error):
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.jsonl", "", r"f.jsonl is empty; name a file"),
        ("f.jsonl", " \n\r\n", r"f.jsonl is empty"),
        ("f.csv", b"\xef\xbb\xbf", r"f.csv is empty"),
        ("f.csv", "text,anchor_text,text_a,text_b\n", r"f.csv has no rows"),
        ("f.jsonl", b'{"text": "a"}\n{"text": "caf\xe9"}\n', r"f.jsonl:2: not UTF-8 \(byte 0xe9\); save the file"),
        ("f.csv", "text\nx\n".encode("utf-16"), r"f.csv:1: not UTF-8"),
        (
            "f.jsonl",
            '{"text": "a"}\n\n{"text": "b"\n',
            r"f.jsonl:3: broken JSON, .*; write one whole JSON value a line",
        ),
        ("f.jsonl", "[" * 100_000, r"f.jsonl:1: "),
        ("f.jsonl", "9" * 5_000, r"f.jsonl:1: "),
        ("f.parquet", "PAR1", r"f.parquet: unknown kind of file '.parquet'; name a .jsonl"),
        ("f", "text", r"f: unknown kind of file ''"),
        ("f.jsonl", [{"tekst": "a", "n": 1}], r"f.jsonl: unknown layout, its first row has tekst,n; known: "),
        ("f.jsonl", [{"tekst": "a"}, {"n": 1}], r"f.jsonl: unknown layout, its first row has tekst; known: "),
        ("f.jsonl", [{}], r"f.jsonl: unknown layout, its first row has no fields; known: "),
        ("f.csv", "tekst,n\na,1\n", r"f.csv: unknown layout, its first row has tekst,n; known: "),
        ("f.json", "\n[1, 2]", r"f.json:2: unknown layout, a JSON list where a row of fields is due; known: "),
        ("f.csv", 'text\n"a"\n"never closed\nb\n', r"f.csv:3: broken CSV, "),
        ("f.csv", "text,n\na,1\nb, and c,2\n", r"f.csv:3: 3 fields where the header has 2; put texts"),
        ("f.csv", "text,n,text\na,1,b\n", r"f.csv: two columns are named text; rename"),
    ],
)
def test_files_that_are_refused(make, read, name, content, message):
    with pytest.raises(DataError, match=message) as error:
        read(make(name, content))
    one_line(error)


@pytest.mark.parametrize("read", [*READERS, file_digest])
def test_missing_files_and_folders_are_refused(tmp_path, read):
    with pytest.raises(DataError, match=r"none.jsonl does not exist; check the path"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        read(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_files_without_permission_are_refused(make):
    path = make("f.jsonl", [AB])
    path.chmod(0)
    with pytest.raises(DataError, match=r"cannot read .*permissions"):
        read_triples(path)


def test_a_file_in_place_of_a_folder_is_refused(make):
    with pytest.raises(DataError, match=r"cannot read .*: Not a directory"):
        read_triples(make("f.jsonl", [AB]) / "g.jsonl")


def test_text_files_hold_no_triples(make):
    with pytest.raises(DataError, match=r"f.txt:1: unknown layout, a line of text where a row of fields is due"):
        read_triples(make("f.txt", "a\n"))


@pytest.mark.parametrize(
    ("read", "rows", "message"),
    [
        (read_stories, [{"text": ""}], r"none of its 1 row can be used \(1 empty text\); mend"),
        (read_triples, [AB | {"text_a": ""}] * 2, r"none of its 2 rows can be used \(2 empty text_a\)"),
        (read_examples, [AB | {"text_a_is_closer": None}], r"none of its 1 row can be used \(1 no label\)"),
    ],
)
def test_files_without_a_row_to_use_are_refused(make, read, rows, message):
    with pytest.raises(DataError, match=message) as error:
        read(make("f.jsonl", rows))
    one_line(error)


def test_places_in_csv_count_lines_within_texts(make):
    path = make("t.csv", 'anchor_text,text_a,text_b\n"x\ny\r\nz",p,q\n\nx,,q\n')
    assert read_triples(path).records[0].anchor == "x\ny\r\nz"
    with pytest.raises(DataError, match=r"t.csv:6: empty text_a"):
        read_triples(path, strict=True)


def test_large_fields_are_read_and_the_limit_is_put_back(make):
    before = csv.field_size_limit(50_000)
    try:
        story = "word " * 100_000
        assert read_stories(make("s.csv", f'text\n"{story}"\n')).records == [Story(story)]
        assert csv.field_size_limit() == 50_000
    finally:
        csv.field_size_limit(before)


def test_digest_is_of_the_bytes(make):
    path = make("f.jsonl", "abc")
    assert file_digest(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_reading_imports_neither_torch_nor_pandas():
    code = "import sys, narrlit.data.readers, narrlit.data.leakage; print({'torch', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
