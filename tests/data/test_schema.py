"""Stories with an identity, and the conversions between triples and examples."""

import unicodedata

import pytest

from narrlit.data.schema import (
    Story,
    StoryTable,
    TrainingExample,
    TrainingExamples,
    Triple,
    Triples,
    Views,
    a_comes_first,
    example_of,
    normal_form,
    normal_text,
    texts_of,
    triple_of,
    with_texts,
)


def test_a_text_has_one_index_and_views_complete_a_story():
    table = StoryTable()
    assert [table.add("a"), table.add("b", id="n7"), table.add("a", views=Views("t", "c", "o"))] == [0, 1, 0]
    assert table[0] == Story("0", "a", Views("t", "c", "o"))

    table.add("a", id="late", views=Views("x", "y", "z"), original="A")
    assert table[0].views.texts == ("t", "c", "o")
    assert [story.id for story in table] == ["0", "n7"]
    assert table.texts == ["a", "b"]


def test_a_table_of_stories_keeps_their_order():
    table = StoryTable([Story("0", "A", original="a"), Story("1", "B", original="b")])
    assert [story.source_text for story in table] == ["a", "b"]
    assert table.add("B") == 1


def test_arrays_of_rows():
    table = StoryTable.of("abcd")
    triples = Triples(table, [Triple(0, 1, 2, True), Triple(3, 2, 1, False), Triple(1, 0, 2)])
    assert triples.indices.tolist() == [[0, 1, 2], [3, 2, 1], [1, 0, 2]]
    assert triples.labels.tolist() == [1, 0, -1]
    assert triples.texts()[1] == ("d", "c", "b")

    rows = [TrainingExample(0, 1, (2, 3), ("theme", None)), TrainingExample(1, 2, (0,), ("triple",))]
    examples = TrainingExamples(table, rows)
    assert examples.negatives.tolist() == [[2, 3], [0, -1]]
    assert examples.kinds.tolist() == [[0, -1], [4, -1]]
    assert examples.texts() == [("a", "b", "c", "d"), ("b", "c", "a")]
    assert TrainingExamples(table, rows[1:]).story_indices.tolist() == [0, 1, 2]
    assert TrainingExamples(table, []).negatives.shape == (0, 0)
    assert Triples(table, []).indices.shape == (0, 3)
    with pytest.raises(ValueError, match="1 kinds for 2 negatives"):
        TrainingExample(0, 1, (2, 3), (None,))


def test_triples_and_examples_convert():
    table = StoryTable.of(["x", "near", "far", "other"])
    for first in (True, False):
        triple = Triple(0, 1, 2, True) if first else Triple(0, 2, 1, False)
        assert example_of(triple) == TrainingExample(0, 1, (2,), ("triple",))

    back = triple_of(TrainingExample(0, 1, (3, 2), ("theme", "triple")), table)

    assert {back.a, back.b} == {1, 2}
    assert (back.a == 1) == back.a_is_closer == a_comes_first("x")
    assert triple_of(TrainingExample(0, 1, (3,), ("theme",)), table) is None

    renamed = StoryTable([Story("0", "Character_A", original="x"), *table[1:]])
    assert triple_of(TrainingExample(0, 1, (2,), ("triple",)), renamed).a_is_closer == a_comes_first("x")
    assert abs(sum(a_comes_first(f"story {i}") for i in range(1000)) - 500) < 60
    with pytest.raises(ValueError, match="without a label"):
        example_of(Triple(0, 1, 2))


def test_stories_get_other_texts_and_views_in_order():
    stories = [Story("x", "Anna", Views("t", "a", "o")), Story("y", "Bert")]
    assert texts_of(stories) == ["Anna", "t", "a", "o", "Bert"]
    changed = with_texts(stories, ["A", "1", "2", "3", "B"])
    assert changed == [Story("x", "A", Views("1", "2", "3"), "Anna"), Story("y", "B", None, "Bert")]
    assert [story.source_text for story in changed] == ["Anna", "Bert"]


def test_a_story_keeps_its_original_text_if_its_names_are_replaced_again():
    story = Story("x", "Anna met Bert.").with_texts(["Character_A met Bert."])
    again = story.with_texts(["Character_A met Character_B."])
    assert again.text == "Character_A met Character_B."
    assert again.source_text == "Anna met Bert."


@pytest.mark.parametrize("text", ["Amélie trouva la perle\u202f!", "\u1fb4ΔΗΣ, \u01f0 und \u00c5", "각 글자", "plain"])
def test_canonically_equivalent_texts_and_spaces_have_one_form(text):
    decomposed = unicodedata.normalize("NFD", text).replace(" ", "\u00a0")
    form = normal_form(text)
    assert normal_form(decomposed) == normal_form(form) == form
    assert unicodedata.is_normalized("NFC", form)
    assert normal_text(decomposed) == normal_text(text.upper()) == normal_text(f" {text}\n")


def test_the_form_of_ids_keeps_case_line_breaks_and_the_number_of_spaces():
    assert normal_form(" Two\u2003 Kings\n ") == " Two  Kings\n "
    assert normal_form("ﬁre ²") == "ﬁre ²"
