"""Plain text and Markdown as documents."""

import re
from itertools import pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from narrlit.data.documents.document import Block, DocumentText, filled_blocks
from narrlit.data.documents.license import divided_at_marks, without_license
from narrlit.data.documents.lines import Wrapping, without_heads
from narrlit.data.row_file import ReadingNote
from narrlit.preprocessing.words import WORD, num_words

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*?(?=[^\S\n]*\S)")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]")
_FOOTNOTE_TEXT = re.compile(r"^\[\^[^\]\s]+\]:[^\n]*(?:\n(?:[ \t]+[^\n]*|[^\S\n]*(?=\n[ \t])))*\n?", re.MULTILINE)
TITLE_CHARACTERS, TITLE_WORDS = 60, 8
"""Most characters and words of a line that may be a title."""
WORDS_AFTER_TITLE = 60
"""Words after a title at least."""


def looks_like_title(block: str) -> bool:
    """Return True for a short line that begins and ends like a title.

    >>> looks_like_title("The Fox and the Grapes"), looks_like_title("He came home."), looks_like_title("said he")
    (True, False, False)
    """
    line = block.lstrip("# ")
    if not line or "\n" in line:
        return False
    is_short = len(line) <= TITLE_CHARACTERS and num_words(line) <= TITLE_WORDS
    has_case = line[0].lower() != line[0].upper()
    begins_like_title = line[0].isupper() or (line[0].isalnum() and not has_case)
    return is_short and begins_like_title and WORD.match(line[-1]) is not None


def read_plain_text(text: str) -> DocumentText:
    """Read the paragraphs of a text file; a first line that looks like a title is its heading."""
    notes = []
    lines, heads = without_heads(text.replace("\f", "\n").split("\n"))
    if heads:
        notes.append(ReadingNote.of("left_out_heads", n=heads))
    document = without_license(DocumentText([Block(text) for text in paragraphs(divided_at_marks("\n".join(lines)))]))
    joined, was_wrapped = joined_paragraphs([block.text for block in document.blocks])
    blocks = filled_blocks(map(Block, joined))
    if was_wrapped:
        notes.append(ReadingNote.of("joined_lines"))
    words_after = sum(num_words(block.text) for block in blocks[1:4])
    if blocks and looks_like_title(blocks[0].text) and words_after >= WORDS_AFTER_TITLE:
        blocks[0] = Block(blocks[0].text, level=1)
    return DocumentText(blocks, document.title, document.columns, [*document.notes, *notes])


def paragraphs(text: str) -> list[str]:
    r"""Divide a text at blank lines, and at lines that are indented where most are not.

    >>> paragraphs("   One day a king\nfell ill.\n   He died.\nHis end.\n\nA poem")
    ['   One day a king\nfell ill.', '   He died.\nHis end.', 'A poem']
    """
    divided = []
    for paragraph in filter(str.strip, _BLANK_LINES.split(text)):
        lines = [line.rstrip() for line in paragraph.strip("\n").split("\n")]
        starts = [number for number, line in enumerate(lines) if re.match(r"[ \t　]{2,}\S|　\S", line)]
        if not starts or 2 * len(starts) > len(lines) or len(lines) < 4:
            divided.append("\n".join(lines))
            continue
        cuts = sorted({0, *starts, len(lines)})
        divided += ["\n".join(lines[start:end]) for start, end in pairwise(cuts)]
    return divided


def joined_paragraphs(texts: list[str]) -> tuple[list[str], bool]:
    """Join the lines of paragraphs where a program broke them; also return True if there was one."""
    wrapping = Wrapping.of(texts)
    joined = [wrapping.joined(text) for text in texts]
    was_wrapped = any(new.count("\n") < old.count("\n") for new, old in zip(joined, texts, strict=True))
    return joined, was_wrapped


# Markdown ------------------------------------------------------------------------------------------------------------


def read_markdown(text: str) -> DocumentText:
    """Read Markdown as plain text; its front matter gives title and columns, footnotes are left out."""
    match = _FRONT_MATTER.match(text)
    columns = _front_matter(match[1]) if match else {}
    if match:
        text = text[match.end() :]
    text, footnotes = _FOOTNOTE_TEXT.subn("", text)
    text = _FOOTNOTE.sub("", text)
    notes = [ReadingNote.of("left_out_footnotes", n=footnotes)] if footnotes else []
    title = columns.pop("title", None)
    blocks = _markdown_blocks(divided_at_marks(text))
    joined, _ = joined_paragraphs([block.text for block in blocks])
    blocks = filled_blocks(Block(new, block.level) for new, block in zip(joined, blocks, strict=True))
    return without_license(DocumentText(blocks, None if title is None else str(title), columns, notes))


def _front_matter(text: str) -> dict[str, object]:
    """Read the front matter of a Markdown file; none of it if it is no YAML mapping."""
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    if not isinstance(values, dict):
        return {}
    columns: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, list):
            columns[str(name)] = ", ".join(map(str, value))
        elif value is not None and not isinstance(value, dict):
            columns[str(name)] = value if isinstance(value, str | int | float) else str(value)
    columns.pop("text", None)
    return columns


def _markdown_blocks(text: str) -> list[Block]:
    """Return the headings and paragraphs of Markdown, with the lines of paragraphs as they are."""
    blocks = []
    level = 0
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "inline":
            blocks.append(Block(_inline_text(token), level))
            level = 0
        elif token.type in ("code_block", "fence"):
            blocks.append(Block(token.content))
    return blocks


def _inline_text(token: Token) -> str:
    """Return the text of a paragraph without marks, links and pictures."""
    parts = []
    children: list[Any] = token.children or []
    for child in children:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "".join(parts)
