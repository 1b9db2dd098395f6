"""Coverage of stories by files of views, from Python: what is missing, where, and in how many words."""

from refusals import refused

from narrlit.data.rows import Layout
from narrlit.data.views_check import SHOWN, check_views

VIEWS = {"theme": "Death.", "plot_events": ["He falls ill.", "He dies."], "outcome": "He is dead."}
KING = {"text": "A king fell ill, and the doctors were called. He died."} | VIEWS
QUEEN = {"text": "A queen rode out, and no one knew where to."} | VIEWS


def test_files_of_views_are_a_path_several_or_names_with_commas(make):
    king = make("king.jsonl", [KING])
    queen = make("queen.jsonl", [QUEEN])
    stories = make("stories.jsonl", [{"text": KING["text"].upper()}, {"text": QUEEN["text"]}])
    for views in (f"{king}, {queen}", [king, str(queen)]):
        checked = check_views(views, stories)
        assert checked.coverage.stories == 2
        assert checked.coverage.viewed == 2
        assert checked.missing == []
        assert checked.views == f"{king}, {queen}"

    alone = check_views(queen, stories)

    assert [(story.line, story.text) for story in alone.missing] == [(1, KING["text"].upper())]
    assert alone.mean_words["story"] == 10
    assert alone.mean_words["action"] == 5


def test_all_missing_stories_are_in_the_table_and_the_first_in_the_text(make):
    rows = [{"plot": f"Story {number // 2}."} for number in range(4, 20)]
    stories = make("stories.jsonl", [{"plot": KING["text"]}, *rows])
    checked = check_views(make("views.jsonl", [KING, QUEEN]), stories, layout=Layout("plot"))

    assert checked.table()["line"].tolist() == [*range(2, 18, 2)]
    assert checked.table()["text"].tolist() == [f"Story {number}." for number in range(2, 10)]
    assert checked.record["without_views"] == 8
    assert len(checked.record["first_without_views"]) == SHOWN

    lines = str(checked).splitlines()
    assert "distinct stories: 9, with views 1 (11.1 %), without 8" in lines
    assert lines.count("  without views: stories.jsonl:2, 'Story 2.'") == 1
    assert "  and 3 more" in lines
    assert checked.record["views_without_a_story"] == 1
    assert checked.record["suspicious"] == {
        f"{aspect} shared with another story": 2 for aspect in ("theme", "action", "outcome")
    }


def test_the_table_is_empty_where_nothing_is_missing(make):
    table = check_views(make("views.jsonl", [KING]), make("stories.jsonl", [KING])).table()
    assert len(table) == 0
    assert list(table.columns) == ["line", "text"]


def test_an_empty_list_of_files_is_refused(make):
    with refused("no_view_file"):
        check_views(" , ", make("stories.jsonl", [KING]))
