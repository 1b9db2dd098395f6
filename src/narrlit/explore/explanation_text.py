"""Explanations as text for a terminal of 100 columns."""

import textwrap
from collections.abc import Iterator
from itertools import zip_longest

from narrlit.console import counted
from narrlit.errors import printable
from narrlit.explore.matched_pair import MatchedPair

WIDTH = 100
SIDE = 43
"""Width of a passage in characters."""
SHOWN = 6
"""Maximum number of links that are printed per pair."""
LONGEST = 400
"""Maximum number of characters that are printed of a passage."""
ARROWS = {"both": "↔", "a to b": "→", "b to a": "←"}


def pair_lines(pair: MatchedPair) -> Iterator[str]:
    """Format the terms of a similarity, the links with the largest shares and, if there are any, check and views."""
    for value, name in pair.terms:
        yield f"{value:6.3f}  {name}"
    yield from ("", *_link_lines(pair))
    if pair.deletion is not None:
        yield from ("", *wrap(str(pair.deletion)))
    for aspect, texts in pair.views:
        yield from ("", aspect.capitalize())
        yield from columns((texts[0], SIDE), ("", 10), (texts[1], SIDE))


def _link_lines(pair: MatchedPair) -> Iterator[str]:
    """Format the links with the largest shares, and the sum of the others."""
    if pair.links.empty:
        yield "No passages match."
        return
    first, second = pair.ids
    yield from columns((printable(first, SIDE), SIDE), ("", 10), (printable(second, SIDE), SIDE))
    yield "─" * WIDTH
    for link in pair.links.head(SHOWN).itertuples():
        left = printable(f"{link.passage_a} {link.text_a}", LONGEST)
        right = printable(f"{link.passage_b} {link.text_b}", LONGEST)
        yield from columns((left, SIDE), (f"{link.share:6.3f} {ARROWS[link.direction]}", 10), (right, SIDE))
        yield ""
    others = pair.links.iloc[SHOWN:]
    if len(others):
        yield f"{'':{SIDE}}  {others['share'].sum():6.3f} in {counted(len(others), 'weaker link')}"


def columns(*cells: tuple[str, int]) -> list[str]:
    """Wrap texts in columns of given widths."""
    texts, widths = zip(*cells, strict=True)
    wrapped = map(wrap, texts, widths)
    lines = []
    for row in zip_longest(*wrapped, fillvalue=""):
        padded = map(str.ljust, row, widths)
        lines.append("  ".join(padded).rstrip())
    return lines


def wrap(text: str, width: int = WIDTH) -> list[str]:
    """Wrap a text, without the terminal escapes in it."""
    return textwrap.wrap(printable(text, 10_000), width) or [""]
