"""Files of views: what is read and refused; stories joined with their views, or with slices of their own."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.data.readers import read_texts
from narrlit.data.view_rows import ViewedStory, suspicions
from narrlit.data.views import ViewBook, ViewFiles, listed, positional_views, read_views
from narrlit.errors import DataError, OptionError
from narrlit.text.joined import Views, join, split

ROW = {"text": "A king fell ill. He died.", "theme": "Death.", "plot_events": ["He falls ill.", "He dies."]}
ROW |= {"outcome": "The king is dead."}
PLAIN = Views("Death.", "He falls ill.\nHe dies.", "The king is dead.")
FOUR = "A king fell ill. His sons rode out. They met a fox. All came home."


def row(**changes):
    """ROW with other fields; those set to `...` are left out."""
    return {name: value for name, value in {**ROW, **changes}.items() if value is not ...}


def told(make, *rows, **options):
    return ViewBook(ViewFiles(str(make("v.jsonl", list(rows))), **options))


@pytest.mark.parametrize(
    ("changes", "plot"),
    [
        ({}, PLAIN.plot),
        ({"plot_events": "He rides. He dies."}, "He rides. He dies."),
        ({"plot_events": ..., "course_of_action": "He rides."}, "He rides."),
        ({"plot_events": ..., "plot": ["He rides.", "He dies."]}, "He rides.\nHe dies."),
        ({"course_of_action": "Another telling.", "plot": "A third."}, PLAIN.plot),
        ({"plot_events": ..., "course_of_action": "The second.", "plot": "The third."}, "The second."),
        ({"text": ..., "story": ROW["text"]}, PLAIN.plot),
        ({"plot_events": None, "course_of_action": "He rides."}, "He rides."),
        ({"plot_events": [" "], "course_of_action": "", "plot": ["He rides."]}, "He rides."),
    ],
)
def test_the_fields_of_a_row(make, changes, plot):
    (story,) = read_views(make("v.jsonl", [row(**changes)])).records
    assert story == ViewedStory(ROW["text"], Views("Death.", plot, "The king is dead."))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": " "}, "empty text"),
        ({"text": None}, "missing text"),
        ({"theme": ""}, "empty theme"),
        ({"theme": ["a", "b"]}, "theme is not text"),
        ({"outcome": ...}, "missing outcome"),
        ({"plot_events": []}, "empty plot_events"),
        ({"plot_events": None}, "missing plot_events"),
        ({"plot_events": 3}, "plot_events is not text"),
        ({"plot_events": ["He dies.", 3]}, "event in plot_events is not text"),
        ({"plot_events": ["He dies.", None]}, "missing event in plot_events"),
        ({"plot_events": ["He dies.", "\n"]}, "empty event in plot_events"),
        ({"plot_events": ..., "plot": []}, "empty plot"),
        ({"plot_events": ["He rides.", "[outcome]", "He dies."]}, "text with a line that marks views"),
        ({"text": "[theme]\nA king."}, "text with a line that marks views"),
    ],
)
def test_a_row_that_is_no_use_is_counted_or_refused(make, changes, reason):
    path = make("v.jsonl", [row(), row(**changes)])
    reading = read_views(path)
    assert (len(reading.records), reading.dropped) == (1, {reason: 1})
    with pytest.raises(DataError, match=f"v.jsonl:2: {reason}; mend the row"):
        read_views(path, strict=True)


def test_csv_and_mojibake(make):
    content = "story,theme,course_of_action,outcome\nA king.,itâ€™s death,He dies.,He is dead.\n"
    reading = read_views(make("v.csv", content))
    assert reading.records == [ViewedStory("A king.", Views("itâ€™s death", "He dies.", "He is dead."))]
    assert reading.suspicious == {"mojibake in theme": 1}
    content = "text,theme,plot_events,course_of_action,outcome\nA king.,Death.,,He dies.,He is dead.\n"
    assert read_views(make("w.csv", content)).records[0].views.plot == "He dies."


def test_files_are_listed_with_commas_between():
    assert (listed(None), listed("a"), listed(" a, b c ,")) == ([], ["a"], ["a", "b c"])
    with pytest.raises(OptionError, match=r"' , ' names no file of views"):
        listed(" , ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"text": "a", "theme": "b", "plot": "c"}], "no views, its first row has text,theme,plot; known: text,theme,"),
        (["a", "b"], "no views, its first row has no fields at all"),
        ([{}], "no views, its first row has no fields; known"),
        ([row(theme="")], "none of its 1 row can be used .1 empty theme"),
        ("", "empty"),
    ],
)
def test_files_without_views_are_refused(make, content, words):
    with pytest.raises(DataError, match=words):
        read_views(make("v.jsonl", content))


def test_positional_views_are_quarter_half_quarter():
    assert positional_views(FOUR) == Views("A king fell ill.", "His sons rode out. They met a fox.", "All came home.")
    with pytest.raises(ValueError, match="without a sentence"):
        positional_views(" \n")


def test_stories_are_joined_in_their_order_whatever_their_case_and_space(make):
    book = told(make, row(), row(text="A queen.", theme="Power."))
    found = book.joined(["A  QUEEN.", ROW["text"], "A queen."], "stories").texts
    queen = Views("Power.", *PLAIN.texts[1:])
    assert [split(text) for text in found] == [("A  QUEEN.", queen), (ROW["text"], PLAIN), ("A queen.", queen)]
    assert len(book) == 2


def test_what_is_joined_already_stays(make):
    own = join(ROW["text"], Views("Own theme.", "Own plot.", "Own outcome."))
    unknown = join("A fox.", PLAIN)
    assert told(make, row()).joined([own, unknown], "stories").texts == [own, unknown]


def test_a_story_without_views_is_refused_by_name(make):
    book = told(make, row())
    unknown = "A fox ran over the hills and far away, until it came to a house of glass."
    texts = [ROW["text"], unknown, "A well.", unknown.upper(), ROW["text"]]
    with pytest.raises(DataError) as refused:
        book.joined(texts, "validation triples")
    message = str(refused.value)
    assert message.startswith("validation triples: 2 of 3 different stories have no views in ")
    assert "v.jsonl, first text 2, 'A fox ran over the hills and far away, until it came to a ho...'" in message
    assert "--missing-views positional" in message
    assert "data.views.missing: positional" in message
    assert "\n" not in message


def test_a_joined_copy_does_not_lend_its_views(make):
    book = told(make, row())
    with pytest.raises(DataError, match="1 of 1 different stories have no views"):
        book.joined([join("A fox.", PLAIN), "A fox."], "stories")


def test_stories_without_views_are_cut_by_position_and_counted_once(make):
    book = told(make, row(), missing="positional")
    found = book.joined([FOUR, ROW["text"], FOUR.upper()], "test stories")
    assert [split(text)[1] for text in found.texts] == [positional_views(FOUR), PLAIN, positional_views(FOUR.upper())]
    assert found.provenance["by_position"] == 1
    assert found.summary == "views: test stories, 2 different stories, 1 with views, 1 cut by position"
    # Each joining is told of by itself.
    again = book.joined([ROW["text"]], "others")
    assert (again.provenance["by_position"], again.summary) == (0, "views: others, 1 different stories, 1 with views")


def test_without_files_all_are_cut_or_nothing_goes():
    book = ViewBook(ViewFiles(missing="positional"))
    joined = book.joined([FOUR], "stories")
    assert split(joined.texts[0]) == (FOUR, positional_views(FOUR))
    assert joined.provenance == {"files": [], "stories": 0, "conflicts": 0, "missing": "positional", "by_position": 1}
    for files in (None, []):
        with pytest.raises(OptionError, match=r"give --views FILE .*data.views.files.* --missing-views positional"):
            ViewBook(ViewFiles(files))


@pytest.mark.parametrize("missing", ["refuse", "positional"])
def test_a_text_with_a_line_that_marks_views_is_named(make, missing):
    book = told(make, row(), missing=missing)
    for bad in ("A king.\n[theme]\nDeath.", "[plot]\nA king."):
        with pytest.raises(DataError, match=r"train: text 2, '.*\[(theme|plot)\].*mend the text"):
            book.joined([ROW["text"], bad], "train")


def test_the_first_views_of_a_story_count(make):
    first, second = make("a.jsonl", [row(), row()]), make("b.jsonl", [row(theme="Other."), row(text="A queen.")])
    book = ViewBook(ViewFiles([str(first), str(second)]))
    assert (book.conflicts, len(book)) == (1, 2)
    assert split(book.joined([ROW["text"]], "stories").texts[0])[1] == PLAIN
    assert "conflicts: 1" in book.summary()
    other = ViewBook(ViewFiles([str(second), str(first)]))
    assert split(other.joined([ROW["text"]], "stories").texts[0])[1].theme == "Other."
    assert other.conflicts == 2


def test_coverage(make):
    book = told(make, row(), row(text="A queen."), row(text="Unused."))
    found = book.coverage(["A well.", ROW["text"], "a queen.", "A WELL.", join("A fox.", PLAIN), "A hill."])
    assert (found.stories, found.viewed, found.missing) == (5, 3, (0, 5))
    assert (found.spare, found.conflicts, found.by_position) == (1, 0, 0)
    positional = told(make, row(), missing="positional")
    assert positional.coverage(["A well.", ROW["text"]]).by_position == 1


def test_provenance_is_plain_and_follows_the_bytes(make):
    book = told(make, row(), row(theme=""))
    kept = json.loads(json.dumps(book.joined([], "stories").provenance))
    (file,) = kept["files"]
    assert (file["rows"], file["dropped"], kept["missing"]) == (2, {"empty theme": 1}, "refuse")
    assert len(file["sha256"]) == 64
    other = told(make, row(), row(theme="x")).joined([], "stories").provenance
    assert other["files"][0]["sha256"] != file["sha256"]
    with pytest.raises(DataError, match=r"v\.jsonl:2: empty theme"):
        ViewBook(ViewFiles(str(make("v.jsonl", [row(), row(theme="")]))), strict=True)


def test_suspicions():
    long = Views("Death.", "He falls ill and dies.\nHe is buried.", "x")
    stories = [
        ViewedStory("A king.", long),
        ViewedStory("A queen.", Views("death. ", "One event. Another.", "a QUEEN.")),
        ViewedStory("A  king.", Views("Own", "\nOne event\n", "x")),
    ]
    assert suspicions(stories) == {
        "plot longer than the story": 3,
        "theme shared with another story": 2,
        "outcome equal to the story": 1,
        "plot of fewer than 2 events": 1,
    }
    assert suspicions([ViewedStory(FOUR, Views("Sons", "One. Two.", "Home"))]) == {}


TRIPLE = {"anchor_text": "x", "text_a": "y", "text_b": "z"}


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ([TRIPLE], ("x", "y", "z")),
        ([TRIPLE | {"text_a_is_closer": False}], ("x", "z", "y")),
        ([TRIPLE | {"text_a_is_closer": True, "negatives": ["w"]}], ("x", "y", "z", "w")),
        ([{"anchor": "x", "positive": "y", "negatives": ["z"]}], ("x", "y", "z")),
        ([{"story": "x"}], ("x",)),
        (["x"], ("x",)),
    ],
)
def test_texts_of_any_file_of_stories(make, content, texts):
    reading = read_texts(make("s.jsonl", content))
    assert [(found.line, found.texts) for found in reading.records] == [(1, texts)]


def test_texts_keep_the_lines_of_their_rows(make):
    rows = [TRIPLE | {"text_a": ""}, TRIPLE, TRIPLE | {"anchor_text": "v"}]
    reading = read_texts(make("t.jsonl", "\n\n" + "".join(json.dumps(row) + "\n" for row in rows)))
    assert [(found.line, found.texts[0]) for found in reading.records] == [(4, "x"), (5, "v")]
    assert reading.dropped == {"empty text_a": 1}
    with pytest.raises(DataError, match=r"known: anchor_text.* or text"):
        read_texts(make("u.jsonl", [{"one": 1}]))


words = st.text("ab .\n", min_size=1).filter(str.strip)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=6))
def test_whatever_is_joined_comes_apart_again(stories):
    book = ViewBook(ViewFiles(missing="positional"))
    texts = [text for pair in stories for text in pair]
    found = [split(text) for text in book.joined(texts, "stories").texts]
    assert [text for text, _ in found] == texts
    assert all(views is not None and all(view.strip() for view in views.texts) for _, views in found)
