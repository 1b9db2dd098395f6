"""A box plot as SVG, written by hand: a few lines and rectangles need no plotting library."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

TOP, BOTTOM, LEFT, COLUMN, BOX = 48, 300, 64, 120, 56
"""Pixels: the axis from top to bottom, its distance from the left, the width of a column and of its box."""


class Box(NamedTuple):
    """What is drawn of one group (Tukey 1977): whiskers reach the furthest values within 1.5 quartile distances."""

    low: float
    first: float
    median: float
    third: float
    high: float
    outliers: list[float]


def box_of(values: Sequence[float]) -> Box:
    """The box of at least one value.

    >>> box_of([1, 2, 3, 4, 20])
    Box(low=1.0, first=2.0, median=3.0, third=4.0, high=4.0, outliers=[20.0])
    """
    found = np.sort(np.asarray(values, dtype=float))
    first, median, third = np.quantile(found, (0.25, 0.5, 0.75)).tolist()
    reach = 1.5 * (third - first)
    inside = (found >= first - reach) & (found <= third + reach)
    return Box(float(found[inside][0]), first, median, third, float(found[inside][-1]), found[~inside].tolist())


def box_plot(groups: Mapping[str, Sequence[float]], title: str) -> str:
    """Boxes beside each other, each with its mean ± standard deviation above it.

    Args:
        groups: values of each group, by its name; at least one each, all finite.
        title: written above.

    Returns:
        A whole SVG document.
    """
    whole = np.concatenate([np.asarray(values, dtype=float) for values in groups.values()])
    ticks = axis_ticks(float(whole.min()), float(whole.max()))
    low, high = ticks[0], ticks[-1]

    def height(value: float) -> float:
        return BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP)

    width = LEFT + COLUMN * len(groups) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{BOTTOM + 40}" font-family="sans-serif" '
        f'font-size="12" text-anchor="middle">',
        f'<rect width="{width}" height="{BOTTOM + 40}" fill="white"/>',
        _text(width / 2, 18, title),
    ]
    for tick in ticks:
        y = height(tick)
        parts += [_line(LEFT, y, width - 16, y, "#ddd"), _text(LEFT - 24, y + 4, f"{tick:.3g}")]
    for place, (name, values) in enumerate(groups.items()):
        centre = LEFT + COLUMN * (place + 0.5)
        parts += _drawn(box_of(values), centre, height)
        parts += [_text(centre, TOP - 10, _spread(values)), _text(centre, BOTTOM + 24, f"{name} (n = {len(values)})")]
    return "\n".join([*parts, "</svg>"]) + "\n"


def axis_ticks(low: float, high: float) -> list[float]:
    """Round values from below `low` to above `high`, four to twelve steps.

    >>> axis_ticks(0.72, 0.97), axis_ticks(0.5, 0.5)
    ([0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0], [0.44, 0.46, 0.48, 0.5, 0.52, 0.54, 0.56])
    """
    if high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
    power = 10.0 ** np.floor(np.log10((high - low) / 4))
    step = float(power * max(factor for factor in (1, 2, 5) if power * factor <= (high - low) / 4))
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return [round(place * step, 12) for place in range(first, last + 1)]


def _drawn(box: Box, centre: float, height: Callable[[float], float]) -> list[str]:
    left, right = centre - BOX / 2, centre + BOX / 2
    top, bottom = height(box.third), height(box.first)
    drawn = [
        _line(centre, height(box.high), centre, top),
        _line(centre, bottom, centre, height(box.low)),
        *(_line(left + BOX / 4, height(end), right - BOX / 4, height(end)) for end in (box.high, box.low)),
        f'<rect x="{left:g}" y="{top:.2f}" width="{BOX}" height="{bottom - top:.2f}" fill="#cfe0f3" stroke="black"/>',
        _line(left, height(box.median), right, height(box.median)),
    ]
    return drawn + [
        f'<circle cx="{centre:g}" cy="{height(value):.2f}" r="3" fill="none" stroke="black"/>' for value in box.outliers
    ]


def _spread(values: Sequence[float]) -> str:
    deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "black") -> str:
    return f'<line x1="{x1:g}" y1="{y1:.2f}" x2="{x2:g}" y2="{y2:.2f}" stroke="{colour}"/>'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:g}" y="{y:.2f}">{escape(words)}</text>'
