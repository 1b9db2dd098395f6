"""A map of stories as an HTML page, and as an SVG drawing for an article."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from narrlit.data.schema import IntArray
from narrlit.errors import printable
from narrlit.explore.agreement import Agreement
from narrlit.explore.story_map import Links, StoryMap, Tree
from narrlit.optional import require
from narrlit.pages import GRAY, INK, bokeh_parts, render_page

PALETTE = ("#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499")
"""Colors that color-blind readers can tell apart, after Paul Tol's scheme "muted"."""
NONE = "#bbbbbb"
SEQUENCE = ("#440154", "#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725")
HEAT = ("#ffffff", "#deebf7", "#9ecae1", "#4292c6", "#08519c", "#08306b")
CHARACTERS = 5_000_000
"""Characters of all texts in a page, which is then 10 MB at most."""
ROW_HEIGHTS = (13, 24)
TOOLTIP = """<div style="width: min(320px, 60vw); white-space: normal; font: 12px/1.4 system-ui, sans-serif">
<b>@title</b><br>@beginning</div>"""


def map_page(
    story_map: StoryMap,
    title: str,
    facts: Sequence[tuple[str, str]],
    agreement: Agreement | None = None,
    sentences: Sequence[Sequence[str]] | None = None,
    links: Links | None = None,
) -> str:
    """Write the map of N stories as a page.

    Args:
        story_map: the map.
        title: of the page.
        facts: names and sentences at its head: model, stories, words read, languages, accuracy.
        agreement: with a column, which then colors the map first.
        sentences: of each story, where passages are linked.
        links: of pairs of stories.

    Raises:
        MissingExtraError: if a plane is to be drawn and Bokeh is not installed.
    """
    import pandas as pd

    frame, links, n = story_map.frame, links or {}, len(story_map.frame)
    limit = CHARACTERS // n
    texts = [_beginning(parts, limit) for parts in (sentences or [[text] for text in frame["text"]])]
    # A column that differs in every story, such as a file name, colors nothing.
    metadata = [
        name
        for name in frame.columns[3:]
        if frame[name].astype(str).nunique() < n
        or pd.to_numeric(frame[name], errors="coerce").notna().sum() >= frame[name].astype(bool).sum()
    ]
    columns: list[dict[str, Any]] = [{"name": "groups", "values": [], "groups": True}]
    columns += [{"name": name, "values": [_plain(value) for value in frame[name]]} for name in metadata]
    for column in columns:
        column["first"] = agreement is not None and column["name"] == agreement.column
    stories = zip(frame["id"], frame["title"], story_map.labels, texts, strict=True)
    data: dict[str, Any] = {
        "stories": [dict(zip(("id", "title", "label", "text"), story, strict=True)) for story in stories],
        "columns": columns,
        "groups": story_map.groups.tolist(),
        "near": story_map.neighbors.tolist(),
        "similarity": story_map.similarities.round(3).astype(float).tolist(),
        "links": {f"{i}-{j}": [(s, t, round(x, 2)) for s, t, x in each] for (i, j), each in links.items() if each},
        "colors": [PALETTE[group % len(PALETTE)] for group in range(len(story_map.names))],
    } | {"palette": PALETTE, "none": NONE, "sequence": SEQUENCE, "heat": HEAT}
    scripts, division = list[str](), None
    tree = story_map.arrangement.tree
    if tree is not None:
        data |= _tree(tree, story_map.groups)
    else:
        data["names"] = _group_places(story_map)
        scripts, divisions = bokeh_parts({"map": _plot(story_map)}, "explore", ("bokeh",))
        division = divisions["map"]
    here = Path(__file__)
    for name in ("map_page", "map_dendrogram" if division is None else "map_plane"):
        scripts.append(here.with_name(f"{name}.js").read_text(encoding="utf-8"))
    return render_page(
        here.with_suffix(".html"),
        scripts,
        title=title,
        map=story_map,
        facts=facts,
        data=data,
        division=division,
        row=int(np.clip(620 / n, *ROW_HEIGHTS)),
        agreement=agreement,
        shown=limit if frame["text"].str.len().max() > limit else None,
    )


def _beginning(parts: Sequence[str], limit: int) -> list[str]:
    """Take sentences up to a number of characters; one that is too long is cut."""
    ends = np.cumsum([len(part) for part in parts])
    whole = int((ends <= limit).sum())
    return [*parts[:whole], *([printable(parts[whole], limit)] if whole == 0 and limit > 0 else [])]


def _plain(value: Any) -> Any:
    """Convert a value of a column for JSON and for readers."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        number = float(value)
        return "" if not np.isfinite(number) else int(number) if number.is_integer() else number
    return "" if value is None else printable(value, 60)


def _tree(tree: Tree, groups: IntArray) -> dict[str, Any]:
    """Order of the leaves, joins of the tree and similarities, in thousandths, of all pairs."""
    from scipy.cluster.hierarchy import dendrogram

    drawn = dendrogram(tree.linkage, no_plot=True)
    order = drawn["leaves"]
    joins = []
    for places, (left, top, _, right) in zip(drawn["icoord"], drawn["dcoord"], strict=True):
        low, high = ((place - 5) / 10 for place in (places[0], places[3]))
        group = {int(groups[order[int(place)]]) for place in (low, high)}
        # A join is inside a group if what it joins is.
        joins.append(
            [round(left, 4), round(top, 4), round(right, 4), low, high, group.pop() if len(group) == 1 else -1]
        )
    thousandths = np.rint(1000 * tree.similarities).astype(int)
    return {"order": order, "tree": joins, "top": round(tree.top, 4), "similarities": thousandths.tolist()}


def _group_places(story_map: StoryMap) -> list[dict[str, Any]]:
    """Names of groups at the medians of their points, the largest group first."""
    points, groups = np.asarray(story_map.arrangement.points), story_map.groups
    sizes = np.bincount(groups[groups >= 0], minlength=len(story_map.names))
    order = np.argsort(-sizes, kind="stable")
    medians = {group: np.median(points[groups == group], axis=0).round(4).tolist() for group in order}
    return [{"x": medians[g][0], "y": medians[g][1], "name": story_map.names[g]} for g in order]


def _plot(story_map: StoryMap) -> Any:
    """Draw the stories as points; the page's script sets colors, texts and selection."""
    require("bokeh", "explore")
    from bokeh.core.properties import value
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure

    points, n = np.asarray(story_map.arrangement.points, dtype=np.float32), len(story_map.frame)
    plot = figure(
        height=620,
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset",
        active_scroll="wheel_zoom",
    )
    plot.toolbar.logo = None
    plot.axis.visible = plot.grid.visible = False
    lines = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1")}, name="lines")
    plot.segment("x0", "y0", "x1", "y1", source=lines, color=INK, line_alpha=0.6)
    source = ColumnDataSource({"x": points[:, 0], "y": points[:, 1], "color": [NONE] * n}, name="points")
    size = float(np.clip(180 / np.sqrt(n), 4, 9))
    shown = plot.scatter("x", "y", source=source, color="color", size=size, fill_alpha=0.8, line_color=None)
    plot.x_range.renderers = plot.y_range.renderers = [shown]
    ring = ColumnDataSource({"x": [], "y": []}, name="ring")
    plot.scatter("x", "y", source=ring, size=size + 8, fill_color=None, line_color=INK, line_width=2.5)
    places = _group_places(story_map)
    labels = {name: [place[name] for place in places] for name in ("x", "y")} | {"text": [""] * len(places)}
    style = {"text_font": value("system-ui, sans-serif"), "text_font_size": "13px", "text_color": INK}
    style |= {"text_align": "center", "text_baseline": "middle", "text_font_style": "bold"}
    background = {"background_fill_color": "white", "background_fill_alpha": 0.75, "padding": 2}
    plot.text("x", "y", "text", source=ColumnDataSource(labels, name="names"), **style, **background)
    plot.add_tools(HoverTool(renderers=[shown], tooltips=TOOLTIP, point_policy="snap_to_data"))
    return plot


def write_svg(story_map: StoryMap, path: Path) -> None:
    """Write the map as a drawing: a dendrogram with titles, or points with the numbers and names of groups.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    require("matplotlib", "explore")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    colors = [PALETTE[group % len(PALETTE)] for group in range(len(story_map.names))]
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "narrlit", "font.size": 9}):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        axes.spines[["left", "right", "top"]].set_visible(False)
        tree = story_map.arrangement.tree
        if tree is not None:
            _draw_tree(axes, story_map, tree, colors)
        else:
            _draw_points(axes, story_map, colors)
        figure.savefig(path, metadata={"Date": None})


def _draw_tree(axes: Any, story_map: StoryMap, tree: Tree, colors: Sequence[str]) -> None:
    from matplotlib.collections import LineCollection

    drawn = _tree(tree, story_map.groups)
    lines, shades = [], []
    for left, top, right, low, high, group in drawn["tree"]:
        lines.append([(left, low), (top, low), (top, high), (right, high)])
        shades.append(colors[group] if group >= 0 else GRAY)
    axes.add_collection(LineCollection(lines, colors=shades))
    n = len(story_map.labels)
    axes.figure.set_size_inches(7, max(2, 0.2 * n + 0.6))
    axes.set(
        ylim=(n - 0.5, -0.5),
        xlim=(max(1e-3, *(1.02 * join[1] for join in drawn["tree"])), 0),
        xlabel=f"similarity ({story_map.measure})",
    )
    axes.xaxis.set_major_formatter(lambda distance, _: f"{tree.top - distance:.2f}")
    axes.yaxis.tick_right()
    axes.set_yticks(range(n), [story_map.labels[story] for story in drawn["order"]])
    axes.tick_params("y", length=0)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)


def _draw_points(axes: Any, story_map: StoryMap, colors: Sequence[str]) -> None:
    points, groups = np.asarray(story_map.arrangement.points), story_map.groups
    axes.figure.set_size_inches(10, 6)
    n = len(points)
    shades = [colors[group] if group >= 0 else NONE for group in groups]
    axes.scatter(*points.T, s=np.clip(8000 / n, 2, 16), c=shades, linewidths=0, rasterized=n > 2000)
    axes.set_axis_off()
    axes.set_aspect("equal")
    handles = []
    for group, name in enumerate(story_map.names):
        x, y = np.median(points[groups == group], axis=0)
        box = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": colors[group]}
        axes.text(x, y, str(group + 1), ha="center", va="center", fontsize=7, bbox=box)
        handles.append(axes.scatter([], [], c=colors[group], label=f"{group + 1} {name}", linewidths=0))
    if handles:
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
