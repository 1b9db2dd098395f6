"""narrlit views check: what is missing, unused or suspicious, in words and as JSON."""

import json

import pytest

VIEWS = {"theme": "Death.", "plot_events": ["He falls ill.", "He dies."], "outcome": "He is dead."}
KING = {"text": "A king fell ill, and all the doctors of the land were called. He died."} | VIEWS
QUEEN = {"text": "A queen rode out, and no one in the town or the castle knew where to."} | VIEWS
TRIPLE = {"anchor_text": KING["text"].upper(), "text_a": QUEEN["text"], "text_b": KING["text"]}


@pytest.fixture
def write(tmp_path):
    def make(name, *rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return name

    return make


def test_all_stories_have_views(narrlit, write):
    files = write("v.jsonl", KING, QUEEN), write("t.jsonl", TRIPLE, TRIPLE)
    found = narrlit("views", "check", *files, "--json")
    assert found.code == 0, found.err
    answer = json.loads(found.out)
    assert answer | {"read": None, "mean_words": None, "suspicious": None} == {
        "views": "v.jsonl",
        "stories": "t.jsonl",
        "read": None,
        "different_stories": 2,
        "with_views": 2,
        "without_views": 0,
        "first_without_views": [],
        "views_without_a_story": 0,
        "conflicts": 0,
        "suspicious": None,
        "mean_words": None,
    }
    assert answer["mean_words"] == {"story": 15.5, "theme": 1.0, "plot": 5.0, "outcome": 3.0}
    assert answer["suspicious"] == {f"{view} shared with another story": 2 for view in ("theme", "plot", "outcome")}


def test_stories_without_views_are_shown_by_row_and_make_exit_code_1(narrlit, write):
    unknown = [{"text": f"Story {number} has " + "many words " * 20} for number in range(7)]
    files = write("v.jsonl", QUEEN, KING, KING | {"theme": "Life."}), write("s.jsonl", {"text": ""}, KING, *unknown)
    answer = json.loads(narrlit("views", "check", *files, "--json").out)
    assert (answer["different_stories"], answer["with_views"], answer["without_views"]) == (8, 1, 7)
    assert (answer["views_without_a_story"], answer["conflicts"]) == (1, 1)
    assert [story["line"] for story in answer["first_without_views"]] == [3, 4, 5, 6, 7]
    assert answer["first_without_views"][0]["beginning"].startswith("Story 0 has many words")
    found = narrlit("views", "check", *files)
    assert found.code == 1
    assert "v.jsonl: 3 rows\ns.jsonl: 8 of 9 rows, dropped 1 (1 empty text)\n" in found.out
    assert "different stories: 8, with views 1 (12.5 %), without 7\n" in found.out
    assert "  without views: s.jsonl:3, 'Story 0 has many words" in found.out
    assert "  and 2 more\n" in found.out
    assert "views without a story: 1\nconflicts: 1 rows" in found.out
    assert "words on average: story 15.3, theme 1, plot 5, outcome 3" in found.out


def test_suspicious_views_are_counted(narrlit, write):
    odd = KING | {"theme": KING["text"], "course_of_action": "", "outcome": KING["text"] * 2, "plot_events": "He dies."}
    files = write("v.jsonl", odd, {**QUEEN, "outcome": "x"}), write("s.jsonl", KING)
    found = narrlit("views", "check", *files)
    assert found.code == 0, found.err
    told = next(line for line in found.out.splitlines() if line.startswith("suspicious: "))
    for reason in ("theme equal to the story", "outcome longer than the story", "plot of fewer than 2 events"):
        assert f"1 {reason}" in told
    assert "shared" not in told
    fine = write("w.jsonl", KING)
    assert "suspicious: nothing\n" in narrlit("views", "check", fine, files[1]).out


def test_several_files_have_commas_between(narrlit, write):
    files = f"{write('v.jsonl', KING)}, {write('w.jsonl', QUEEN)}"
    found = narrlit("views", "check", files, write("t.jsonl", TRIPLE), "--json")
    answer = json.loads(found.out)
    assert (found.code, answer["with_views"], answer["views"]) == (0, 2, "v.jsonl, w.jsonl")
    assert answer["read"]["views"] == "v.jsonl: 1 row; w.jsonl: 1 row"
    assert answer["mean_words"]["story"] == 15.5


def test_storyworlds_own_views_are_whole(narrlit):
    assert narrlit("storyworld", "--out", "w", "--train", "3", "--validation", "4", "--test", "1").code == 0
    for stories in ("validation.jsonl", "validation_stories.jsonl"):
        found = narrlit("views", "check", "w/validation_views.jsonl", f"w/{stories}")
        assert (found.code, "with views 12 (100.0 %)" in found.out) == (0, True)
    found = narrlit("views", "check", "w/validation_views.jsonl", "w/train.jsonl")
    assert (found.code, "with views 0 (0.0 %)" in found.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "none.jsonl", "s.jsonl"], "none.jsonl does not exist"),
        (["check", "v.jsonl", "none.jsonl"], "none.jsonl does not exist"),
        (["check", "s.jsonl", "v.jsonl"], "s.jsonl: no views, its first row has text; known: text,theme"),
        (["check", "v.jsonl", "x.jsonl"], "x.jsonl: unknown layout, its first row has one"),
        (["check", "v.jsonl", "m.jsonl"], "stories: text 1, 'A king. [theme] Death.'"),
        (["check", ",", "s.jsonl"], "',' names no file of views"),
        (["repair", "v.jsonl", "s.jsonl"], "repair"),
    ],
)
def test_mistakes_cost_one_line(narrlit, write, arguments, words):
    write("v.jsonl", KING)
    write("s.jsonl", {"text": "a"})
    write("x.jsonl", {"one": "a"})
    write("m.jsonl", {"text": "A king.\n[theme]\nDeath."})
    found = narrlit("views", *arguments)
    assert (found.code, found.out) == (2, "")
    assert words in found.err
    assert "Traceback" not in found.err
