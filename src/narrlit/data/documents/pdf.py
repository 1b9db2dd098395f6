"""PDF files as documents: columns in reading order, without running heads."""

import io
import re
from collections import Counter
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from narrlit.data.documents.archives import stated_title, titled
from narrlit.data.documents.document import Block, DocumentText, filled_blocks
from narrlit.data.documents.license import without_license
from narrlit.data.documents.lines import LEAST_PAGES, Wrapping
from narrlit.data.row_file import ReadingNote
from narrlit.optional import require

HEADING_SIZE = 1.15
"""Size of a heading's letters, as a multiple of that of the text."""
MARGIN = 0.12
"""Share of a page at its top and bottom where running heads stand."""
HEAD_CHARACTERS = 90
NARROWEST_COLUMN = 20
"""Characters of a line of the narrowest column."""
_UNREADABLE = re.compile(r"\(cid:\d+\)|\x00")
"""Character of which the file does not say what it is."""
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_SENTENCE_END = re.compile(r"""[.!?…:。！？।]["'”’»)\]]*$""")


@dataclass(frozen=True)
class PageBox:
    """Paragraph of a page.

    Attributes:
        text: text with its lines.
        size: size of its letters.
        page: number of the page.
        is_margin: it stands at the top or bottom of the page.
        turned: number of lines that are left out, because they are turned, such as labels of pictures.
    """

    text: str
    size: float
    page: int
    is_margin: bool
    turned: int

    @property
    def pattern(self) -> str:
        """Text with page numbers replaced, which running heads have in common."""
        return re.sub(r"\d+|\b[ivxlc]+\b", "#", " ".join(self.text.casefold().split()))


def read_pdf(content: bytes) -> DocumentText:
    """Read the paragraphs of a PDF file in reading order."""
    boxes = _boxes_of_pages(content, is_vertical=False)
    lines = [line for box in boxes for line in box.text.split("\n")]
    if 2 * sum(len(line) == 1 for line in lines) > len(lines):  # columns of characters, as in Japanese
        boxes = _boxes_of_pages(content, is_vertical=True)
    unreadable = sum(len(_UNREADABLE.findall(box.text)) for box in boxes)
    kept, heads = _without_running_heads([replace(box, text=_UNREADABLE.sub("", box.text)) for box in boxes])
    notes = [ReadingNote.of("left_out_heads", n=heads)] if heads else []
    turned = sum(box.turned for box in boxes)
    if turned:
        notes.append(ReadingNote.of("left_out_turned", n=turned))
    if unreadable:
        notes.append(ReadingNote.of("left_out_unreadable", n=unreadable))
    blocks = _blocks(kept)
    return without_license(DocumentText(blocks, titled(blocks, stated_title(_title(content))), notes=notes))


def _boxes_of_pages(content: bytes, is_vertical: bool) -> list[PageBox]:
    """Read the paragraphs of all pages."""
    layout = require("pdfminer.layout", "documents")
    high_level = require("pdfminer.high_level", "documents")
    boxes: list[PageBox] = []
    pages = high_level.extract_pages(io.BytesIO(content), laparams=layout.LAParams(detect_vertical=is_vertical))
    for number, page in enumerate(pages):
        for element in page:
            if isinstance(element, layout.LTTextBox):
                boxes.append(_box(element, page, number))
    return boxes


def _box(element: Any, page: Any, number: int) -> PageBox:
    lines, sizes = [], []
    for line in element:
        characters = [character for character in line if hasattr(character, "size")]
        if 2 * sum(character.upright for character in characters) >= len(characters):
            lines.append(line.get_text().translate(_LIGATURES).strip())
            sizes += [character.size for character in characters]
    is_margin = element.y0 > page.y1 - MARGIN * page.height or element.y1 < page.y0 + MARGIN * page.height
    size, turned = round(median(sizes or [0]), 1), len(list(element)) - len(lines)
    return PageBox("\n".join(filter(None, lines)), size, number, is_margin, turned)


def _title(content: bytes) -> str | None:
    """Return the title in the properties of a PDF file."""
    parser = require("pdfminer.pdfparser", "documents")
    document = require("pdfminer.pdfdocument", "documents")
    utils = require("pdfminer.utils", "documents")
    for information in document.PDFDocument(parser.PDFParser(io.BytesIO(content))).info:
        title = information.get("Title")
        if isinstance(title, bytes):
            return str(utils.decode_text(title))
    return None


def _without_running_heads(boxes: list[PageBox]) -> tuple[list[PageBox], int]:
    """Remove page numbers, and texts that stand at the top or bottom of several pages."""
    pages = len({box.page for box in boxes})
    patterns = Counter(box.pattern for box in boxes if box.is_margin and len(box.text) <= HEAD_CHARACTERS)
    kept = []
    for box in boxes:
        is_number = re.fullmatch(r"[\[(\-–— ]*#[\])\-–— ]*(?:(?:of|/|von) ?#)?", box.pattern) is not None
        is_repeated = box.is_margin and patterns[box.pattern] >= LEAST_PAGES
        if not (box.is_margin and (is_repeated or (is_number and pages > 1))):
            kept.append(box)
    return kept, len(boxes) - len(kept)


def _blocks(boxes: list[PageBox]) -> list[Block]:
    """Make headings of short lines in large letters; join lines, and paragraphs that go on in the next column."""
    sizes: Counter[float] = Counter()
    for box in boxes:
        sizes[box.size] += len(box.text)
    usual = sizes.most_common(1)[0][0] if sizes else 0
    larger = sorted({box.size for box in boxes if box.size >= HEADING_SIZE * usual}, reverse=True)
    texts, levels = [], []
    for box in boxes:
        is_heading = box.size in larger and len(box.text) <= HEAD_CHARACTERS
        texts.append(box.text)
        levels.append(min(larger.index(box.size) + 1, 6) if is_heading else 0)
    wrapping = Wrapping.of(texts, divides=True, narrowest=NARROWEST_COLUMN)
    joined = [wrapping.joined(text) for text in texts]
    blocks: list[Block] = []
    for text, level in zip(joined, levels, strict=True):
        last = blocks[-1] if blocks else None
        if last is not None and not last.level and not level and _goes_on(last.text, text):
            divided = last.text.endswith("-") and last.text[-2:-1].isalpha()
            blocks[-1] = Block(last.text[:-1] + text if divided else f"{last.text} {text}")
        else:
            blocks.append(Block(text, level))
    return filled_blocks(blocks)


def _goes_on(before: str, after: str) -> bool:
    """Return True if a paragraph goes on in the next column or on the next page."""
    return not _SENTENCE_END.search(before) and after[:1].islower() and len(before.split()) > 3
