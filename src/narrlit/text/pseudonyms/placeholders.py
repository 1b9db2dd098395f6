"""What stands for a name: Character_A, Location_1, Organization_1, Entity_1; and what in a text is never touched."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from narrlit.text.joined import VIEWS
from narrlit.text.pseudonyms.mentions import Kind

PLACEHOLDER = re.compile(r"(?<!\w)(?:Character_[A-Z]+|(?:Location|Organization|Entity)_\d+)(?!\w)")
_MARKER = re.compile(rf"^\[(?:{'|'.join(VIEWS)})\]$", re.MULTILINE)


def protected(text: str) -> list[tuple[int, int]]:
    r"""Start and end of what no name may cover: placeholders, and the lines that part a story from its views.

    >>> protected("Character_A sleeps.\n[theme]\nRest.")
    [(0, 11), (20, 27)]
    """
    return sorted(match.span() for pattern in (PLACEHOLDER, _MARKER) for match in pattern.finditer(text))


def touches(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of these spans, sorted and without overlap, shares a character with that from `start` to `end`.

    >>> touches([(2, 4), (8, 9)], 4, 8), touches([(2, 4), (8, 9)], 3, 5), touches([(2, 4), (8, 9)], 0, 9)
    (False, True, True)
    """
    after = bisect_left(spans, (end, end))
    return after > 0 and spans[after - 1][1] > start


class Placeholders:
    """Gives placeholders out, by a counter for each kind, and none that stands in a text already."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._taken = {placeholder for text in texts for placeholder in PLACEHOLDER.findall(text)}
        self._counts: dict[Kind, int] = {}

    def next(self, kind: Kind) -> str:
        """A new placeholder of this kind.

        >>> given = Placeholders(["Character_B smiles."])
        >>> given.next("Character"), given.next("Character"), given.next("Location")
        ('Character_A', 'Character_C', 'Location_1')
        """
        while True:
            self._counts[kind] = number = self._counts.get(kind, 0) + 1
            placeholder = f"{kind}_{letters(number) if kind == 'Character' else number}"
            if placeholder not in self._taken:
                self._taken.add(placeholder)
                return placeholder


def letters(number: int) -> str:
    """The letters of a number from 1 on, as columns of a table are lettered.

    >>> [letters(number) for number in (1, 26, 27, 52, 53, 702, 703)]
    ['A', 'Z', 'AA', 'AZ', 'BA', 'ZZ', 'AAA']
    """
    found = ""
    while number:
        number, digit = divmod(number - 1, 26)
        found = chr(ord("A") + digit) + found
    return found
