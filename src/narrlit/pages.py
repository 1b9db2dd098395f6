"""The page as HTML files with their data, and as frames of notebooks."""

import json
import math
import posixpath
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from narrlit import __version__
from narrlit.files import encodable

PAGE = Path(__file__).with_name("page")
"""HTML, style, texts and modules of the page, which the server sends and files contain."""
IMPORT = re.compile(r'^import \{(?P<names>[^}]*)\} from "(?P<path>[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?P<kind>async function|function|class|const) (?P<name>\w+)", re.MULTILINE)


def page_file(title: str, carried: Mapping[str, object]) -> str:
    """Write the page as one HTML file, which carries its answers in place of a server.

    Args:
        title: title of the document.
        carried: data for JSON: `view` and `ids`, the address that is opened; `collection`, `answers` and whatever else
            `page/carried.js` reads.

    Returns:
        HTML that makes no requests. Its policy allows only its own script and style, by their SHA-256.
    """
    texts = json.loads((PAGE / "texts.json").read_text(encoding="utf-8"))
    for words in texts.values():
        for key in [key for key in words if key.startswith("problem.") and key != "problem.other"]:
            del words[key]  # answers of a server
    made = f"narrlit {__version__}, {datetime.now(UTC).date()}"
    data = json.dumps(_finite({"made": made, "texts": texts, **carried}), ensure_ascii=False, allow_nan=False)
    script = bundle("file.js")
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:"
    index = (PAGE / "index.html").read_text(encoding="utf-8")
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<title>{escape(title)}</title>\n'
    start, end = index.index("<title>"), index.index("</head>")
    body = index[end:].removesuffix("</body>\n</html>\n")
    # In JSON, < stands in strings only; written so, no text ends the element.
    carried_data = data.replace("<", "\\u003c")
    parts = [
        index[:start],
        head,
        f"<style>{style}</style>\n",
        body,
        f'<script type="application/json" id="carried">{carried_data}</script>\n',
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    return encodable("".join(parts))


def report_page(title: str, findings: Sequence[str] = (), sections: Sequence[Mapping[str, Any]] = ()) -> str:
    """Write findings and sections, as `page/views/report.js` draws them, as a page."""
    answers = {"report": {"title": title, "findings": findings, "sections": sections}}
    collection = {"name": "report", "stories": 0, "model": "", "measure": "", "columns": []}
    carried = {"view": "report", "ids": [], "collection": collection, "stories": [], "pairs": {}}
    return page_file(title, {**carried, "answers": answers})


def report_section(
    kind: str, tables: Mapping[str, Sequence[Mapping[str, object]]], **parts: object
) -> dict[str, object]:
    """Describe a section of a report: its kind, rows of tables by title, and other parts of it."""
    shown = []
    for title, rows in tables.items():
        shown.append((title, [{name: _cell(value) for name, value in row.items()} for row in rows]))
    empty: dict[str, object] = {"note": "", "key": [], "figures": [], "lines": [], "errors": []}
    return {**empty, **parts, "kind": kind, "tables": shown}


def _finite(value: Any) -> Any:
    """Replace numbers that JSON has not, NaN and infinities, by null."""
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: object) -> str | int | float | None:
    """Convert a cell to plain data for JSON."""
    return value if value is None or isinstance(value, (int, float)) else str(value)


def in_frame(page: str, height: int = 800) -> str:
    """Put a page into a frame of a notebook, `height` pixels high."""
    # Its addresses are those of the frame, not of the notebook.
    framed = page.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
    return f'<iframe srcdoc="{escape(framed)}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def bundle(entry: str) -> str:
    """Join a module of the page and those that it imports into one script, each after those that it needs.

    Args:
        entry: path of the module in `page/`.
    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in parts:
            return
        code = (PAGE / name).read_text(encoding="utf-8")
        lines = []
        for match in IMPORT.finditer(code):
            source = posixpath.normpath(posixpath.join(posixpath.dirname(name), match["path"]))
            add(source)
            lines.append(f'const {{{match["names"].replace(" as ", ": ")}}} = modules["{source}"];')
        exports = ", ".join(match["name"] for match in EXPORT.finditer(code))
        body = EXPORT.sub(r"\g<kind> \g<name>", IMPORT.sub("", code))
        parts[name] = "\n".join([f'modules["{name}"] = (() => {{', *lines, body, f"return {{ {exports} }};", "})();"])

    add(entry)
    return "\n".join(['"use strict";', "const modules = {};", *parts.values()])


def _digest(text: str) -> str:
    """Compute the SHA-256 of a script or style, as a content security policy lists it."""
    return f"sha256-{b64encode(sha256(encodable(text).encode()).digest()).decode()}"
