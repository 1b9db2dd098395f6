"""Files that a server answers with."""

from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from fastapi import Response

from narrlit.errors import NarrlitError

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "graphml": "application/graphml+xml; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
    "bib": "application/x-bibtex; charset=utf-8",
    "ris": "application/x-research-info-systems; charset=utf-8",
    "csl.json": "application/vnd.citationstyles.csl+json; charset=utf-8",
    "palladio.csv": "text/csv; charset=utf-8",
    "xml": "application/tei+xml; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
}
"""Media types by the suffix of the file."""


def content_of(write: Callable[[Path], object], suffix: str) -> bytes:
    """Return what a function writes to a file.

    Args:
        write: writes to the path that it is given.
        suffix: suffix of the path, without its dot.

    Raises:
        NarrlitError: as the function does, with the name of the file instead of its path.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, f"stories.{suffix}")
        try:
            write(path)
        except NarrlitError as error:
            error.values["path"] = path.name
            raise
        content = path.read_bytes()
        return BOM_UTF8 + content if suffix == "csv" else content  # without it, Excel reads another encoding


def file_answer(content: bytes, name: str, suffix: str) -> Response:
    """Answer with a file that a browser saves, and never opens in the page.

    Args:
        content: content of the file.
        name: name of the file without its suffix.
        suffix: its suffix, without the dot.
    """
    file_name = quote(f"{name}.{suffix}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{file_name}"}
    return Response(content, media_type=MEDIA_TYPES[suffix], headers=headers)
