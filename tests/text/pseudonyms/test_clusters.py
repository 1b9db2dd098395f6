import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.text.pseudonyms.clusters import with_clusters
from narrlit.text.pseudonyms.mentions import Mention


def spans(text, *parts):
    """Where each part stands in the text, one after the other."""
    found, start = [], 0
    for part in parts:
        start = text.index(part, start)
        found.append((start, start + len(part)))
        start += 1
    return found


def said(text, mentions):
    return [(text[mention.start : mention.end], mention.kind, mention.cluster) for mention in mentions]


def test_names_get_the_number_of_their_cluster_and_pronouns_stand_beside_them():
    text = "Anna met Bob. She liked his dog Rex, and he knew. Carl slept."
    anna, bob, rex, carl = (
        Mention(*span, "Character") for name in ("Anna", "Bob", "Rex", "Carl") for span in spans(text, name)
    )
    clusters = [spans(text, "Anna", "She"), spans(text, "Bob", "his", "he knew"[:2])]
    assert said(text, with_clusters(text, [anna, bob, rex, carl], clusters)) == [
        ("Anna", "Character", 0),
        ("Bob", "Character", 1),
        ("She", None, 0),
        ("his", None, 1),
        ("Rex", "Character", None),
        ("he", None, 1),
        ("Carl", "Character", None),
    ]


def test_without_clusters_names_stay_as_they_are():
    names = [Mention(0, 4, "Character"), Mention(9, 12, "Location")]
    assert with_clusters("Anna saw Rome.", names, []) == names


@pytest.mark.parametrize(
    ("mention", "names", "head"),
    [
        ("Anna", ["Anna"], "Anna"),
        ("Anna's", ["Anna"], "Anna"),
        ("his wife Anna", ["Anna"], "Anna"),
        ("Captain Ahab", ["Ahab"], "Ahab"),
        ("Anna, who left Rome", ["Anna", "Rome"], "Anna"),
        ("Anna , a nurse from Rome", ["Anna", "Rome"], "Anna"),
        ("Anna (Jane Doe)", ["Anna", "Jane Doe"], "Anna"),
        ("Bob who left Anna", ["Bob", "Anna"], "Bob"),
        ("French President Macron", ["French", "Macron"], "Macron"),
        ("the University of London in Rome", ["University of London", "Rome"], "University of London"),
        ("the Law and Order Party", ["Law and Order Party"], "Law and Order Party"),
        ("Rome, the capital of Italy", ["Rome", "Italy"], "Rome"),
        ("the king of France", ["France"], None),
        ("Anna's brother", ["Anna"], None),
        ("the Smith family", ["Smith"], None),
        ("a man from Rome", ["Rome"], None),
        ("Anna and Bob", ["Anna", "Bob"], None),
        ("Anna, Carl and Bob", ["Anna", "Carl", "Bob"], None),
    ],
)
def test_only_the_name_that_heads_a_mention_is_of_its_cluster(mention, names, head):
    text = f"When {mention} came, she wept."
    found = [Mention(*spans(text, name)[0], "Entity") for name in names]
    joined = with_clusters(text, found, [spans(text, mention, "she")])
    assert said(text, joined) == [
        *((name, "Entity", 0 if name == head else None) for name in names),
        ("she", None, 0),
    ]


def test_parts_of_names_and_placeholders_are_no_mentions():
    text = "John Smith saw Character_A's son. The old man left Smith Hall."
    names = [Mention(0, 10, "Character"), Mention(*spans(text, "Smith Hall")[0], "Location")]
    clusters = [
        spans(text, "Smith", "Character_A"),
        spans(text, "Character_A's son", "The old man"),
        spans(text, "John Smith saw", "man left Smith"),
    ]
    assert said(text, with_clusters(text, names, clusters)) == [
        ("John Smith", "Character", None),
        ("old man", None, 1),
        ("Smith Hall", "Location", None),
    ]


def test_a_name_that_two_clusters_claim_goes_with_the_closer_mention():
    text = "Anna, who sang, left. She did."
    name = Mention(0, 4, "Character")
    for clusters in ([[(0, 14)], [(0, 4)]], [[(0, 4)], [(0, 14)]]):
        (found,) = with_clusters(text, [name], clusters)
        assert clusters[found.cluster] == [(0, 4)]


PIECES = st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda place: (place[0], min(place[0] + place[1], 40)))


@given(
    st.text("Ab c',of", min_size=40, max_size=40),
    st.sets(st.integers(0, 40), max_size=8),
    st.lists(st.lists(PIECES.filter(lambda span: span[0] < span[1]), max_size=4), max_size=4),
)
def test_names_survive_and_nothing_overlaps_them(text, cuts, clusters):
    cuts = sorted(cuts)
    names = [Mention(start, end, "Entity") for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    found = with_clusters(text, names, clusters)
    assert [(m.start, m.end) for m in found if m.kind] == [(name.start, name.end) for name in names]
    assert found == sorted(found, key=lambda mention: (mention.start, mention.end))
    for mention in found:
        if mention.kind is None:
            assert text[mention.start : mention.end].strip() == text[mention.start : mention.end]
            assert all(mention.end <= name.start or name.end <= mention.start for name in names)
            inside = clusters[mention.cluster]
            assert any(start <= mention.start and mention.end <= end for start, end in inside)
