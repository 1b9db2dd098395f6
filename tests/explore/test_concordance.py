"""Exact words and phrases in context."""

import pytest
from refusals import refused

from narrlit.explore.concordance import CONTEXT, occurrences


@pytest.mark.parametrize(
    ("phrase", "text", "matches"),
    [
        ("shoe", "A shoe, shoes and SHOE.", ["shoe", "SHOE"]),
        ("shoe*", "A shoe, shoes and horseshoe.", ["shoe", "shoes"]),
        ("*shoe*", "A shoe, shoes and horseshoe.", ["shoe", "shoes", "horseshoe"]),
        ("glass slipper", "a glass\nslipper; glass (slipper), glass the slipper", ["glass slipper", "glass (slipper"]),
        ("don't", "don't do not dont", ["don't"]),
        ("a.b", "a.b axb", ["a.b"]),
        ("灰姑娘", "从前灰姑娘有一双鞋。", ["灰姑娘"]),
        ("Мороз", "Морозко и мороз", ["мороз"]),
        ("ka", "ka̍ kā ka", ["ka̍"[:2], "ka"]),
        ("wolf | fox*|", "A wolf, foxes and a bear.", ["wolf", "foxes"]),
        (" | ", "", None),
        ("*", "", None),
        ("...", "", None),
    ],
)
def test_whole_words_are_found(phrase, text, matches):
    if matches is None:
        with refused("empty_query"):
            list(occurrences([text], phrase))
        return
    found = list(occurrences([text], phrase))
    assert [each.match for each in found] == matches
    assert [text[each.start : each.end].replace("\n", " ") for each in found] == matches


def test_words_before_and_after_are_on_one_line():
    text = "x" * 100 + " " + "1234 " * 20 + "one\ntwo shoe three\n" + "5678 " * 20
    [found] = occurrences(["no", text], "shoe")
    assert (found.row, found.before[-8:], found.after[:7]) == (1, "one two ", " three ")
    words = {*found.before.split(), *found.after.split()}
    assert words == {"1234", "one", "two", "three", "5678"}  # none is cut
    assert CONTEXT - 5 <= len(found.before) <= CONTEXT
    assert CONTEXT - 5 <= len(found.after) <= CONTEXT
