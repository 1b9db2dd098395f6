"""Stories by ids, files and texts."""

import pandas as pd
from refusals import refused

import narrlit
from narrlit.data.rows import Layout
from narrlit.library.story_finder import StoryFinder

ROWS = [{"id": "snow", "title": "Snow", "plot": "A girl steals bread."}, {"id": "fox", "title": "", "plot": "A fox."}]
LAYOUT = Layout(title_column="title")


def test_ids_come_before_files_and_files_before_texts(make, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    make("snow", "another story")
    finder = StoryFinder.read(str(make("s.jsonl", ROWS)), LAYOUT)

    assert [(finder.find(id).id, finder.find(id).text) for id in ("snow", "fox")] == [
        ("Snow", "A girl steals bread."),
        ("fox", "A fox."),
    ]
    assert finder.texts == ["A girl steals bread.", "A fox."]

    make("one.jsonl", ROWS[:1])
    assert finder.find("one.jsonl").id == "Snow"

    make("A king dies.txt", "He dies.")
    finder = StoryFinder(finder.stories, finder.source)  # a text has no columns
    assert finder.find("A king dies.txt").text == "He dies."

    long = "A king dies. " * 500  # longer than a path may be
    assert finder.find(long).text == long
    assert len(finder.find(long).id) == 40


def test_a_collection_brings_titles_and_its_source(tiny):
    frame = pd.DataFrame({"id": ["a", "b"], "title": ["Snow", ""], "text": ["A girl steals bread.", "A fox."]})
    finder = StoryFinder.of(narrlit.Collection.of(frame, tiny(), source="tales"))
    assert [finder.find(id).id for id in "ab"] == ["Snow", "b"]
    with refused("no_such_story", source="tales"):
        finder.find("c")


def test_anything_but_a_story_is_refused(make):
    rows = make("s.jsonl", ROWS)
    finder = StoryFinder.read(str(rows), LAYOUT)
    with refused("no_such_story", word="sno", source=rows, near="snow"):
        finder.find("sno")
    with refused("several_stories_of_file", path=rows, stories=2):
        finder.find(str(rows))

    with refused("no_story_nor_ids"):
        StoryFinder().find("snow")
    with refused("repeated_id", id="snow"):
        StoryFinder.read(str(make("t.jsonl", ROWS[:1] * 2)), LAYOUT)
