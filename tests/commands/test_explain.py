"""narrlit explain: arguments that are texts, files and ids."""

import pytest
from page_files import carried

from narrlit import Index
from narrlit.data.tales import sample_tales

pytestmark = pytest.mark.usefixtures("memoized_minilm")

ROWS = [
    {"id": "snow", "title": "Snow", "text": "A girl steals bread from a lord. Guards chase her through the snow."},
    {"id": "loaf", "title": "", "text": "A poor child takes a loaf. Soldiers hunt the thief all night."},
    {"id": "rocket", "title": "Rocket", "text": "Two engineers build a rocket. It explodes above the desert."},
]
VIEWS = [{"text": row["text"], "theme": "Want.", "plot_events": ["One.", "Two."], "outcome": "Flight."} for row in ROWS]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A small background."""
    monkeypatch.setattr("narrlit.explore.matched_pair.sample_tales", lambda: sample_tales()[:3])


def test_ids_files_and_texts(narrlit, make):
    rows = make("s.jsonl", ROWS)
    views = make("v.jsonl", VIEWS)
    file = make("fox.txt", "A fox runs.\nA dog sleeps.")
    result = narrlit("explain", "snow", "loaf", "rocket", "--stories", rows, "--views", views, "--model", "minilm")

    assert result.code == 0, result.err
    assert result.out.startswith("minilm finds Snow closer to loaf than to Rocket: similarity ")
    assert result.out.count("Flight.") == 4
    assert result.out.count("hubness: ") == 2

    result = narrlit("explain", file, "A fox runs. A dog sleeps.", "Über " * 100 + "alles.", "--out", "x.html")
    assert result.code == 0, result.err
    assert "finds fox closer to A fox runs. A dog sleeps. than to Über Über" in result.out
    assert "similarity 1.000 against" in result.out

    page = (file.parent / "x.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "A dog sleeps." in page
    assert all("deletion" not in pair for pair in carried(page)["pairs"].values())


def test_the_check_is_printed_where_it_is_wanted(narrlit):
    result = narrlit("explain", ROWS[0]["text"], ROWS[1]["text"], "--check")
    assert result.code == 0, result.err
    assert "Without a tenth to a half of the passages" in result.out


def test_what_is_no_story_is_refused_in_one_line(narrlit, make):
    rows = make("s.jsonl", ROWS)
    for arguments, message in (
        (("snow", "missing.txt"), "is not a file, and too short for a story; an id needs --stories FILE"),
        (("snow", "sno", "--stories", rows), "no id of " + str(rows) + " (did you mean snow?)"),
        ((rows, "snow"), f"has 3 stories: give --stories {rows}"),
        (
            ("snow", "loaf", "--stories", rows, "--views", make("v.jsonl", VIEWS[:1])),
            "1 of 2 distinct stories have no",
        ),
        (("snow", "loaf", "--stories", rows, "--out", "."), "name a file that ends in .html"),
    ):
        result = narrlit("explain", *arguments)
        assert result.code == 2
        assert message in result.err


def test_an_unknown_id_is_refused_before_the_stories_are_embedded(narrlit, make, monkeypatch):
    monkeypatch.setattr("narrlit.commands.opening.collection", lambda *_, **__: pytest.fail("the stories are embedded"))
    assert "no id of" in narrlit("explain", "snow", "sno", "--stories", make("s.jsonl", ROWS)).err


def test_an_index_brings_its_model_titles_and_similarities(narrlit, make):
    rows = make("s.jsonl", ROWS)
    assert narrlit("index", rows, "--model", "minilm", "--out", "i").code == 0

    of_index = narrlit("explain", "snow", "rocket", "--stories", "i")
    assert of_index.code == 0, of_index.err
    assert "Snow and Rocket" in of_index.out
    assert f"similarity {Index('i').collection().similarities.matrix()[0, 2]:.3f}." in of_index.out
