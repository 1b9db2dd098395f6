import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.text.joined import Views, join
from narrlit.text.pseudonyms.placeholders import protected
from narrlit.text.pseudonyms.spans import outside, trimmed


def test_placeholders_and_marker_lines_are_protected():
    text = join("Character_AB's ship left Location_12 for Organization_3, Entity_4.", Views("A", "[plot] B", "C"))
    assert [text[start:end] for start, end in protected(text)] == [
        *("Character_AB", "Location_12", "Organization_3", "Entity_4"),
        *("[theme]", "[plot]", "[outcome]"),
    ]
    assert protected("Character_1 and Location_A and MyCharacter_A and [theme] inside a line") == []


@given(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted), st.lists(st.integers(0, 20), max_size=6))
def test_outside_keeps_each_place_that_is_not_blocked(span, cuts):
    cuts = sorted(cuts)[: len(cuts) // 2 * 2]
    blocked = list(zip(cuts[::2], cuts[1::2], strict=True))
    kept = [place for start, end in outside(tuple(span), blocked) for place in range(start, end)]
    assert kept == [p for p in range(*span) if not any(start <= p < end for start, end in blocked)]


@pytest.mark.parametrize(
    ("marked", "person", "name"),
    [
        ("Ahab", True, "Ahab"),
        ("Captain Ahab's", True, "Ahab"),
        ("the old Captain", True, "old Captain"),
        ("Dr. Mina Ray", True, "Mina Ray"),
        ("Lady Mary", True, "Mary"),
        ("Kingsley", True, "Kingsley"),
        ("Sirius", True, "Sirius"),
        ("King’s Landing", False, "King’s Landing"),
        ("King Street", False, "King Street"),
        ("The Hague", False, "Hague"),
        ("THE GUILD'S", False, "GUILD"),
        ("the Harbour Guild’s", False, "Harbour Guild"),
        ('"Moby",', False, "Moby"),
        ("the Joneses'", True, "Joneses"),
        (" and Mary", True, "Mary"),
        ("Andrew", True, "Andrew"),
        ("James Smith Jr.", True, "James Smith Jr."),
        ("'s", True, None),
        ("the King", True, None),
        ("Mrs.", True, None),
        ("--", False, None),
    ],
)
def test_a_name_is_trimmed_within_its_text(marked, person, name):
    text = f"See {marked} go."
    span = trimmed(text, (4, 4 + len(marked)), person)
    assert (None if span is None else text[slice(*span)]) == name


@given(st.text("aT he'sKing,\"", max_size=20), st.booleans())
def test_trimming_twice_is_trimming_once(text, person):
    span = trimmed(text, (0, len(text)), person)
    if span is not None:
        assert 0 <= span[0] < span[1] <= len(text)
        assert trimmed(text, span, person) == span
