"""Documents that are archives of XML: Word, OpenDocument and EPUB."""

import io
import posixpath
import re
import zipfile
from typing import Any
from urllib.parse import unquote

from narrlit.data.documents.document import Block, DocumentText, filled_blocks
from narrlit.data.documents.html_text import html_blocks, local_name, parsed
from narrlit.data.documents.license import without_license
from narrlit.data.row_file import ReadingNote
from narrlit.optional import require

_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"
_TEMPLATE_TITLE = re.compile(
    r"|untitled.*|(?:word )?document ?\d*|dokument ?\d*|microsoft word - .*|.*\.(?:docx?|odt|rtf|pdf|tex|indd|qxd|dvi)",
    re.IGNORECASE,
)


def xml(content: bytes) -> Any:
    """Parse XML without fetching anything."""
    etree = require("lxml.etree", "documents")
    return etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))


def stated_title(title: str | None) -> str | None:
    """Return a title from a document's properties; None if a program has made it up."""
    text = " ".join((title or "").split())
    return None if _TEMPLATE_TITLE.fullmatch(text) else text


def properties(tree: Any) -> dict[str, str]:
    """Return the first title, creator and date of a document's properties."""
    values: dict[str, str] = {}
    for element in tree.iter() if tree is not None else ():
        text = " ".join("".join(element.itertext()).split()) if isinstance(element.tag, str) else ""
        if text and local_name(element) in ("title", "creator", "date", "language"):
            values.setdefault(local_name(element), text)
    return values


def left_out_footnotes(number: int) -> list[ReadingNote]:
    """Note that footnotes are left out, if there are any."""
    return [ReadingNote.of("left_out_footnotes", n=number)] if number else []


def titled(blocks: list[Block], title: str | None) -> str | None:
    """Return a title of the properties, unless the document begins with a heading."""
    return None if blocks and blocks[0].level else stated_title(title)


# Word ----------------------------------------------------------------------------------------------------------------


def read_docx(content: bytes) -> DocumentText:
    """Read a document of Word; footnotes, comments and pictures are left out."""
    mammoth = require("mammoth", "documents")
    ignored = mammoth.images.img_element(lambda _: {})
    result = mammoth.convert_to_html(io.BytesIO(content), convert_image=ignored, style_map=_STYLES)
    tree = parsed(result.value.encode())
    blocks, notes = html_blocks(tree) if tree is not None else ([], 0)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        core = "docProps/core.xml"
        stated = properties(xml(archive.read(core))) if core in archive.namelist() else {}
    return DocumentText(blocks, titled(blocks, stated.get("title")), notes=left_out_footnotes(notes))


# OpenDocument --------------------------------------------------------------------------------------------------------


def read_odt(content: bytes) -> DocumentText:
    """Read a document of LibreOffice; footnotes, comments and deleted text are left out."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = xml(archive.read("content.xml"))
        stated = properties(xml(archive.read("meta.xml"))) if "meta.xml" in archive.namelist() else {}
    notes = sum(1 for element in tree.iter() if local_name(element) == "note")
    body = next((element for element in tree.iter() if local_name(element) == "text" and _is_body(element)), tree)
    blocks = []
    for element in body.iter():
        if local_name(element) in ("h", "p") and not _is_inside_note(element):
            level = next((int(value) for name, value in element.items() if name.endswith("outline-level")), 1)
            style = next((value for name, value in element.items() if name.endswith("style-name")), "")
            is_heading = local_name(element) == "h" or style == "Title"
            blocks.append(Block("".join(_odt_texts(element)), level if is_heading else 0))
    blocks = filled_blocks(blocks)
    return DocumentText(blocks, titled(blocks, stated.get("title")), notes=left_out_footnotes(notes))


def _is_body(element: Any) -> bool:
    parent = element.getparent()
    return parent is not None and local_name(parent) == "body"


def _is_inside_note(element: Any) -> bool:
    hidden = ("note", "annotation", "tracked-changes", "table-of-content", "alphabetical-index", "illustration-index")
    return any(local_name(ancestor) in hidden for ancestor in element.iterancestors())


def _odt_texts(element: Any) -> list[str]:
    """Return the texts of a paragraph, with its spaces, tabs and line breaks."""
    texts = [(element.text or "").replace("\n", " ")]
    for child in element:
        name = local_name(child)
        if name == "line-break":
            texts.append("\n")
        elif name == "tab":
            texts.append("\t")
        elif name == "s":
            texts.append(" ")
        elif name not in ("note", "annotation", "note-citation", "h", "p", ""):
            texts += _odt_texts(child)
        texts.append((child.tail or "").replace("\n", " "))
    return texts


# EPUB ----------------------------------------------------------------------------------------------------------------


def read_epub(content: bytes) -> DocumentText:
    """Read a book in the order of its spine; contents, notes and license are left out."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = {name.casefold(): name for name in archive.namelist()}
        package_path = _package_path(archive, names)
        package = xml(archive.read(package_path))
        blocks: list[Block] = []
        notes = 0
        for path in _spine(package, package_path):
            name = names.get(path.casefold())
            tree = parsed(archive.read(name)) if name is not None else None
            if tree is not None:
                chapter, left_out = html_blocks(tree.find("body") if tree.find("body") is not None else tree)
                blocks += chapter
                notes += left_out
    metadata = next((element for element in package.iter() if local_name(element) == "metadata"), package)
    stated = properties(metadata)
    columns: dict[str, object] = {}
    for name, column in (("creator", "author"), ("date", "date")):
        if stated.get(name):
            columns[column] = stated[name]
    return without_license(DocumentText(blocks, stated_title(stated.get("title")), columns, left_out_footnotes(notes)))


def _package_path(archive: zipfile.ZipFile, names: dict[str, str]) -> str:
    """Return the path of a book's package document."""
    container = names.get("meta-inf/container.xml")
    if container is not None:
        for element in xml(archive.read(container)).iter():
            if local_name(element) == "rootfile" and element.get("full-path"):
                return names.get(unquote(element.get("full-path")).casefold(), str(element.get("full-path")))
    return next(name for name in archive.namelist() if name.lower().endswith(".opf"))


def _spine(package: Any, package_path: str) -> list[str]:
    """List the paths of a book's chapters in reading order, without contents; of all, if the order is missing."""
    items = {}
    contents = set()
    for element in package.iter():
        if local_name(element) == "item" and element.get("href"):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(package_path), unquote(element.get("href"))))
            items[element.get("id")] = path.partition("#")[0]
            if "nav" in (element.get("properties") or "").split():
                contents.add(element.get("id"))
    order = [element.get("idref") for element in package.iter() if local_name(element) == "itemref"]
    chapters = [items[id] for id in order if id in items and id not in contents]
    return chapters or [path for path in items.values() if path.lower().endswith(("html", "htm"))]
