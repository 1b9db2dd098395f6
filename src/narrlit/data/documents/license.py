"""License and header of Project Gutenberg, which make texts alike that have nothing else in common."""

import re
from collections.abc import Sequence
from dataclasses import replace

from narrlit.data.documents.document import Block, DocumentText
from narrlit.data.row_file import ReadingNote

BEGIN = re.compile(
    r"^[ \t]*\*{2,}[ \t]*START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]*(?:\n(?![ \t]*\n)[^\n]*\*\*\*[ \t]*$)?"
    r"|^[^\n]*\*END[ *]*THE SMALL PRINT[^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
END = re.compile(
    r"^[ \t]*\**[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG[^\n]*"
    r"|^[ \t]*End of (?:the |this )?Project Gutenberg[^\n]*"
    r"|^[ \t]*\**[ \t]*START:? (?:FULL )?LICENSE[^\n]*"
    r"|^[ \t]*THE FULL PROJECT GUTENBERG(?:-tm|™)? LICENSE[^\n]*"
    r"|^[ \t]*Section 1\. +General Terms of Use and Redistributing Project[^\n]*"
    r"|^[ \t]*Updated editions will replace the previous one[^\n]*"
    r"|^[ \t]*This and all associated files of various formats will be found in[^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
_FIELD = re.compile(r"^[ \t]*(Title|Author|Language|Release Date|Translator): *(.+)", re.MULTILINE)
_COLUMNS = {"Author": "author", "Translator": "translator"}
_CREDIT = re.compile(
    r"(?:Produced by|E-?text prepared by|This e-?(?:book|text) was (?:produced|prepared)|Transcribed (?:by|from)"
    r"|Project Gutenberg)\b[^\n]*(?:\n[^\n]+)*|\[Illustration[^\]]*\]",
    re.IGNORECASE,
)


def without_license(document: DocumentText) -> DocumentText:
    """Leave out what Project Gutenberg puts before and after a text, and take title and author from it."""
    blocks = document.blocks
    begin, fields = _after_header(blocks)
    end = begin
    while end < len(blocks) and not END.match(blocks[end].text):
        end += 1
    if begin == 0 and end == len(blocks):
        return document
    while begin < end and _CREDIT.fullmatch(blocks[begin].text):
        begin += 1
    rest = [block for block in blocks[begin:end] if not _CREDIT.fullmatch(block.text) or block.level]
    columns = {column: fields[name] for name, column in _COLUMNS.items() if name in fields}
    return replace(
        document,
        blocks=rest,
        title=document.title or fields.get("Title"),
        columns={**columns, **document.columns},
        notes=[*document.notes, ReadingNote.of("left_out_license")],
    )


def divided_at_marks(text: str) -> str:
    """Put blank lines around the lines that mark the beginning and the end of a text of Project Gutenberg."""
    for mark in (BEGIN, END):
        text = mark.sub(lambda match: f"\n\n{match[0]}\n\n", text)
    return text


def _after_header(blocks: Sequence[Block]) -> tuple[int, dict[str, str]]:
    """Return the number of the first block after the header, and what the header states; 0 if there is no header."""
    marks = [number for number, block in enumerate(blocks) if BEGIN.search(block.text)]
    if not marks:
        return 0, {}
    header = "\n".join(block.text for block in blocks[: marks[-1]])
    return marks[-1] + 1, {name: value.strip() for name, value in _FIELD.findall(header)}
