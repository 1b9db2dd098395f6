"""Views: read from files, attached to stories of a table, cut by position, counted."""

import json

import pytest
from refusals import refused

from narrlit.data.rows import file_digest
from narrlit.data.schema import Story, StoryTable, Views
from narrlit.data.views import StoryViews, ViewFiles, positional_views, read_views, suspicious_views

ROW = {"text": "A knight rode. He died.", "theme": "duty", "plot_events": ["rides", "dies"], "outcome": "death"}
TALE = "A king fell ill. His sons rode out. They met a fox. All came home."


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({}, "rides\ndies"),
        ({"plot_events": "He rides."}, "He rides."),
        ({"plot_events": [], "course_of_action": "He rides."}, "He rides."),
        ({"plot_events": None, "course_of_action": "", "plot": ["He rides."]}, "He rides."),
    ],
)
def test_columns_of_a_row(make, changes, action):
    rows = [ROW | changes, {("story" if k == "text" else k): v for k, v in (ROW | changes).items()}]
    for row in rows:
        [story] = read_views(make("v.jsonl", [row]))
        assert story.text == ROW["text"]
        assert story.views == Views("duty", action, "death")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"theme": ""}, "empty theme"),
        ({"outcome": None}, "missing outcome"),
        ({"plot_events": ["rides", ""]}, "action is not text"),
        ({"text": " "}, "empty text"),
    ],
)
def test_rows_that_are_dropped_or_refused(make, changes, reason):
    path = make("v.jsonl", [ROW, ROW | changes])
    assert read_views(path).report.dropped == {reason: 1}
    with refused("unusable_row", place="v.jsonl:2", reason=reason):
        read_views(path, strict=True)


def test_files_without_views_are_refused(make):
    with refused("no_text_column", path="s.jsonl", line=1, found="text"):
        read_views(make("s.jsonl", [{"text": "a"}]))
    with refused("views_needed"):
        StoryViews(ViewFiles())
    assert ViewFiles.parse("a.jsonl, b.jsonl").paths == ["a.jsonl", "b.jsonl"]
    assert ViewFiles.parse(None).paths == []
    with refused("no_view_file", files=","):
        ViewFiles.parse(",")


def test_views_are_attached_whatever_case_and_white_space(make):
    views = StoryViews(ViewFiles(str(make("v.jsonl", [ROW, ROW | {"text": "Spare."}]))))
    table = StoryTable.of(["a knight  rode.\nHe died.", "other", "unrelated"])
    coverage = views.attach(table, [0], "test", optional=[1])

    assert table[0].views == Views("duty", "rides\ndies", "death")
    assert table[1].views is None
    assert table[2].views is None
    assert coverage.stories == 1
    assert coverage.viewed == 1
    assert coverage.spare == 1
    with refused("stories_without_views", name="test", n=2, stories=3, first="other"):
        views.attach(table, [0, 1, 2, 1], "test")


def test_stories_without_views_are_cut_by_position_and_counted(make):
    views = StoryViews(ViewFiles([str(make("v.jsonl", [ROW]))], "positional"))
    own = Views("x", "y", "z")
    table = StoryTable.of([ROW["text"], TALE, "Own."])
    table.set_views(2, own)
    coverage = views.attach(table, [0, 1, 1, 2], "train")

    assert table[1].views == Views("A king fell ill.", "His sons rode out. They met a fox.", "All came home.")
    assert table[0].views.theme == "duty"
    assert table[2].views == own
    assert coverage.summary("train") == "views: train, 3 distinct stories, 2 with views, 1 with positional views"
    assert positional_views("One.").texts == ("One.", "One.", "One.")
    assert StoryViews(ViewFiles(None, "positional")).attach(StoryTable.of(["a", "b"]), [0, 1], "x").positional == 2


def test_the_first_views_of_a_story_count_and_provenance_names_the_bytes(make):
    path = make("v.jsonl", [ROW, ROW | {"theme": "other"}, ROW])
    views = StoryViews(ViewFiles(str(path)))
    table = StoryTable.of([ROW["text"]])
    views.attach(table, [0], "x")

    assert table[0].views.theme == "duty"
    assert views.conflicts == 1
    assert views.provenance()["stories"] == 1
    assert views.summary() == "v.jsonl: 3 rows; conflicts: 1 (the first views of a story are used)"

    noted = views.provenance()
    assert noted["files"] == [{"path": str(path), "sha256": file_digest(path), "rows": 3, "dropped": {}}]
    assert json.loads(json.dumps(noted)) == noted


def test_suspicious_views():
    stories = [
        Story("0", "A king fell ill. He died.", Views("kings", "He fell ill.\nHe died.", "a king fell ill.  He died.")),
        Story("1", "A fox.", Views("kings", "It ran.", "The fox ran home.")),
        Story("2", "No views."),
    ]

    assert suspicious_views(stories) == {
        "outcome equal to the story": 1,
        "theme shared with another story": 2,
        "action of fewer than 2 events": 1,
        "action longer than the story": 1,
        "outcome longer than the story": 1,
    }
