import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from narrlit.text.joined import VIEWS, Views, join, split

VIEWED = Views("A quest.", "He rides.\nHe falls.", "He rests.")
TEXTS = st.text(alphabet="ab[]\n theme", max_size=20)


def test_views_stand_behind_the_text_in_their_order():
    assert join("Once.", VIEWED) == "Once.\n[theme]\nA quest.\n[plot]\nHe rides.\nHe falls.\n[outcome]\nHe rests."
    assert VIEWED.texts == ("A quest.", "He rides.\nHe falls.", "He rests.")
    assert VIEWS == ("theme", "plot", "outcome")


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_what_is_joined_comes_apart_again(text, theme, plot, outcome):
    try:
        whole = join(text, Views(theme, plot, outcome))
    except ValueError:
        assume(False)
    assert split(whole) == (text, Views(theme, plot, outcome))


@pytest.mark.parametrize("part", ["[theme]", "a\n[plot]\nb", "a\n[outcome]", "[theme]\nb"])
def test_a_line_that_separates_is_refused_in_any_part(part):
    for texts in ((part, "b", "c", "d"), ("a", part, "c", "d"), ("a", "b", part, "d"), ("a", "b", "c", part)):
        with pytest.raises(ValueError, match="separates a story from its views"):
            join(texts[0], Views(*texts[1:]))


def test_a_mark_within_a_line_is_text():
    odd = Views("the [theme] of it", "x", "y")
    assert split(join("a [plot] b", odd)) == ("a [plot] b", odd)


def test_a_text_alone_has_no_views():
    assert split("Once [theme] there was.") == ("Once [theme] there was.", None)


@pytest.mark.parametrize(
    "broken",
    ["a\n[theme]\nb", "a\n[plot]\nb\n[theme]\nc\n[outcome]\nd", "a\n[theme]\nb\n[theme]\nb\n[plot]\nc\n[outcome]\nd"],
)
def test_views_that_are_missing_doubled_or_out_of_order_are_refused(broken):
    with pytest.raises(ValueError, match="once, in this order"):
        split(broken)
