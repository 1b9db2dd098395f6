"""Map of stories as an SVG drawing for an article, without a browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from narrlit.data.schema import Floats
from narrlit.explore.story_map import StoryMap, Tree
from narrlit.optional import require
from narrlit.results.plots import GRAY

PALETTE = ("#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499")
"""Colors that color-blind readers can tell apart, after Paul Tol's scheme "muted"."""
NONE = "#bbbbbb"
"""Color of a story without a group."""
ROW = 0.2
"""Height of a story in a dendrogram, in inches."""
MOST_VECTORS = 100
"""Maximum number of stories whose similarities are drawn as single cells; more become an image."""


def write_map_svg(story_map: StoryMap, path: Path) -> None:
    """Write the map as an SVG drawing: a dendrogram with titles, or points with numbers and names of groups.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    require("matplotlib", "explore")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    colors = [PALETTE[number % len(PALETTE)] for number in range(len(story_map.names))]
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "narrlit", "font.size": 9}):
        figure = Figure(layout="constrained")
        tree = story_map.arrangement.tree
        if tree is not None:
            n = len(story_map.labels)
            figure.set_size_inches(7 + ROW * n, max(2, ROW * n + 0.6))
            axes, heat = figure.subplots(1, 2, sharey=True, width_ratios=[7, ROW * n])
            order = _draw_tree(axes, story_map, tree, colors)
            _draw_heat(heat, tree.similarities[np.ix_(order, order)])
        else:
            _draw_points(figure.subplots(), story_map, colors)
        figure.savefig(path, metadata={"Date": None})


def _draw_tree(axes: Any, story_map: StoryMap, tree: Tree, colors: Sequence[str]) -> list[int]:
    """Draw a dendrogram, with the titles of the stories at its leaves; return the order of the stories."""
    from matplotlib.collections import LineCollection

    drawing = dendrogram(tree.linkage, no_plot=True)
    order: list[int] = drawing["leaves"]
    groups = story_map.groups[order].tolist()
    lines, shades = [], []
    # scipy gives four corners of a join, of which the first and last are on its branches; leaves are at 5, 15, 25, ...
    for places, distances in zip(drawing["icoord"], drawing["dcoord"], strict=True):
        rows = [(place - 5) / 10 for place in places]
        lines.append(list(zip(distances, rows, strict=True)))
        first, second = groups[int(rows[0])], groups[int(rows[3])]
        shades.append(colors[first] if first == second and first >= 0 else GRAY)
    axes.add_collection(LineCollection(lines, colors=shades))
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set(
        ylim=(len(order) - 0.5, -0.5),
        xlim=(max(1e-3, 1.02 * float(tree.linkage[-1, 2])), 0),
        xlabel=f"similarity ({story_map.measure})",
    )
    axes.xaxis.set_major_formatter(lambda distance, _: f"{tree.top - distance:.2f}")
    axes.yaxis.tick_right()
    axes.set_yticks(range(len(order)), [story_map.labels[story] for story in order])
    axes.tick_params("y", length=0)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    return order


def _draw_heat(axes: Any, similarities: Floats) -> None:
    """Draw the similarities (N, N) of all pairs, in the rows of a dendrogram."""
    n = len(similarities)
    others = np.ma.masked_where(np.eye(n, dtype=bool), similarities)
    edges = np.arange(n + 1) - 0.5
    axes.pcolormesh(edges, edges, others, cmap="Blues", rasterized=n > MOST_VECTORS)
    axes.set_axis_off()


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
