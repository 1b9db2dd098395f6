"""TEI XML as documents."""

from typing import Any

from narrlit.data.documents.archives import left_out_footnotes, xml
from narrlit.data.documents.document import Block, DocumentText, filled_blocks
from narrlit.data.documents.html_text import local_name

LEFT_OUT = {
    *("note", "fw", "figure", "figdesc", "index", "teiheader", "del", "sic", "orig", "abbr", "rdg", "gap", "castlist")
}
"""Elements that are no text: notes, running heads, pictures, and what an editor has replaced."""
DIVISIONS = ("div", "div1", "div2", "div3", "div4", "group", "text", "body", "front", "back")
BLOCKS = ("p", "ab", "lg", "l", "head", "sp", "speaker", "stage", "item", "cell", "row", "opener", "closer", "signed")


def is_tei(content: bytes) -> bool:
    """Return True if XML is TEI."""
    return b"<TEI" in content[:5000] or b":TEI" in content[:5000]


def read_tei(content: bytes) -> DocumentText:
    """Read the text of a TEI document; its header gives title, author and date."""
    root = xml(content)
    header = _first(root, "teiHeader")
    columns: dict[str, object] = {}
    title = None
    if header is not None:
        statement = _first(header, "titleStmt")
        title = _text(_main_title(statement)) if statement is not None else None
        author = _first(statement, "author") if statement is not None else None
        if author is not None and _text(author):
            columns["author"] = _text(author)
        date = _date(header)
        if date:
            columns["date"] = date
    text = _first(root, "text")
    notes = sum(local_name(element) == "note" for element in text.iter()) if text is not None else 0
    blocks: list[Block] = []
    if text is not None:
        _collect(text, blocks, 0)
    return DocumentText(filled_blocks(blocks), title or None, columns, left_out_footnotes(notes))


def _first(root: Any, name: str) -> Any:
    return next((element for element in root.iter() if local_name(element) == name.lower()), None)


def _main_title(statement: Any) -> Any:
    """Return the main title of a title statement."""
    titles = [element for element in statement if local_name(element) == "title"]
    main = [title for title in titles if title.get("type") == "main"]
    return (main or titles or [None])[0]


def _date(header: Any) -> str:
    """Return the date of the source or, without one, of the publication."""
    for name in ("sourceDesc", "publicationStmt"):
        statement = _first(header, name)
        dates = [] if statement is None else [element for element in statement.iter() if local_name(element) == "date"]
        for date in dates:
            value = str(date.get("when") or _text(date))
            if value:
                return value
    return ""


def _text(element: Any) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())


def _collect(element: Any, blocks: list[Block], depth: int) -> None:
    """Add the headings and paragraphs below an element; the level of a heading is the depth of its division."""
    for child in element:
        name = local_name(child)
        if not name or name in LEFT_OUT:
            continue
        if name in ("front", "back") and not _has_paragraph(child):
            continue
        if name in DIVISIONS:
            _collect(child, blocks, depth + name.startswith("div"))
        elif name == "head":
            blocks.append(Block(_flat(child), max(depth, 1)))
        elif name == "lg" and not _children(child, "lg"):
            blocks += [Block(_flat(head), depth + 1) for head in _children(child, "head")]
            blocks.append(Block("\n".join(_flat(line) for line in _children(child, "l"))))
        elif name in BLOCKS and not any(local_name(inner) in BLOCKS for inner in child.iterdescendants()):
            blocks.append(Block(_flat(child)))
        else:
            if child.text and child.text.strip() and name in BLOCKS:
                blocks.append(Block(" ".join(child.text.split())))
            _collect(child, blocks, depth)


def _children(element: Any, name: str) -> list[Any]:
    return [child for child in element if local_name(child) == name]


def _has_paragraph(element: Any) -> bool:
    return any(local_name(inner) in ("p", "l") for inner in element.iter())


def _flat(element: Any) -> str:
    """Return the text of an element in one line, but with its line breaks in verse, without what is left out."""
    parts: list[str] = []

    def add(node: Any) -> None:
        parts.append(node.text or "")
        for child in node:
            name = local_name(child)
            if name in ("lb", "pb", "cb"):
                parts.append("" if child.get("break") == "no" else " ")
            elif name and name not in LEFT_OUT:
                add(child)
            parts.append(child.tail or "")

    add(element)
    return " ".join("".join(parts).split())
