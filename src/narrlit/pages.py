"""Self-contained HTML files: Bokeh plots, templates, and a content security policy.

Templates extend page.html, which contains the head, the shared style and the footer.
"""

import json
import posixpath
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from narrlit import __version__
from narrlit.files import encodable
from narrlit.optional import require

PAGE = Path(__file__).with_name("page")
"""HTML, style, texts and modules of the page, which the server sends and files contain."""
IMPORT = re.compile(r'^import \{(?P<names>[^}]*)\} from "(?P<path>[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?P<kind>async function|function|class|const) (?P<name>\w+)", re.MULTILINE)
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
"""Color-blind safe palette of Okabe and Ito (2008)."""
INK, GRAY = "#1f2328", "#8c959f"
"""Colors of text and axes."""
THEME = {
    "Plot": {"outline_line_color": None},
    "Axis": {
        **dict.fromkeys(("axis_label_text_font", "major_label_text_font"), "system-ui, sans-serif"),
        **dict.fromkeys(("axis_label_text_color", "major_label_text_color"), INK),
        **dict.fromkeys(("axis_line_color", "major_tick_line_color"), GRAY),
        **dict.fromkeys(("axis_label_text_font_size", "major_label_text_font_size"), "12px"),
        "axis_label_text_font_style": "normal",
        "minor_tick_line_color": None,
    },
    "Grid": {"grid_line_color": "#eaeef2"},
}


def bokeh_parts(
    plots: Mapping[str, object], extra: str = "report", components: Sequence[str] = ("bokeh",)
) -> tuple[list[str], dict[str, Any]]:
    """Convert Bokeh plots to scripts and HTML elements.

    Args:
        plots: plots by name.
        extra: extra of narrlit that installs Bokeh, for the error message.
        components: components of BokehJS that the plots need.

    Returns:
        The scripts, and the `div` element of each plot by name.

    Raises:
        MissingExtraError: if Bokeh is not installed.
    """
    require("bokeh", extra)
    from bokeh import embed
    from bokeh.resources import Resources
    from bokeh.themes import Theme

    script, divisions = embed.components(plots, theme=Theme(json={"attrs": THEME}))
    library = "\n".join(Resources("inline", components=list(components), log_level="warn").js_raw)
    drawing = script.partition(">")[2].rpartition("</script>")[0]
    marked = {name: Markup(division) for name, division in divisions.items()}  # noqa: S704 (contains only ids)
    return [library, drawing], marked


def render_page(template: Path, scripts: Sequence[str], **values: object) -> str:
    """Render a template that extends page.html.

    Args:
        template: name of the Jinja file, in which values are escaped.
        scripts: JavaScript that may run, in order; texts of stories in it must be escaped (Bokeh does this).
        **values: values of the template, including `title` for page.html.

    Returns:
        HTML that makes no requests and runs no other scripts.
    """
    loader = FileSystemLoader([template.parent, Path(__file__).parent])
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    scripts = [encodable(script) for script in scripts]
    page = environment.get_template(template.name).render(
        values,
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (as the caller promises)
        digests=list(map(_digest, scripts)),
        made=f"narrlit {__version__}, {datetime.now(UTC).date()}",
    )
    return encodable(page)


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
    data = json.dumps({"made": made, "texts": texts, **carried}, ensure_ascii=False, allow_nan=False)
    script = f"{bundle('file.js')}"
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
