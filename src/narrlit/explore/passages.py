"""Places of passages in the texts of stories."""

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

CONTEXT = 160
"""Characters before and after a passage that are shown with it."""


class PlacedPassage(BaseModel):
    """Passage of a story and its place in the text, in characters; 0 to 0 if the text differs from what was read."""

    text: str
    start: int
    end: int


def place(text: str, passage: str, start: int = 0) -> PlacedPassage:
    r"""Find a passage in a text, from which it differs in white space only.

    >>> place("A king fell ill.\n His sons rode out.", "ill. His sons")
    PlacedPassage(text='ill. His sons', start=12, end=26)
    """
    words = map(re.escape, passage.split())
    pattern = re.compile(r"\s*".join(words))
    match = pattern.search(text, start) or pattern.search(text)
    first, end = match.span() if match else (0, 0)
    return PlacedPassage(text=passage, start=first, end=end)


def context(text: str, passage: PlacedPassage) -> tuple[str, str]:
    """Return the words before and after a passage, about 160 characters each, with … where the text is cut.

    >>> story = "A king fell ill. His sons rode out."
    >>> context(story, place(story, "His sons"))
    ('A king fell ill. ', ' rode out.')
    """
    if passage.end == 0:
        return "", ""
    start, end = max(0, passage.start - CONTEXT), passage.end + CONTEXT
    before, after = text[start : passage.start], text[passage.end : end]
    if start > 0:
        before = "… " + (before.partition(" ")[2] or before)
    if end < len(text):
        after = (after.rpartition(" ")[0] or after) + " …"
    return before, after


def place_all(text: str, passages: Sequence[str]) -> Iterator[PlacedPassage]:
    """Find the passages of a story in its text, in order."""
    start = 0
    for passage in passages:
        placed = place(text, passage, start)
        start = max(start, placed.end)
        yield placed
