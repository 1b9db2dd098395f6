"""Box plots: the figures drawn are those of the values, and the document is sound XML whatever the names."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.commands.augment_report import statistics
from narrlit.commands.box_plot import BOTTOM, TOP, axis_ticks, box_of, box_plot

SPACE = "{http://www.w3.org/2000/svg}"
values = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


@given(values)
def test_whiskers_end_at_values_and_what_lies_beyond_is_drawn_alone(found):
    box = box_of(found)
    reach = 1.5 * (box.third - box.first)
    assert box.low in found and box.high in found
    assert sorted([*box.outliers, *(v for v in found if box.low <= v <= box.high)]) == sorted(found)
    assert all(v < box.first - reach or v > box.third + reach for v in box.outliers)
    assert box.median == pytest.approx(np.median(found))


@given(values)
def test_the_axis_holds_every_value(found):
    ticks = axis_ticks(min(found), max(found))
    assert ticks[0] <= min(found) + 1e-9 and ticks[-1] >= max(found) - 1e-9
    assert 4 <= len(ticks) <= 14
    assert len(set(ticks)) == len(ticks)


def test_higher_values_are_drawn_higher_and_all_within_the_axis():
    root = ET.fromstring(box_plot({"fr": [0.8, 0.85, 0.9, 0.95, 0.2], "hi": [0.5]}, "F1"))
    boxes = list(root.iter(f"{SPACE}rect"))[1:]
    tops = [float(rect.get("y")) for rect in boxes]
    assert tops[0] < tops[1]
    heights = [float(rect.get("height")) for rect in boxes]
    assert heights[0] > 5 and heights[1] == 0
    (circle,) = root.iter(f"{SPACE}circle")
    assert tops[0] + heights[0] < float(circle.get("cy")) <= BOTTOM
    for line in root.iter(f"{SPACE}line"):
        assert min(float(line.get("y1")), float(line.get("y2"))) >= TOP - 0.01
        assert max(float(line.get("y1")), float(line.get("y2"))) <= BOTTOM + 0.01


def test_names_and_titles_are_escaped():
    root = ET.fromstring(box_plot({"<a> & b": [0.5, 0.75]}, "F1 < 1 & 'more'"))
    texts = [text.text for text in root.iter(f"{SPACE}text")]
    assert texts[0] == "F1 < 1 & 'more'"
    assert "<a> & b (n = 2)" in texts
    assert "0.625 ± 0.177" in texts


def test_statistics_of_few_values():
    assert statistics(np.array([])) is None
    one = statistics(np.array([0.5]))
    assert (one["n"], one["mean"], one["standard_deviation"], one["median"]) == (1, 0.5, None, 0.5)
