"""Errors and notes of the library that the page writes in its own language."""

import shutil

import openpyxl
import pytest
from documents import write_pdf
from refusals import refused

import narrlit
from narrlit.data.readers import parse_stories
from narrlit.data.rows import read_rows
from narrlit.data.writers import write_table
from narrlit.files import exclusive
from narrlit.serving.messages import message_of

FILES = {
    "broken_csv": ("a.csv", b'id,text\n1,"A king', {"line": 2}),
    "broken_document": ("a.docx", b"PK", {}),
    "broken_json": ("a.jsonl", b'{"text": "A king"}\n{', {"line": 2}),
    "broken_workbook": ("a.xlsx", b"PK", {}),
    "empty_file": ("a.txt", b"", {}),
    "no_header": ("a.csv", b"1,A king once fell very ill and died.\n2,A fox.", {}),
    "no_text_column": ("a.csv", b"a,b\n1,2", {}),
    "no_usable_row": ("a.csv", b"id,text\n1,\n2,", {}),
    "not_text": ("a.txt", bytes(range(256)) * 4, {}),
    "same_column_twice": ("a.csv", b"text,text\n1,2", {"line": 1, "column": "text"}),
    "too_many_fields": ("a.csv", b"id,text\n1,A king,ruled", {"line": 2}),
    "several_text_columns": ("a.csv", b"plot,summary\n1,2", {"column": "plot"}),
}
NOTES = {"read_as": {"encoding": "cp1252"}, "read_sheet": {"sheet": "My tales", "sheets": "Notes"}}
OPERATIONS = {
    "damaged_index",
    "empty_index",
    "empty_query",
    "few_for_map",
    "folder_in_use",
    "long_for_excel",
    "no_text_inside",
    "nothing_to_write",
}


def operation(code, folder, index):
    """Do what fails with the message of a code."""
    if code == "damaged_index":
        for file in (index.path / "stories.lance" / "data").iterdir():
            file.write_bytes(b"x" * 10)
        narrlit.Index(index.path).collection()
    elif code == "empty_index":
        index.delete(index.collection().frame["id"].tolist())
        index.collection()
    elif code == "empty_query":
        index.search(" ").table()
    elif code == "few_for_map":
        two = narrlit.Index.create(folder / "two", ["A king fell ill.", "A fox ran."], narrlit.load("minilm"))
        narrlit.map_stories(two.collection())
    elif code == "folder_in_use":
        with exclusive(folder / "index"), exclusive(folder / "index"):
            pass
    elif code == "long_for_excel":
        write_table(folder / "a.xlsx", [{"text": "x" * 40_000}])
    elif code == "no_text_inside":
        write_pdf(folder / "scan.pdf")
        read_rows(folder / "scan.pdf")
    else:
        write_table(folder / "a.csv", [])


@pytest.mark.parametrize("code", FILES)
def test_a_file_that_is_not_read_has_the_code_of_its_problem(tmp_path, code):
    name, content, values = FILES[code]
    (tmp_path / name).write_bytes(content)

    with refused(code, **values) as raised:
        parse_stories(read_rows(tmp_path / name), strict=False)

    message = message_of(raised.value)
    assert message.code == code
    assert message.values.items() >= values.items()


@pytest.mark.parametrize("code", NOTES)
def test_a_note_of_the_reader_has_a_code(tmp_path, code):
    if code == "read_as":
        path = tmp_path / "a.txt"
        path.write_bytes("Der König fiel über die große Brücke und ertrank.".encode("cp1252"))
    else:
        path = tmp_path / "a.xlsx"
        book = openpyxl.Workbook()
        book.active.title = "My tales"
        book.active.append(["text"])
        book.active.append(["A king fell ill."])
        book.create_sheet("Notes").append(["x"])
        book.save(path)

    messages = [message_of(note) for note in read_rows(path).notes]

    assert [(message.code, message.values) for message in messages] == [(code, NOTES[code])]


@pytest.mark.parametrize("code", sorted(OPERATIONS))
def test_an_operation_that_fails_has_a_code(tmp_path, tales_index, code):
    shutil.copytree(tales_index, tmp_path / "tales")

    with refused(code):
        operation(code, tmp_path, narrlit.Index(tmp_path / "tales"))
