"""Placeholders: their counters, and what is protected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.text.pseudonyms.placeholders import PLACEHOLDER, Placeholders, letters, protected


@given(st.integers(1, 20_000))
def test_letters_count_as_columns_of_a_table_do(number):
    back = 0
    for letter in letters(number):
        back = back * 26 + ord(letter) - ord("A") + 1
    assert back == number


def test_each_kind_counts_for_itself_past_z():
    given_out = Placeholders([])
    persons = [given_out.next("Character") for _ in range(28)]
    assert persons[:2] == ["Character_A", "Character_B"]
    assert persons[25:] == ["Character_Z", "Character_AA", "Character_AB"]
    assert [given_out.next(kind) for kind in ("Location", "Entity", "Location", "Organization")] == [
        "Location_1",
        "Entity_1",
        "Location_2",
        "Organization_1",
    ]


def test_what_a_text_holds_is_never_given():
    given_out = Placeholders(["Character_A and Location_2", "Character_C's hat"])
    assert [given_out.next("Character") for _ in range(3)] == ["Character_B", "Character_D", "Character_E"]
    assert [given_out.next("Location") for _ in range(2)] == ["Location_1", "Location_3"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Character_A's", ["Character_A"]),
        ("(Entity_12)", ["Entity_12"]),
        ("Character_a MyCharacter_A Character_A1 Location_A Location_", []),
    ],
)
def test_what_is_a_placeholder(text, found):
    assert PLACEHOLDER.findall(text) == found


def test_lines_that_mark_views_are_protected_and_the_words_are_not():
    assert protected("The [theme] of\n[plot]\nX") == [(15, 21)]
