"""Places of passages in the texts of stories."""

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel


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
    pattern = re.compile(r"\s*".join(re.escape(word) for word in passage.split()))
    match = pattern.search(text, start) or pattern.search(text)
    first, end = match.span() if match else (0, 0)
    return PlacedPassage(text=passage, start=first, end=end)


def place_all(text: str, passages: Sequence[str]) -> Iterator[PlacedPassage]:
    """Find the passages of a story in its text, in order."""
    start = 0
    for passage in passages:
        placed = place(text, passage, start)
        start = max(start, placed.end)
        yield placed
