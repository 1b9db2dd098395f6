"""narrlit data views: what is missing, unused or suspicious, in words and as JSON."""

import json

import pytest
from json_files import write_json_lines

VIEWS = {"theme": "Death.", "plot_events": ["He falls ill.", "He dies."], "outcome": "He is dead."}
KING = {"text": "A king fell ill, and all the doctors of the land were called. He died."} | VIEWS
QUEEN = {"text": "A queen rode out, and no one in the town or the castle knew where to."} | VIEWS
TRIPLE = {"anchor_text": KING["text"].upper(), "text_a": QUEEN["text"], "text_b": KING["text"]}


@pytest.fixture
def write(tmp_path):
    def make(name, *rows):
        write_json_lines(tmp_path / name, rows)
        return name

    return make


def test_all_stories_have_views_in_several_files(narrlit, write):
    files = f"{write('v.jsonl', KING)}, {write('w.jsonl', QUEEN)}"
    found = narrlit("data", "views", files, write("t.jsonl", TRIPLE, TRIPLE), "--json")
    assert found.code == 0, found.err

    answer = json.loads(found.out)
    assert answer == {
        "views": "v.jsonl, w.jsonl",
        "stories": "t.jsonl",
        "read": {"views": "v.jsonl: 1 row; w.jsonl: 1 row", "stories": "t.jsonl: 2 rows"},
        "different_stories": 2,
        "with_views": 2,
        "without_views": 0,
        "first_without_views": [],
        "views_without_a_story": 0,
        "conflicts": 0,
        "suspicious": {f"{view} shared with another story": 2 for view in ("theme", "action", "outcome")},
        "mean_words": {"story": 15.5, "theme": 1.0, "action": 5.0, "outcome": 3.0},
    }


def test_stories_without_views_are_shown_by_row_and_make_exit_code_1(narrlit, write):
    unknown = [{"text": f"Story {number} has " + "many words " * 20} for number in range(7)]
    files = write("v.jsonl", QUEEN, KING, KING | {"theme": "Life."}), write("s.jsonl", {"text": ""}, KING, *unknown)
    answer = json.loads(narrlit("data", "views", *files, "--json").out)

    assert [story["line"] for story in answer["first_without_views"]] == [3, 4, 5, 6, 7]
    assert answer["first_without_views"][0]["beginning"].startswith("Story 0 has many words")

    found = narrlit("data", "views", *files)
    assert found.code == 1
    assert "v.jsonl: 3 rows\ns.jsonl: 8 of 9 rows, dropped 1 (1 empty text)\n" in found.out
    assert "distinct stories: 8, with views 1 (12.5 %), without 7\n" in found.out
    assert "  without views: s.jsonl:3, 'Story 0 has many words" in found.out
    assert "  and 2 more\n" in found.out
    assert "views without a story: 1\nconflicts: 1 row with" in found.out
    assert "words on average: story 15.3, theme 1, action 5, outcome 3" in found.out
