"""Documents of every format."""

from collections.abc import Callable
from pathlib import Path

from narrlit.data.decoding import decoded
from narrlit.data.documents.archives import read_docx, read_epub, read_odt
from narrlit.data.documents.document import DocumentText
from narrlit.data.documents.html_text import read_html
from narrlit.data.documents.pdf import read_pdf
from narrlit.data.documents.plain_text import read_markdown, read_plain_text
from narrlit.data.documents.tei import is_tei, read_tei
from narrlit.data.row_file import STANDARD_INPUT, TEXT_SUFFIXES, ReadingNote
from narrlit.errors import DataError, reading
from narrlit.optional import require

READERS: dict[str, Callable[[bytes], DocumentText]] = {
    ".docx": read_docx,
    ".epub": read_epub,
    ".pdf": read_pdf,
    ".odt": read_odt,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".xml": read_tei,
}
"""Readers of documents by suffix, but of .rtf, whose text is plain."""


def read_document(path: Path, content: bytes, notes: list[ReadingNote]) -> DocumentText:
    """Read a text file or document by its suffix, and note what is left out.

    Raises:
        DataError: if it is damaged or has no text.
    """
    suffix = ".txt" if path in STANDARD_INPUT else path.suffix.lower()
    if suffix in TEXT_SUFFIXES:
        text = decoded(path, content, notes).replace("\r\n", "\n").replace("\r", "\n")
        if not text.strip():
            raise DataError("empty_file", path=path)
        document = read_markdown(text) if suffix == ".md" else read_plain_text(text)
    elif suffix == ".rtf":
        striprtf = require("striprtf.striprtf", "documents")
        with reading("broken_document", path):
            text = striprtf.rtf_to_text(content.decode("cp1252", "replace"))
        document = read_plain_text(text.replace("\n", "\n\n"))  # a paragraph a line
    else:
        if suffix == ".xml" and not is_tei(content):
            raise DataError("not_tei", path=path)
        with reading("broken_document", path):
            document = READERS[suffix](content)
    if not document.blocks:
        raise DataError("no_text_inside", path=path)
    notes += document.notes
    return document
