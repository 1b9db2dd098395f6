"""Which mentions are one entity, and what becomes of clusters."""

import pytest

from narrlit.text.pseudonyms.linking import link
from narrlit.text.pseudonyms.mentions import Mention


def mention(text, name, kind=None, cluster=None, nth=0):
    start = -1
    for _ in range(nth + 1):
        start = text.index(name, start + 1)
    return Mention(start, start + len(name), kind, cluster)


def linked(text, *mentions):
    """Placeholder -> the forms that it replaces, of mentions given as (name, kind, cluster, nth)."""
    found = link([text], [[mention(text, *given) for given in mentions]])
    return {entity.placeholder: [text[start:end] for _, (start, end) in entity.places] for entity in found}


def test_the_same_name_is_one_whatever_its_case_and_possessive():
    text = "Anna’s cat saw ANNA and O'Neil and O’NEIL's hat."
    names = ("Anna’s", "Character"), ("ANNA", "Character"), ("O'Neil", "Character"), ("O’NEIL's", "Character")
    assert linked(text, *names) == {"Character_A": ["Anna", "ANNA"], "Character_B": ["O'Neil", "O’NEIL"]}


def test_a_part_belongs_to_the_full_name_before_or_after_it():
    text = "Lee met Mary Ann Lee. Mary left. Ann stayed."
    names = [(name, "Character") for name in ("Lee", "Mary Ann Lee", "Mary", "Ann")]
    names[2:] = [("Mary", "Character", None, 1), ("Ann", "Character", None, 1)]
    assert linked(text, *names) == {"Character_A": ["Lee", "Mary Ann Lee", "Mary", "Ann"]}


def test_a_part_that_fits_two_names_is_a_third():
    text = "Anna Lee and Bob Lee quarrel. Lee leaves, Bob stays."
    names = ("Anna Lee",), ("Bob Lee",), ("Lee", None, None, 2), ("Bob", None, None, 1)
    assert linked(text, *names) == {"Entity_1": ["Anna Lee"], "Entity_2": ["Bob Lee", "Bob"], "Entity_3": ["Lee"]}


def test_words_in_another_order_and_places_inside_names_are_no_parts():
    text = "Ann Mary met Mary Ann Lee at the Tower of London in London."
    names = ("Ann Mary",), ("Mary Ann Lee",), ("Tower of London", "Location"), ("London", "Location", None, 1)
    assert list(linked(text, *names)) == ["Entity_1", "Entity_2", "Location_1", "Location_2"]


@pytest.mark.parametrize(("kind", "same"), [("Character", True), (None, True), ("Location", False)])
def test_a_part_whose_votes_say_otherwise_is_another(kind, same):
    found = linked("Jack London sails. London waits.", ("Jack London", "Character"), ("London", kind, None, 1))
    assert (len(found) == 1) == same


def test_kinds_by_vote_and_ties_by_order():
    text = "Ava Ava Ava Bo Bo Cy"
    votes = [("Ava", "Location", None, 0), ("Ava", "Character", None, 1), ("Ava", "Location", None, 2)]
    votes += [("Bo", "Organization", None, 0), ("Bo", "Location", None, 1), ("Cy",)]
    assert linked(text, *votes) == {"Location_1": ["Ava"] * 3, "Location_2": ["Bo"] * 2, "Entity_1": ["Cy"]}


def test_a_cluster_joins_names_and_leaves_pronouns_and_descriptions():
    text = "Karl Renn fled. The old man wept. He, the Baker, told Captain Flint that Charly was tired."
    names = [("Karl Renn", "Character", 0), ("The old man", None, 0), ("He", None, 0), ("the Baker", None, 0)]
    names += [("Captain Flint", None, 1), ("Charly", None, 0)]
    assert linked(text, *names) == {"Character_A": ["Karl Renn", "Charly"], "Entity_1": ["Flint"]}


def test_a_cluster_without_a_name_gives_nothing():
    text = "Doctors came. They talked to the king, and he slept."
    names = ("Doctors", None, 0), ("They", None, 0), ("the king", None, 1), ("he", None, 1, 1)
    assert linked(text, *names) == {}


def test_clusters_are_numbered_text_by_text():
    texts = ["Anna is Annie.", "Bo is Bobo."]
    mentions = [
        [mention(texts[0], "Anna", "Character", 0), mention(texts[0], "Annie", "Character", 0)],
        [mention(texts[1], "Bo", "Character", 0), mention(texts[1], "Bobo", "Character", 0)],
    ]
    assert [(e.placeholder, sorted(e.keys)) for e in link(texts, mentions)] == [
        ("Character_A", [("anna",), ("annie",)]),
        ("Character_B", [("bo",), ("bobo",)]),
    ]


def test_where_a_name_was_missed_it_is_taken_as_whole_words_only():
    text = "Anna met Annabel. Anna's Anna-like twin is no ANNA."
    assert linked(text, ("Anna", "Character")) == {"Character_A": ["Anna", "Anna", "Anna"]}


def test_an_everyday_word_that_is_a_name_is_taken_unless_a_sentence_or_quotation_begins_with_it():
    text = 'They met Hope. Hope is rare. She said: "Hope dies last." He calls Hope "Hope", in hope.'
    (entity,) = link([text], [[mention(text, "Hope", "Character")]])
    assert [start for _, (start, _) in entity.places] == [9, text.index('Hope "'), text.index('Hope",')]
    assert list(entity.forms) == ["Hope"]


def test_a_name_missed_in_one_text_is_taken_from_another():
    texts = ["Zora sings.", "They love Zora."]
    (entity,) = link(texts, [[mention(texts[0], "Zora", "Character")], []])
    assert entity.places == [(0, (0, 4)), (1, (10, 14))]


def test_placeholders_markers_and_parts_of_words_are_never_mentions():
    text = "Character_A saw Oslo\n[plot]\nOslowed"
    names = ("Character_A",), ("saw Oslo\n[plot]\nOslowed",), ("Character_A saw", None, 0), ("Oslo", None, None, 1)
    assert linked(text, *names) == {}


def test_longer_names_win_and_a_covered_entity_gets_no_placeholder():
    text = "New York Times in York"
    names = ("New York Times", "Organization"), ("New York", "Location"), ("York", "Location", None, 1)
    assert linked(text, *names) == {"Organization_1": ["New York Times"], "Location_1": ["York"]}


def test_known_entities_take_what_is_found_later():
    text = "Character_A met Murphy and Lee."
    (known,) = link(["Mary Murphy met Murphy and Lee."], [[Mention(0, 11, "Character")]])
    names = [mention(text, "Murphy", "Character"), mention(text, "Lee", "Character")]
    found = link([text], [names], [known])
    assert [(entity.placeholder, entity.places) for entity in found] == [
        ("Character_A", [(0, (16, 22))]),
        ("Character_B", [(0, (27, 30))]),
    ]


def test_known_forms_are_taken_where_no_mention_is_and_placeholders_beside_are_not_given_again():
    known = link(["Mary met Zora."], [[Mention(0, 4, "Character"), Mention(9, 13, "Character")]])
    text = "Zora and Mary Fenwick love Bo."
    names = [mention(text, "Mary Fenwick", "Character"), mention(text, "Bo", "Character")]
    found = link([text], [names], known, ["Character_C waits."])
    assert [(entity.placeholder, list(entity.forms)) for entity in found] == [
        ("Character_B", ["Zora"]),
        ("Character_A", ["Mary Fenwick"]),
        ("Character_D", ["Bo"]),
    ]


def test_known_entities_stay_two_though_a_cluster_joins_them():
    known = link(["Anna met Bo."], [[Mention(0, 4, "Character"), Mention(9, 11, "Character")]])
    text = "Character_A met Anna. Bo is Bo."
    names = [mention(text, "Anna", "Character", 0), mention(text, "Bo", "Character", 0)]
    assert [e.placeholder for e in link([text], [names], known)] == ["Character_A", "Character_B"]
