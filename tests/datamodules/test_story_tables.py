"""Two tables of stories: names are replaced by scope, and indices of one lead to the other."""

from types import SimpleNamespace

import pytest
from refusals import refused

from narrlit.data.schema import Story, TrainingExample, TrainingExamples, Triple, Triples, Views
from narrlit.data.storyworld import StoryWorld
from narrlit.datamodules.story_tables import StoryTables
from narrlit.preprocessing.pseudonyms import PseudonymOptions


@pytest.fixture
def tables():
    """tables(scope): the stories of a StoryWorld triple, and indices of anchor, positive and negative."""

    def make(scope):
        [triple] = StoryWorld(2).triples(1)
        made = [triple.anchor, triple.positive, triple.negative]
        result = StoryTables(PseudonymOptions("given", scope), lambda index: made[index])
        return result, tuple(result.source.add(story.text) for story in made), made

    return make


def test_without_pseudonymization_there_is_one_table():
    tables = StoryTables(PseudonymOptions("none"), lambda index: None)
    read = Triples(tables.source, [Triple(*map(tables.source.add, "abc"), a_is_closer=True)])
    assert not tables.replaces_names
    assert tables.stories is tables.source
    assert tables.triples(read).rows == read.rows
    assert tables.source_of(2) == 2


@pytest.mark.parametrize("scope", ["story", "triple"])
def test_a_converted_row_has_the_same_stories_without_names(tables, scope):
    both, row, made = tables(scope)
    [converted] = both.convert([row])
    assert [both.source_of(index) for index in converted] == list(row)
    for index, story in zip(converted, made, strict=True):
        assert both.stories[index].original == story.text
        assert not any(name in both.stories[index].text for name in story.names)
    assert both.convert([row]) == [converted]
    assert len(both.stories) == 3


def test_a_story_has_different_placeholders_in_different_scopes(tables):
    both, (anchor, positive, _), _ = tables("triple")
    first, second = both.convert([(anchor, positive, positive), (positive,)])
    assert first[1] == first[2] != second[0]
    assert both.source_of(first[1]) == both.source_of(second[0]) == positive
    assert "Character_A" in both.stories[second[0]].text
    assert "Character_A" not in both.stories[first[1]].text  # that is someone of the anchor

    alone, (anchor, positive, _), _ = tables("story")
    first, second = alone.convert([(anchor, positive), (positive,)])
    assert first[1] == second[0]


def test_kinds_groups_and_labels_are_kept(tables):
    both, row, _ = tables("story")
    example = TrainingExample(*row[:2], row[2:], ("theme",), group="g")
    [converted] = both.examples(TrainingExamples(both.source, [example]))

    assert converted.kinds == ("theme",)
    assert converted.group == "g"
    assert len(converted.indices) == 3

    [triple] = both.triples(Triples(both.source, [Triple(*row, a_is_closer=False)]))
    assert triple == Triple(*converted.indices, a_is_closer=False)


def test_names_are_also_replaced_in_views():
    tables = StoryTables(PseudonymOptions("given"), lambda index: SimpleNamespace(names={"Anna": "PERSON"}))
    index = tables.source.add("Anna ran.", views=Views("Anna", "Anna ran", "gone"))
    [(converted,)] = tables.convert([(index,)])
    expected = Views("Character_A", "Character_A ran", "gone")
    assert tables.stories[converted] == Story("0", "Character_A ran.", expected, original="Anna ran.")


def test_backend_given_without_names_is_refused():
    tables = StoryTables(PseudonymOptions("given"), lambda index: None)
    with refused("given_names_needed"):
        tables.convert([(tables.source.add("Anna ran."),)])
