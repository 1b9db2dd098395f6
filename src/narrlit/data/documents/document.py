"""Text of a document: headings and paragraphs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from narrlit.data.row_file import ReadingNote

_SPACES = re.compile(r"[^\S\n]+")


@dataclass(frozen=True)
class Block:
    """Heading or paragraph.

    Attributes:
        text: text; lines of a poem are divided by line breaks.
        level: level of a heading, from 1; 0: a paragraph.
    """

    text: str
    level: int = 0


@dataclass(frozen=True)
class DocumentText:
    """Text of a file.

    Attributes:
        blocks: headings and paragraphs in reading order.
        title: title that the file states; None: the heading at its beginning, if there is one.
        columns: what else the file states, such as author and date.
        notes: what was left out.
    """

    blocks: list[Block]
    title: str | None = None
    columns: dict[str, object] = field(default_factory=dict)
    notes: list[ReadingNote] = field(default_factory=list)


def joined_blocks(blocks: Iterable[Block]) -> str:
    r"""Join blocks, with a blank line between two.

    >>> joined_blocks([Block("The fox", 1), Block("It came.")])
    'The fox\n\nIt came.'
    """
    return "\n\n".join(block.text for block in blocks if block.text)


def filled_blocks(blocks: Iterable[Block]) -> list[Block]:
    """Remove empty blocks, spaces at both ends of lines, and marks that only guide the hyphenation."""
    filled = []
    for block in blocks:
        text = block.text.replace("\u00ad", "").replace("\u200b", "")
        lines = [_SPACES.sub(" ", line).strip() for line in text.strip().split("\n")]
        text = "\n".join(lines).strip()
        if block.level:
            text = " ".join(text.split())
        if text:
            filled.append(Block(text, block.level))
    return filled
