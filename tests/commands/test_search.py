"""narrlit index and narrlit search: from a folder of texts to a table on the screen or in a file."""

import csv
import os
from threading import Thread

import pytest
from json_files import read_json_lines
from page_files import carried
from tiny_models import world_texts


@pytest.fixture
def indexed(narrlit, tiny, tmp_path):
    """A folder of nine stories with a table, and its index."""
    stories = world_texts(3)
    (tmp_path / "tales").mkdir()
    rows = ["file_name,title,country"]
    for n, text in enumerate(stories):
        (tmp_path / "tales" / f"t{n}.txt").write_text(text)
        title = "<b>Tale</b>" if n == 4 else "A tale with a title that takes a lot of room"
        rows.append(f"t{n}.txt,{title},{'FI' * n}")
    (tmp_path / "tales" / "tales.csv").write_text("\n".join(rows))
    outcome = narrlit("index", "tales", "--model", tiny(), "--out", "i")
    assert outcome.code == 0, outcome.err
    assert "i: 9 stories" in outcome.err, outcome.err
    return stories


def test_a_table_on_the_screen_names_stories_and_fits_100_columns(indexed, narrlit):
    outcome = narrlit("search", "i", indexed[4], "--k", "3")
    head, first, *others = outcome.out.splitlines()
    assert head.split() == ["#", "similarity", "id", "title", "snippet"]
    assert [*first.split()[:1], *first.split()[2:4]] == ["1", "t4", "<b>Tale</b>"]
    assert len(others) == 2
    assert max(map(len, [head, first, *others])) <= 100
    assert narrlit("search", "i", "x", "--where", "country = 'XX'").out == "no matching stories\n"


def test_like_takes_an_id_or_a_file_and_leaves_that_story_out(indexed, narrlit, tmp_path):
    by_id = narrlit("search", "i", "--like", "t4", "--k", "3", "--out", "a.jsonl")
    by_file = narrlit("search", "i", "--like", "tales/t4.txt", "--k", "3", "--out", "b.csv")
    assert by_id.code == 0, by_id.err + by_file.err
    assert by_file.code == 0, by_id.err + by_file.err

    rows = read_json_lines(tmp_path / "a.jsonl")
    with (tmp_path / "b.csv").open(newline="") as file:
        same = [row["id"] for row in csv.DictReader(file)]

    assert [row["id"] for row in rows] == same
    assert len(rows) == 3
    assert "t4" not in same
    assert list(rows[0]) == ["rank", "id", "title", "similarity", "snippet", "file_name", "country"]
    assert [row["country"] for row in rows if row["id"] == "t0"] in ([], [None])

    os.mkfifo(tmp_path / "pipe.txt")  # as <(...) and - are
    Thread(target=(tmp_path / "pipe.txt").write_text, args=[indexed[4]]).start()
    by_pipe = narrlit("search", "i", "--like", "pipe.txt", "--k", "3", "--out", "c.csv")

    assert by_pipe.code == 0, by_pipe.err
    assert (tmp_path / "c.csv").read_text() == (tmp_path / "b.csv").read_text(), by_pipe.err


def test_results_become_a_workbook_or_a_page_with_escaped_texts(indexed, narrlit, tmp_path):
    for name in ("r.xlsx", "r.html"):
        outcome = narrlit("search", "i", indexed[4], "--k", "2", "--out", name)
        assert outcome.code == 0
        assert f"written: {name}" in outcome.err
        assert "1       0.829" in outcome.out

    page = (tmp_path / "r.html").read_text()

    assert "<b>Tale" not in page
    [section] = carried(page)["answers"]["report"]["sections"]
    rows = section["tables"][0][1]
    assert len(rows) == 2
    assert any("<b>Tale</b>" in str(row.values()) for row in rows)
    assert "default-src 'none'" in page

    import openpyxl

    cells = list(openpyxl.load_workbook(tmp_path / "r.xlsx").active.iter_rows(values_only=True))
    assert cells[0][:3] == ("rank", "id", "title")
    assert cells[1][:3] == (1, "t4", "<b>Tale</b>")


def test_mistakes_cost_one_line(indexed, narrlit, tiny):
    for arguments, message in (
        (["search", "i", "  "], "the query is empty"),
        (["search", "i"], "give a text, or --like ID"),
        (["search", "i", "x", "--like", "t1"], "give a text, or --like ID"),
        (["search", "i", "--like", "t11"], "no story 't11' (did you mean t1?)"),
        (["search", "i", "--like", "tales/tales.csv"], "column"),
        (["search", "i", "x", "--where", "land = 1"], "columns: id (string), title (string)"),
        (["search", "i", "x", "--exclude-same", "country"], "needs a story of the index (--like ID)"),
        (["search", "i", "x", "--k", "0"], "at least 1"),
        (["search", "i", "x", "--out", "r.docx"], "name a file that ends in"),
        (["search", "nowhere", "x"], "does not exist"),
        (["index", "tales", "--model", tiny(pooling="cls"), "--out", "i"], "whose files have changed"),
        (["index", "tales", "--model", tiny(), "--out", "tales"], "this file is read"),
    ):
        outcome = narrlit(*arguments)
        assert outcome.code == 2, (arguments, outcome.err)
        assert message in outcome.err, (arguments, outcome.err)
        assert outcome.err.strip().splitlines()[-1].startswith("narrlit: error: ")
