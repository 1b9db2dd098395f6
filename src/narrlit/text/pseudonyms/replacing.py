"""Names in a text replaced, so that the text can be had back to the letter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from narrlit.text.pseudonyms.placeholders import PLACEHOLDER

Span = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A placeholder from `start` to `end` of the new text, and what stood there before."""

    start: int
    end: int
    original: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text: as it was (`original` is None), or a placeholder that took its original's place."""

    text: str
    original: str | None = None


def without_overlap(spans: Iterable[tuple[Span, T]]) -> list[tuple[Span, T]]:
    """Those spans that are replaced: the longest first, each if no character of it is taken, in the text's order.

    >>> without_overlap([((0, 4), "Anna"), ((0, 8), "Anna Lee"), ((5, 12), "Lee met"), ((20, 23), "Lee")])
    [((0, 8), 'Anna Lee'), ((20, 23), 'Lee')]
    """
    taken: set[int] = set()
    kept = []
    for (start, end), what in sorted(spans, key=lambda item: (item[0][0] - item[0][1], item[0][0])):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            kept.append(((start, end), what))
    return sorted(kept, key=lambda item: item[0])


def replace(pieces: Sequence[Piece], spans: Sequence[tuple[Span, str]]) -> list[Piece]:
    """Put placeholders into a text in pieces.

    Args:
        pieces: the text.
        spans: start and end in the joined text, and the placeholder; in order, without overlap, within pieces that are
            as they were.
    """
    found: list[Piece] = []
    place = number = 0
    for piece in pieces:
        end = place + len(piece.text)
        cut = 0
        while number < len(spans) and spans[number][0][0] < end:
            start, stop = (position - place for position in spans[number][0])
            if piece.original is not None or not cut <= start < stop <= len(piece.text):
                raise ValueError(f"a replacement at {spans[number][0]} does not lie within a piece as it was")
            found += [Piece(piece.text[cut:start]), Piece(spans[number][1], piece.text[start:stop])]
            cut = stop
            number += 1
        found.append(Piece(piece.text[cut:], piece.original))
        place = end
    return [piece for piece in found if piece.text]


def replacements(pieces: Iterable[Piece]) -> list[Replacement]:
    """Where the placeholders of a text in pieces are, in order."""
    found = []
    place = 0
    for piece in pieces:
        if piece.original is not None:
            found.append(Replacement(place, place + len(piece.text), piece.original))
        place += len(piece.text)
    return found


def restore(text: str, made: Sequence[Replacement]) -> str:
    """The text before its names were replaced, to the letter.

    Raises:
        ValueError: if no placeholder stands where a replacement says: it was made in another text.

    >>> restore("Character_A met Character_B.", [Replacement(0, 11, "Anna"), Replacement(16, 27, "Bert")])
    'Anna met Bert.'
    """
    for replacement in sorted(made, key=lambda replacement: -replacement.start):
        start, end = replacement.start, replacement.end
        if not PLACEHOLDER.fullmatch(text[start:end]):
            raise ValueError(f"no placeholder stands at characters {start} to {end}")
        text = text[:start] + replacement.original + text[end:]
    return text
