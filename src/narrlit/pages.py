"""HTML files that need no network: plots of Bokeh, templates, and a content security policy.

A template extends page.html, which holds the head, the shared style and the footer, and fills its blocks.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from narrlit import __version__
from narrlit.files import encodable
from narrlit.optional import require

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
"""Colors that color-blind readers can tell apart, after Okabe and Ito (2008)."""
INK, GRAY = "#1f2328", "#8c959f"
"""Colors of text and of axes."""
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
    plots: Mapping[str, Any], extra: str = "report", components: Sequence[str] = ("bokeh",)
) -> tuple[list[str], dict[str, Any]]:
    """Draw Bokeh's plots for a page.

    Args:
        plots: by name.
        extra: the extra of narrlit that installs Bokeh, for a message.
        components: parts of BokehJS that the plots need.

    Returns:
        Scripts, and the plots' divisions by name.

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
    marked = {name: Markup(division) for name, division in divisions.items()}  # noqa: S704 (holds ids alone)
    return [library, drawing], marked


def render_page(template: Path, scripts: Sequence[str], **values: Any) -> str:
    """Fill a template that extends page.html.

    Args:
        template: Jinja file; values are escaped in it.
        scripts: JavaScript that may run, in its order; texts of stories in it must be escaped (Bokeh does).
        values: of the template; page.html shows `title`.

    Returns:
        HTML that makes no request and runs no script but these.
    """
    loader = FileSystemLoader([template.parent, Path(__file__).parent])
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    scripts = [encodable(script) for script in scripts]
    digests = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    page = environment.get_template(template.name).render(
        values,
        scripts=[Markup(script) for script in scripts],  # noqa: S704 (as the caller promises)
        digests=digests,
        made=f"narrlit {__version__}, {datetime.now(UTC).date()}",
    )
    return encodable(page)
