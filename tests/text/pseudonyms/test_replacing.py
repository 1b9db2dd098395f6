"""Spans that don't overlap, pieces and the way back, against plain loops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.text.pseudonyms.replacing import Piece, Replacement, replace, replacements, restore, without_overlap

spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=12
)


@given(spans)
def test_kept_spans_are_the_longest_that_fit(given_spans):
    kept = [span for span, _ in without_overlap([(span, None) for span in given_spans])]
    covered = [place for start, end in kept for place in range(start, end)]
    assert len(covered) == len(set(covered))
    assert kept == sorted(kept)
    for start, end in given_spans:
        rivals = [e - s for s, e in kept if s < end and start < e]
        assert max(rivals) >= end - start  # kept itself, or a longer one or one as long stands in its way


def test_longer_spans_win_and_of_two_as_long_the_first():
    assert without_overlap([((3, 6), "b"), ((0, 4), "a"), ((8, 10), "c"), ((9, 11), "d")]) == [
        ((0, 4), "a"),
        ((8, 10), "c"),
    ]


@given(st.text("ab \n", max_size=40), spans)
def test_replaced_twice_and_restored(text, given_spans):
    inside = [(span, f"Location_{n}") for n, span in enumerate(given_spans) if span[1] <= len(text)]
    chosen = without_overlap(inside)
    first, second = chosen[::2], chosen[1::2]
    pieces = replace([Piece(text)], first)
    by_hand = text
    for (start, end), placeholder in reversed(first):
        by_hand = by_hand[:start] + placeholder + by_hand[end:]
    assert "".join(piece.text for piece in pieces) == by_hand

    def moved(place):
        return place + sum(len(given) - (end - start) for (start, end), given in first if end <= place)

    pieces = replace(pieces, [((moved(start), moved(end)), given) for (start, end), given in second])
    new = "".join(piece.text for piece in pieces)
    made = replacements(pieces)
    assert [new[r.start : r.end] for r in made] == [given for _, given in chosen]
    assert [r.original for r in made] == [text[start:end] for (start, end), _ in chosen]
    assert restore(new, made) == text


@pytest.mark.parametrize("span", [(0, 13), (5, 7), (10, 12), (2, 2), (13, 99)])
def test_placeholders_are_not_replaced_again(span):
    pieces = [Piece("Character_A", "Anna"), Piece(" sleeps")]
    with pytest.raises(ValueError, match="does not lie within"):
        replace(pieces, [(span, "Entity_1")])


def test_another_text_is_not_restored():
    with pytest.raises(ValueError, match="no placeholder stands at characters 0 to 11"):
        restore("Anna sleeps well", [Replacement(0, 11, "Anna")])
