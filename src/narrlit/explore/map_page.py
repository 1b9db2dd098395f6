"""Map of stories as an HTML page, and as an SVG drawing for an article."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import dendrogram

from narrlit.data.schema import IntArray
from narrlit.data.writers import is_exact
from narrlit.errors import printable
from narrlit.explore.agreement import Agreement
from narrlit.explore.story_map import Links, StoryMap, Tree
from narrlit.library.story_frame import metadata_columns
from narrlit.optional import require
from narrlit.pages import GRAY, INK, bokeh_parts, render_page

PALETTE = ("#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499")
"""Colors that color-blind readers can tell apart, after Paul Tol's scheme "muted"."""
NONE = "#bbbbbb"
"""Color of a story without a group or a value."""
SEQUENCE = ("#440154", "#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725")
"""Colors of numbers, by rank."""
HEAT = ("#ffffff", "#deebf7", "#9ecae1", "#4292c6", "#08519c", "#08306b")
"""Colors of similarities, lowest first."""
CHARACTERS = 5_000_000
"""Maximum number of characters of all texts in a page, which keeps it below 10 MB."""
ROW_HEIGHTS = (13, 24)
"""Minimum and maximum height of a story in a dendrogram, in pixels."""
TOOLTIP = """<div style="width: min(320px, 60vw); white-space: normal; font: 12px/1.4 system-ui, sans-serif">
<b>@title</b><br>@beginning</div>"""


class ColorColumn(TypedDict):
    """Column by which the map can be colored.

    Attributes:
        name: name of the column.
        values: N values; empty for the groups, which the page already contains.
        groups: True for the groups.
        first: True if the page opens with these colors.
    """

    name: str
    values: list[str | int | float]
    groups: NotRequired[bool]
    first: bool


class GroupPlace(TypedDict):
    """Name of a group, and its position in the plane."""

    x: float
    y: float
    name: str


class Join(NamedTuple):
    """Join of two branches of a tree, as it is drawn; the leaves are at 0, 1, 2, ...

    Attributes:
        left: distance at which the first branch begins.
        top: distance at which the branches join.
        right: distance at which the second branch begins.
        low: position of the first branch among the leaves.
        high: position of the second branch among the leaves.
        group: number of the group of both branches; -1 if they are in different groups or in none.
    """

    left: float
    top: float
    right: float
    low: float
    high: float
    group: int


@dataclass(frozen=True)
class DrawnTree:
    """Tree of N stories as it is drawn.

    Attributes:
        order: story at each of the N leaves.
        joins: N - 1 joins of branches.
    """

    order: list[int]
    joins: list[Join]


def map_page(
    story_map: StoryMap,
    title: str,
    facts: Sequence[tuple[str, str]],
    agreement: Agreement | None = None,
    sentences: Sequence[Sequence[str]] | None = None,
    links: Links | None = None,
) -> str:
    """Render the map of N stories as a page.

    Args:
        story_map: the map.
        title: title of the page.
        facts: names and sentences for the head of the page: model, stories, words read, languages, accuracy.
        agreement: agreement with a column, whose colors the page opens with.
        sentences: sentences of each story, if passages are linked.
        links: linked passages of pairs of stories.

    Raises:
        MissingExtraError: if the map is a plane and Bokeh is not installed.
    """
    lengths = story_map.frame["text"].str.len()
    limit = CHARACTERS // len(lengths)
    sentences = sentences or [[text] for text in story_map.frame["text"]]
    texts = [_beginning(parts, limit) for parts in sentences]
    columns = _color_columns(story_map.frame, None if agreement is None else agreement.column)
    data = _page_data(story_map, texts, columns, links or {})
    tree = story_map.arrangement.tree
    if tree is not None:
        data |= _tree_data(tree, story_map.groups)
        division = None
        scripts = [_script("map_page"), _script("map_dendrogram")]
    else:
        data["names"] = _group_places(story_map)
        plot_scripts, divisions = bokeh_parts({"map": _plot(story_map)}, "explore", ("bokeh",))
        division = divisions["map"]
        scripts = [*plot_scripts, _script("map_page"), _script("map_plane")]
    return render_page(
        Path(__file__).with_suffix(".html"),
        scripts,
        title=title,
        map=story_map,
        facts=facts,
        data=data,
        division=division,
        row=int(np.clip(620 / len(lengths), *ROW_HEIGHTS)),
        agreement=agreement,
        shown=limit if lengths.max() > limit else None,
    )


def _script(name: str) -> str:
    """Read a script of the page."""
    return Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8")


def _page_data(
    story_map: StoryMap, texts: Sequence[list[str]], columns: list[ColorColumn], links: Links
) -> dict[str, object]:
    """Collect the data that the scripts of dendrogram and plane need, as plain data for JSON."""
    stories = []
    for id, title, label, text in zip(
        story_map.frame["id"], story_map.frame["title"], story_map.labels, texts, strict=True
    ):
        stories.append({"id": id, "title": title, "label": label, "text": text})
    links_of_pairs = {}
    for (first, second), passages in links.items():
        if passages:
            links_of_pairs[f"{first}-{second}"] = [(i, j, round(match, 2)) for i, j, match in passages]
    return {
        "stories": stories,
        "columns": columns,
        "groups": story_map.groups.tolist(),
        "near": story_map.neighbors.tolist(),
        "similarity": story_map.similarities.round(3).astype(float).tolist(),
        "links": links_of_pairs,
        "colors": _group_colors(story_map),
        "palette": PALETTE,
        "none": NONE,
        "sequence": SEQUENCE,
        "heat": HEAT,
    }


def _beginning(parts: Sequence[str], limit: int) -> list[str]:
    """Take sentences up to a number of characters; truncate the first one if it is longer."""
    ends = np.cumsum(list(map(len, parts)))
    whole = int((ends <= limit).sum())
    if whole == 0 and limit > 0:
        return [printable(parts[0], limit)]
    return list(parts[:whole])


def _color_columns(frame: pd.DataFrame, first: str | None) -> list[ColorColumn]:
    """List the groups and the metadata columns that can color the map, with values as the page shows them."""
    columns: list[ColorColumn] = [{"name": "groups", "values": [], "groups": True, "first": first == "groups"}]
    for name in metadata_columns(frame):
        if _has_colors(frame[name]):
            values = list(map(_plain, frame[name]))
            columns.append({"name": name, "values": values, "first": first == name})
    return columns


def _has_colors(values: pd.Series) -> bool:
    """Return False for texts that differ in every story, such as file names, which would color nothing."""
    if values.dropna().astype(str).nunique() < len(values):
        return True
    numbers = pd.to_numeric(values, errors="coerce").notna().sum()
    return bool(numbers >= values.astype(bool).sum())


def _plain(value: object) -> str | int | float:
    """Convert a value of a column to plain data for JSON."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return printable(value, 60)
    if isinstance(value, int):
        return value if is_exact(value) else str(value)
    number = float(value)
    if not np.isfinite(number):
        return ""
    return int(number) if number.is_integer() else number


def _group_colors(story_map: StoryMap) -> list[str]:
    """Assign colors of the palette to groups; colors are repeated if there are more groups."""
    return [PALETTE[number % len(PALETTE)] for number in range(len(story_map.names))]


def _tree_data(tree: Tree, groups: IntArray) -> dict[str, object]:
    """Return the data of the dendrogram's script: order of the leaves, joins, and similarities in thousandths."""
    drawn = _drawn_tree(tree, groups)
    thousandths = np.rint(1000 * tree.similarities).astype(int)
    return {
        "order": drawn.order,
        "tree": drawn.joins,
        "top": round(tree.top, 4),
        "similarities": thousandths.tolist(),
    }


def _drawn_tree(tree: Tree, groups: IntArray) -> DrawnTree:
    """Order the N stories as leaves of the tree, and compute the positions of its joins."""
    drawing = dendrogram(tree.linkage, no_plot=True)
    order = drawing["leaves"]
    joins = []
    # scipy gives four corners of a join, of which the first and last are on its branches; leaves are at 5, 15, 25, ...
    for places, distances in zip(drawing["icoord"], drawing["dcoord"], strict=True):
        low, high = (places[0] - 5) / 10, (places[3] - 5) / 10
        left, top, _, right = (round(distance, 4) for distance in distances)
        first, second = int(groups[order[int(low)]]), int(groups[order[int(high)]])
        group = first if first == second else -1
        joins.append(Join(left, top, right, low, high, group))
    return DrawnTree(order, joins)


def _group_places(story_map: StoryMap) -> list[GroupPlace]:
    """Place the names of groups at the medians of their points, largest group first."""
    points, groups = np.asarray(story_map.arrangement.points), story_map.groups
    sizes = np.bincount(groups[groups >= 0], minlength=len(story_map.names))
    places: list[GroupPlace] = []
    for group in np.argsort(-sizes, kind="stable"):
        x, y = np.median(points[groups == group], axis=0).round(4).tolist()
        places.append({"x": x, "y": y, "name": story_map.names[group]})
    return places


def _plot(story_map: StoryMap) -> Any:
    """Draw the stories as points; a script of the page sets colors, texts and selection."""
    require("bokeh", "explore")
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure

    points = np.asarray(story_map.arrangement.points, dtype=np.float32)
    plot = figure(
        height=620,
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset",
        active_scroll="wheel_zoom",
    )
    plot.toolbar.logo = None
    plot.axis.visible = plot.grid.visible = False
    lines = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []}, name="lines")
    plot.segment("x0", "y0", "x1", "y1", source=lines, color=INK, line_alpha=0.6)
    source = ColumnDataSource({"x": points[:, 0], "y": points[:, 1], "color": [NONE] * len(points)}, name="points")
    size = float(np.clip(180 / np.sqrt(len(points)), 4, 9))
    dots = plot.scatter("x", "y", source=source, color="color", size=size, fill_alpha=0.8, line_color=None)
    plot.x_range.renderers = plot.y_range.renderers = [dots]
    ring = ColumnDataSource({"x": [], "y": []}, name="ring")
    plot.scatter("x", "y", source=ring, size=size + 8, fill_color=None, line_color=INK, line_width=2.5)
    _add_names(plot, _group_places(story_map))
    plot.add_tools(HoverTool(renderers=[dots], tooltips=TOOLTIP, point_policy="snap_to_data"))
    return plot


def _add_names(plot: Any, places: list[GroupPlace]) -> None:
    """Add texts for the names of groups; a script of the page fills in those for which there is room."""
    from bokeh.core.properties import value
    from bokeh.models import ColumnDataSource

    names = {
        "x": [place["x"] for place in places],
        "y": [place["y"] for place in places],
        "text": [""] * len(places),
    }
    plot.text(
        "x",
        "y",
        "text",
        source=ColumnDataSource(names, name="names"),
        text_font=value("system-ui, sans-serif"),
        text_font_size="13px",
        text_font_style="bold",
        text_color=INK,
        text_align="center",
        text_baseline="middle",
        background_fill_color="white",
        background_fill_alpha=0.75,
        padding=2,
    )


def write_map_svg(story_map: StoryMap, path: Path) -> None:
    """Write the map as an SVG drawing: a dendrogram with titles, or points with numbers and names of groups.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    require("matplotlib", "explore")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    colors = _group_colors(story_map)
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
    """Draw a dendrogram, with the titles of the stories at its leaves."""
    from matplotlib.collections import LineCollection

    drawn = _drawn_tree(tree, story_map.groups)
    lines, shades = [], []
    for join in drawn.joins:
        lines.append([(join.left, join.low), (join.top, join.low), (join.top, join.high), (join.right, join.high)])
        shades.append(colors[join.group] if join.group >= 0 else GRAY)
    axes.add_collection(LineCollection(lines, colors=shades))
    n = len(story_map.labels)
    axes.figure.set_size_inches(7, max(2, 0.2 * n + 0.6))
    farthest = max(join.top for join in drawn.joins)
    axes.set(
        ylim=(n - 0.5, -0.5),
        xlim=(max(1e-3, 1.02 * farthest), 0),
        xlabel=f"similarity ({story_map.measure})",
    )
    axes.xaxis.set_major_formatter(lambda distance, _: f"{tree.top - distance:.2f}")
    axes.yaxis.tick_right()
    axes.set_yticks(range(n), [story_map.labels[story] for story in drawn.order])
    axes.tick_params("y", length=0)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)


def _draw_points(axes: Any, story_map: StoryMap, colors: Sequence[str]) -> None:
    """Draw a point for each story, and the number of each group, which the legend names."""
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
