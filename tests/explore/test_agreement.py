"""Agreement with a catalog, counted by hand."""

import numpy as np
import pytest
from measured import similarities_of
from refusals import refused

from narrlit.explore.agreement import neighbor_agreement


def circle(*degrees):
    angles = np.radians(degrees)
    return similarities_of(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))


def test_shares_surprises_and_values_far_apart_counted_by_hand():
    # a at 0 and 10; b at 60, 70 and, far away, 180; the story without a value would be nearest to both a.
    result = neighbor_agreement(circle(0, 10, 60, 70, 180, 5), "type", ["a", "a", "b", "b", "b", ""], k=2)
    assert result.stories == 5

    nearest, both = result.shares
    assert nearest.share == 1
    # Second neighbors: of 0 and 10 a b; of 60 and 70 an a; of 180 a b.
    assert both.share == pytest.approx(6 / 10)
    assert both.possible == pytest.approx((2 * 1 + 3 * 2) / 10)
    assert 0.2 < nearest.chance < 0.6  # 2 * 1 + 3 * 2 of 20 ordered pairs: .4
    assert nearest.chance == pytest.approx(0.4, abs=0.05)
    assert nearest.low < nearest.chance < nearest.high
    assert [(i, j) for i, j, _ in result.surprises] == [(1, 2), (0, 2), (1, 3)]
    assert result.surprises[0][2] == pytest.approx(np.cos(np.radians(50)), abs=1e-5)
    assert [row.value for row in result.values] == ["b", "a"]

    within = np.cos(np.radians([10, 120, 110])).mean()
    assert result.values[0].within == pytest.approx(within, abs=1e-5)

    others = np.cos(np.radians([60, 70, 180, 50, 60, 170])).mean()
    assert result.values[0].to_others == pytest.approx(others, abs=1e-5)


def test_shares_are_of_the_stories_that_have_a_partner():
    # Two pairs and three stories whose value no other has: one pair are neighbors, the other far apart.
    labels = ["a", "a", "b", "b", "c", "d", "e"]
    result = neighbor_agreement(circle(0, 10, 60, 180, 70, 190, 300), "type", labels, k=2)
    assert result.stories == 7
    assert result.partners == 4

    nearest, both = result.shares
    assert nearest.share == 0.5
    assert nearest.possible == 1
    assert both.share == 2 / 8
    assert both.possible == 0.5
    assert result.lines()[0].startswith(
        "Of the 4 stories that share their type with another, 50 % have such a story as nearest neighbor; chance "
    )
    assert result.lines()[1].startswith("Of the 2 nearest neighbors of each of them, 25 % share its type; chance ")
    assert result.lines()[1].endswith("; at most 50 % are possible")


def test_small_p_where_every_neighbor_agrees_and_none_where_values_are_arbitrary():
    similarities = circle(*[30 * group + each for group in range(6) for each in (0, 1, 2)])
    labels = [str(group) for group in range(6) for _ in range(3)]
    assert neighbor_agreement(similarities, "type", labels, 2).shares[0].p < 0.002
    assert neighbor_agreement(similarities, "type", labels[::3] * 3, 2).shares[0].p > 0.2


@pytest.mark.parametrize(
    ("labels", "code"), [(["a", "b", "c"], "group_without_pairs"), (["a", "a", "a"], "group_of_one_value")]
)
def test_columns_that_group_nothing_are_refused(labels, code):
    with refused(code):
        neighbor_agreement(circle(0, 10, 20), "type", labels, 2)
