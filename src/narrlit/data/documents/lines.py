"""Lines of pages as paragraphs: hard line breaks, hyphens at line ends, and running heads."""

import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from narrlit.preprocessing.words import UNSPACED, joined_text

NARROWEST, WIDEST = 50, 100
"""Characters of a line between which its break may be that of a program, not of the author."""
WRAPPED_SHARE = 0.7
"""Share of lines that the next word would make too long, from which their breaks are those of a program."""
VERSE_SHARE = 0.85
"""Share of lines that begin with a capital letter, from which they are verses."""
HYPHENS_SHARE = 0.02
"""Share of lines that end with a hyphen, from which words are divided at line ends."""
LEAST_PAGES = 3
"""Number of times that a running head occurs at least."""
_SENTENCE_END = re.compile(r"""[.!?…:;。！？।॥؟۔։።]["'”’»«)\]]*$""")
_NUMBERED_LINE = re.compile(r"(?:[\[(-]\s*)?(?:page\s+)?\d{1,4}(?:\s*[\])-]|\s+of\s+\d+)?", re.IGNORECASE)
_HEAD = re.compile(r"(?:\d{1,4}\s+(?=\D))?(\D.{0,60}?)(?:\s+\d{1,4})?")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_UNSPACED = regex.compile(UNSPACED)


def _is_item(line: str) -> bool:
    """Return True for a line of a list or of contents."""
    return re.match(r"(?:\d+|[a-z])[.)]\s|[-*•]\s", line) is not None or re.search(r"[.\s]{2,}\d+$", line) is not None


def width_of(line: str) -> int:
    """Count the columns of a line in print: two for a character of full width."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


# Running heads -------------------------------------------------------------------------------------------------------


def without_heads(lines: Sequence[str]) -> tuple[list[str], int]:
    """Remove page numbers and running heads that interrupt sentences; also return their number.

    Such lines differ in their numbers alone, the numbers grow, and at least half of the lines stand inside a sentence.
    """
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        pattern = _head_pattern(line.strip())
        if pattern is not None:
            places.setdefault(pattern, []).append(number)
    removed = set()
    for numbers in places.values():
        values = [int(re.findall(r"\d+", lines[number])[0]) for number in numbers]
        inside = sum(_is_inside_sentence(lines, number) for number in numbers)
        if len(numbers) >= LEAST_PAGES and values == sorted(values) and 2 * inside >= len(numbers):
            removed.update(numbers)
    if not removed:
        return list(lines), 0
    return list(_closed_up(lines, removed)), len(removed)


def _head_pattern(line: str) -> str | None:
    """Return a line with its page number replaced; None if it has none."""
    if _NUMBERED_LINE.fullmatch(line):
        return "#"
    if not re.search(r"^\d|\d$", line):
        return None
    match = _HEAD.fullmatch(line)
    return match[1].casefold() if match else None


def _is_inside_sentence(lines: Sequence[str], number: int) -> bool:
    before = next((line for line in reversed(lines[:number]) if line.strip()), "")
    return bool(before) and not _SENTENCE_END.search(before.strip())


def _closed_up(lines: Sequence[str], removed: set[int]) -> Iterator[str]:
    """Yield the lines that remain; blank ones around a removed line are left out where a sentence goes on."""
    kept: list[str] = []
    pending: list[str] = []
    gap = False
    for number, line in enumerate(lines):
        if number in removed:
            gap = True
        elif not line.strip():
            pending.append(line)
        else:
            before = kept[-1].strip() if kept else ""
            goes_on = gap and bool(before) and not _SENTENCE_END.search(before)
            if not goes_on:
                kept += pending or ([""] if gap else [])
            pending, gap = [], False
            kept.append(line)
    yield from kept


# Line breaks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrapping:
    """Line breaks of a text that was wrapped at a fixed width.

    Attributes:
        width: columns of a full line; 0: lines were not broken by a program.
        words: words of the text and their numbers, which decide on hyphens.
        divides: words are divided at line ends.
    """

    width: int
    words: Counter[str]
    divides: bool

    @classmethod
    def of(cls, paragraphs: Sequence[str], divides: bool | None = None, narrowest: int = NARROWEST) -> "Wrapping":
        """Find out how the lines of paragraphs were broken.

        Args:
            paragraphs: paragraphs with their lines.
            divides: words are divided at line ends; None: it is found by the number of hyphens.
            narrowest: columns of a full line, from which its break is that of a program.
        """
        broken = [line for text in paragraphs for line in text.split("\n")[:-1]]
        widths = sorted(map(width_of, broken))
        width = widths[int(0.9 * (len(widths) - 1))] if widths else 0
        if divides is None:
            hyphens = sum(line.rstrip().endswith(("-", "\u00ad", "¬")) for line in broken)
            divides = hyphens > HYPHENS_SHARE * len(broken)
        words = Counter(word.casefold() for text in paragraphs for word in _WORD.findall(text))
        return cls(width if narrowest <= width <= WIDEST else 0, words, divides)

    def joined(self, paragraph: str) -> str:
        """Join the lines of a paragraph if a program broke them; verses keep their lines."""
        lines = [line.strip() for line in paragraph.split("\n")]
        if len(lines) == 1 or not self._is_wrapped(lines):
            return textwrap.dedent(paragraph)
        text = lines[0]
        for line in lines[1:]:
            text = self.joined_lines(text, line)
        return text

    def _is_wrapped(self, lines: Sequence[str]) -> bool:
        if not self.width or not all(lines) or 2 * sum(map(_is_item, lines)) >= len(lines):
            return False
        continued = [line for line in lines[1:] if line[0].isalpha() or line[0] in "\"'“‘«"]
        capitals = sum(line.lstrip("\"'“‘«")[:1].isupper() for line in continued)
        if len(continued) > 2 and capitals >= VERSE_SHARE * len(continued):
            return False
        full = 0
        for line, following in pairwise(lines):
            next_word = following[0] if _UNSPACED.match(following) else following.split()[0]
            full += width_of(line) + 1 + width_of(next_word) >= self.width
        return full >= WRAPPED_SHARE * (len(lines) - 1)

    def joined_lines(self, text: str, line: str) -> str:
        """Join two lines, without a space at a dash, at a divided word, and between characters of full width."""
        if not text:
            return line
        if text[-1] in "\u00ad¬":
            return text[:-1] + line
        if text.endswith(("--", "—")):
            return text + line
        if text[-1] == "-" and text[-2:-1].isalpha() and line[:1].islower():
            first = _WORD.findall(text)[-1:] or [""]
            second = _WORD.match(line)
            whole, compound = first[0] + (second[0] if second else ""), f"{first[0]}-{second[0] if second else ''}"
            known, divided = self.words[whole.casefold()], self.words[compound.casefold()]
            removes = known > divided if known != divided else self.divides
            return (text[:-1] if removes else text) + line
        return joined_text([text, line])
