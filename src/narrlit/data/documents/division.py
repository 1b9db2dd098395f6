"""Division of a book into its stories, by headings, contents, or titles between blank lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from narrlit.data.documents.document import Block, DocumentText
from narrlit.data.documents.plain_text import looks_like_title
from narrlit.preprocessing.words import num_words

LEAST_STORIES = 2
WORDS_OF_STORY = 60
"""Words of a story at least, in the middle of all that headings of a level divide."""
WORDS_OF_SECTION = 15
"""Words below which a section is no story, such as a title page."""
FOUND_SHARE = 0.6
"""Share of the titles in the contents that stand above a story, from which the contents divide a book."""
_CONTENTS = re.compile(
    r"(?:table of )?contents|inhalt(?:sverzeichnis)?|table des matières|índice|indice|sommaire", re.IGNORECASE
)
_NUMBER = re.compile(
    r"(?:chapter|part|section|kapitel|teil|chapitre|capítulo|capitolo)?\s*(?:\d+|[ivxlcdm]+)\s*[.:]?", re.IGNORECASE
)
_NUMBERING = re.compile(r"^(?:\d+|[ivxlcdm]+)[.):]\s+|[\s.·…_-]*\d*$", re.IGNORECASE)


@dataclass(frozen=True)
class BookSection:
    """Story of a book.

    Attributes:
        title: its heading.
        blocks: its headings and paragraphs.
    """

    title: str
    blocks: list[Block]

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(num_words(block.text) for block in self.blocks)


@dataclass(frozen=True)
class BookDivision:
    """Stories of a book.

    Attributes:
        stories: the stories in order; empty if the text is one story.
        left_out: titles of sections without the text of a story, such as contents.
        words_before: words before the first story, which are left out.
    """

    stories: list[BookSection]
    left_out: list[str]
    words_before: int = 0


def divided(document: DocumentText, guess: bool = True) -> BookDivision:
    """Divide a book into stories.

    Args:
        document: text of the book.
        guess: where there are no headings, divide by its contents, or at titles between blank lines.
    """
    level = _level_of_stories(document.blocks)
    if level is None and guess:
        marked = _with_headings(document.blocks)
        level = _level_of_stories(marked)
        document = replace(document, blocks=marked)
    if level is None:
        return BookDivision([], [])
    before, sections = _sections(document.blocks, level)
    titles = {section.title.casefold() for section in sections}
    stories, left_out = [], []
    for section in sections:
        lists_titles = _listed_titles(section, titles) > len(section.blocks) / 2
        is_story = section.words >= WORDS_OF_SECTION and not _CONTENTS.fullmatch(section.title) and not lists_titles
        if is_story:
            stories.append(section)
        else:
            left_out.append(section.title)
    if len(stories) < LEAST_STORIES:
        return BookDivision([], [])
    return BookDivision(stories, left_out, before)


def titles_inside(text: str) -> list[str]:
    r"""List the titles of the stories into which a text could be divided; empty if it is one story.

    >>> story = "A king fell ill, and his sons rode out. " * 10
    >>> titles_inside(f"The King\n\n{story}\n\nThe Fox\n\n{story}")
    ['The King', 'The Fox']
    """
    return [story.title for story in divided(DocumentText([Block(part) for part in text.split("\n\n")])).stories]


def _listed_titles(section: BookSection, titles: set[str]) -> int:
    lines = [_NUMBERING.sub("", line).casefold() for block in section.blocks for line in block.text.split("\n")]
    return sum(line in titles for line in lines)


def _level_of_stories(blocks: Sequence[Block]) -> int | None:
    """Return the lowest level whose headings are titles with long texts below; None if there is none."""
    for level in sorted({block.level for block in blocks if block.level}, reverse=True):
        headings = [block.text for block in blocks if block.level == level]
        titled = [heading for heading in headings if not _NUMBER.fullmatch(heading)]
        _, sections = _sections(blocks, level)
        lengths = [section.words for section in sections if section.words >= WORDS_OF_SECTION]
        are_titles = len(titled) >= max(LEAST_STORIES, len(headings) / 2)
        if are_titles and 2 * len(lengths) >= len(sections) and median(lengths) >= WORDS_OF_STORY:
            return level
    return None


def _sections(blocks: Sequence[Block], level: int) -> tuple[int, list[BookSection]]:
    """Divide blocks at the headings of a level; also return the number of words before the first one."""
    sections: list[BookSection] = []
    before = 0
    is_open = False
    for block in blocks:
        if block.level == level:
            sections.append(BookSection(block.text, []))
            is_open = True
        elif block.level and block.level < level:
            is_open = False  # a part of the book, whose introduction belongs to no story
        elif is_open:
            sections[-1].blocks.append(block)
        else:
            before += num_words(block.text)
    return before, sections


def _with_headings(blocks: Sequence[Block]) -> list[Block]:
    """Mark the titles of stories in a text without headings."""
    titles = _titles_of_contents(blocks)
    marked = []
    words_before = WORDS_OF_STORY
    for number, block in enumerate(blocks):
        key = _NUMBERING.sub("", block.text).casefold()
        if titles:
            is_title = key in titles and number > titles[key]
        else:
            words_after = sum(num_words(later.text) for later in blocks[number + 1 : number + 4])
            is_title = looks_like_title(block.text) and min(words_before, words_after) >= WORDS_OF_STORY
            is_title = is_title and not _NUMBER.fullmatch(block.text)
        marked.append(Block(block.text, 1) if is_title else Block(block.text))
        words_before = 0 if is_title else words_before + num_words(block.text)
    return marked


def _is_contents(line: str) -> bool:
    return _CONTENTS.fullmatch(line.rstrip(".:")) is not None


def _start_of_contents(blocks: Sequence[Block]) -> int | None:
    """Return the number of the first block of the contents, below their heading; None if there are none."""
    for number, block in enumerate(blocks):
        if _is_contents(block.text):
            return number + 1
    for number, block in enumerate(blocks):  # the heading may be the first line of its block
        if _is_contents(block.text.split("\n")[0]):
            return number
    return None


def _titles_of_contents(blocks: Sequence[Block]) -> dict[str, int]:
    """Return the titles that the contents list, with the number of their last block; none if few are found below."""
    start = _start_of_contents(blocks)
    if start is None:
        return {}
    places: dict[str, list[int]] = {}
    for number, block in enumerate(blocks):
        for line in block.text.split("\n"):
            places.setdefault(_NUMBERING.sub("", line).casefold(), []).append(number)
    listed: dict[str, int] = {}
    misses = 0
    for number in range(start, len(blocks)):
        lines = [_NUMBERING.sub("", line).casefold() for line in blocks[number].text.split("\n")]
        known = [line for line in lines if line and places[line][-1] > number]
        if not known and len(lines) == 1 and lines[0] in listed:
            break
        misses = 0 if known else misses + 1
        if misses > 1:
            break
        listed.update(dict.fromkeys(known, number))
    found = [title for title in listed if len(places[title]) > 1]
    if len(found) < LEAST_STORIES or len(found) < FOUND_SHARE * len(listed):
        return {}
    last = max(listed.values())
    return dict.fromkeys(found, last)
