"""narrlit.search from Python: texts, several at once, stories of the index and of files, pages and tables."""

import pandas as pd
import pytest
from json_files import read_json_lines
from page_files import carried
from refusals import refused
from tiny_models import world_texts

import narrlit
from narrlit.library import ranking


@pytest.fixture(scope="module")
def index(tiny, tmp_path_factory):
    """Nine stories, of which two share a country."""
    titles = ["<b>", "", "", "", "", "", "", "", ""]
    frame = pd.DataFrame({"id": [f"t{n}" for n in range(9)], "title": titles, "text": world_texts(3)})
    frame["country"] = ["FI", "FI", *"abcdefg"]
    return narrlit.Index.create(tmp_path_factory.mktemp("index") / "i", frame, tiny())


def text_of(index, id):
    return index.collection()[id].text


def test_a_text_finds_what_the_index_finds(index):
    text = text_of(index, "t4")
    found = narrlit.search(index, text, k=3)
    pd.testing.assert_frame_equal(found.table(), index.search(text, 3).table())
    assert len(found) == 3
    assert found.table()["id"].tolist()[0] == "t4"
    assert found.queries == [text]

    without = narrlit.search(index.path, text, k=8, leave_out_text=True)
    assert "t4" not in without.table()["id"].tolist()


def test_results_of_several_texts_are_printed_one_below_the_other(index):
    texts = [text_of(index, id) for id in ("t7", "t2")]
    found = narrlit.search(index, texts, k=2)
    assert found.table()["query"].tolist() == [0, 0, 1, 1]
    assert found.table()["id"].tolist()[::2] == ["t7", "t2"]

    first, second = str(found).split("\n\n")
    assert first.splitlines()[0][:20] == texts[0][:20]
    assert second.splitlines()[0][:20] == texts[1][:20]
    assert [line.split()[2] for line in str(found).splitlines() if line.startswith(" 1 ")] == ["t7", "t2"]


def test_a_story_of_the_index_or_of_a_file_is_left_out(index, make):
    by_id = narrlit.search(index, like="t0", k=8).table()
    by_file = narrlit.search(index, like=make("one.txt", text_of(index, "t0")), k=8).table()
    assert by_id["id"].tolist() == by_file["id"].tolist()
    assert "t0" not in by_id["id"].tolist()
    assert "t1" in by_id["id"].tolist()

    others = narrlit.search(index, like="t0", k=8, exclude_same="country").table()
    assert "t1" not in others["id"].tolist()


def test_results_become_files_and_pages(index, tmp_path):
    found = narrlit.search(index, text_of(index, "t0"), k=2)
    found.write(tmp_path / "r.jsonl")
    rows = read_json_lines(tmp_path / "r.jsonl")

    assert [row["id"] for row in rows] == found.table()["id"].tolist()

    found.write(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page == found.html()
    assert "<td>&lt;b&gt;</td>" in found._repr_html_()
    [section] = carried(page)["answers"]["report"]["sections"]
    assert [row["id"] for row in section["tables"][0][1]] == found.table()["id"].tolist()

    nothing = narrlit.search(index, "x", where="country = 'none'")
    assert str(nothing) == "no matching stories"
    assert len(nothing) == 0


def test_a_large_collection_in_memory_is_searched_by_words_whatever_the_vectors_are(tiny, monkeypatch):
    monkeypatch.setattr(ranking, "COMPARED_ALL", 5)
    monkeypatch.setattr(ranking, "CANDIDATES", 2)
    animals = ["fox", "hen", "wolf", "crow", "bear", "swan", "hare", "toad", "mouse"]
    tales = narrlit.Collection.of(
        [f"{text} A {animal}!" for text, animal in zip(world_texts(3), animals, strict=True)], tiny()
    )
    found = [tales.search(animal, 1, measure="lexical").table()["id"][0] for animal in animals]
    assert found == [str(number) for number in range(1, 10)]


def test_mistakes_name_parameters(index, make):
    for options, code in (
        ({}, "no_query"),
        ({"text": "x", "like": "t1"}, "no_query"),
        ({"text": "x", "exclude_same": "country"}, "exclude_same_of_text"),
        ({"like": make("two.jsonl", [{"text": "a"}, {"text": "b"}])}, "several_stories_in_file"),
        ({"text": "x", "k": 0}, "at_least"),
    ):
        with refused(code):
            narrlit.search(index, **options)

    with refused("wrong_suffix", path="r.docx"):
        narrlit.search(index, "x").write("r.docx")
