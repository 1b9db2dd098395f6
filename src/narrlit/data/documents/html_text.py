"""HTML and XHTML as documents, also those inside of books and converted from other formats."""

import re
from collections.abc import Iterator
from typing import Any

from narrlit.data.documents.document import Block, DocumentText, filled_blocks
from narrlit.data.documents.license import without_license
from narrlit.data.row_file import ReadingNote
from narrlit.optional import require

LEFT_OUT = ("script", "style", "noscript", "template", "head", "nav", "form", "button", "svg", "iframe", "rt", "rp")
"""Elements without text of the story."""
BLOCKS = (
    *(
        "p",
        "div",
        "section",
        "article",
        "main",
        "body",
        "blockquote",
        "li",
        "ul",
        "ol",
        "dl",
        "dt",
        "dd",
        "table",
        "tr",
    ),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "aside", "figure", "figcaption", "pre", "hr"),
    *("center", "thead", "tbody", "tfoot", "caption", "address", "details", "summary", "fieldset"),
)
NOTES = ("footnote", "footnotes", "endnote", "endnotes", "rearnote", "rearnotes", "doc-footnote", "doc-endnotes")
NOTE_MARKS = ("noteref", "doc-noteref")
FURNITURE = ("pagebreak", "doc-pagebreak", "toc", "doc-toc", "landmarks", "page-list", "doc-backlink")
"""Roles of elements (epub:type, role) that are no text of the story."""
_HEADING = re.compile("h([1-6])")
_NOTE_ID = re.compile(r"(?:foot|end)?notes?[-_]?(?:ref)?[-_]?\d+", re.IGNORECASE)
_MARK = re.compile(r"\s*[\[(]?\s*(?:\d{1,3}|[*†‡§]{1,3}|[a-z])\s*[\])]?\s*|\s*↑\s*")
_LINE_BREAK = "\u2028"


def read_html(content: bytes) -> DocumentText:
    """Read a page: its main part, if it has one, without navigation and notes."""
    tree = parsed(content)
    if tree is None:
        return DocumentText([])
    title = " ".join((tree.findtext(".//title") or tree.findtext(".//head/title") or "").split())
    columns: dict[str, object] = {}
    for name, value in (("author", _meta(tree, "author")), ("date", _meta(tree, "date"))):
        if value:
            columns[name] = value
    blocks, notes = html_blocks(_main_part(tree))
    begins_with_heading = bool(blocks) and blocks[0].level > 0
    return without_license(DocumentText(blocks, None if begins_with_heading else title or None, columns, _noted(notes)))


def _noted(notes: int) -> list[ReadingNote]:
    return [ReadingNote.of("left_out_footnotes", n=notes)] if notes else []


def parsed(content: bytes) -> Any:
    """Parse HTML or XHTML; None if it is empty."""
    html = require("lxml.html", "documents")
    if not content.strip():
        return None
    is_declared = re.search(rb"charset\s*=|<\?xml[^>]*encoding", content[:4096], re.IGNORECASE)
    parser = html.HTMLParser(encoding=None if is_declared or not _is_utf8(content) else "utf-8")
    return html.document_fromstring(content, parser=parser)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _meta(tree: Any, name: str) -> str:
    for meta in tree.iter("meta"):
        if (meta.get("name") or "").casefold() in (name, f"dc.{name}", f"dcterms.{name}"):
            return " ".join((meta.get("content") or "").split())
    return ""


def _main_part(tree: Any) -> Any:
    """Return the one main part or article of a page, or its body."""
    for name in ("main", "article"):
        parts = list(tree.iter(name))
        if len(parts) == 1:
            return parts[0]
    return tree.find("body") if tree.find("body") is not None else tree


def html_blocks(root: Any) -> tuple[list[Block], int]:
    """Return headings and paragraphs below an element, and the number of notes that are left out."""
    notes = sum(1 for element in root.iter() if is_note(element) and not any(map(is_note, element.iterancestors())))
    blocks: list[Block] = []
    open_text: list[str] = []
    for text, level in _pieces(root):
        if text is not None:
            open_text.append(text)
            continue
        blocks.append(_block(open_text, level))
        open_text = []
    blocks.append(_block(open_text, 0))
    return filled_blocks(blocks), notes


def _block(texts: list[str], level: int) -> Block:
    """Make a block of texts, in which white space counts as one space."""
    text = " ".join("".join(texts).replace(_LINE_BREAK, f" {_LINE_BREAK} ").split(" "))
    text = re.sub(r"[ \t\r\n]+", " ", text)
    return Block(re.sub(f" ?{_LINE_BREAK} ?", "\n", text).strip(), level)


def _pieces(element: Any) -> Iterator[tuple[str | None, int]]:
    """Yield texts and, as None, the ends of blocks with the level of their heading."""
    name = local_name(element)
    if not name or is_left_out(element):
        return
    is_block = name in BLOCKS
    heading = _HEADING.fullmatch(name)
    level = int(heading[1]) if heading else 0
    if is_block:
        yield None, 0
    if name == "br":
        yield _LINE_BREAK, 0
    if name in ("td", "th") and element.getprevious() is not None:
        yield "\u2003", 0
    text = element.text or ""
    yield (text.replace("\n", _LINE_BREAK) if name == "pre" else text), 0
    for child in element:
        yield from _pieces(child)
        tail = child.tail or ""
        yield (tail.replace("\n", _LINE_BREAK) if name == "pre" else tail), 0
    if is_block:
        yield None, level


def local_name(element: Any) -> str:
    """Return the name of an element without its namespace; empty for comments."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def roles(element: Any) -> set[str]:
    """Return the roles of an element in a book or page."""
    values = [element.get("{http://www.idpf.org/2007/ops}type"), element.get("epub:type"), element.get("role")]
    return {word for value in values if value for word in value.lower().split()}


def is_note(element: Any) -> bool:
    """Return True for a footnote or endnote."""
    if not isinstance(element.tag, str):
        return False
    if not roles(element).isdisjoint(NOTES):
        return True
    return local_name(element) == "li" and re.fullmatch(r"(?:foot|end)note-\d+", element.get("id") or "") is not None


def is_left_out(element: Any) -> bool:
    """Return True for an element that is not part of the story: navigation, notes, and links to notes."""
    if local_name(element) in LEFT_OUT or element.get("hidden") is not None or is_note(element):
        return True
    if not roles(element).isdisjoint((*FURNITURE, *NOTE_MARKS)) or "pg-boilerplate" in (element.get("class") or ""):
        return True
    text = "".join(element.itertext())
    if not _MARK.fullmatch(text):
        return False
    links = [link for link in element.iter() if local_name(link) == "a" and "#" in (link.get("href") or "")]
    if local_name(element) == "sup":
        return True
    return local_name(element) == "a" and bool(links) and ("[" in text or "↑" in text or _is_note_link(links[0]))


def _is_note_link(link: Any) -> bool:
    target = (link.get("href") or "").rpartition("#")[2]
    return _NOTE_ID.fullmatch(target) is not None or _NOTE_ID.fullmatch(link.get("id") or "") is not None
