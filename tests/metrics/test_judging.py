"""Figures of a judge, against counts by hand and plain loops."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrlit.metrics.judging import accuracy_of, agreement, by_margin, overrides

CHOICE = st.sampled_from([True, False, None])
ROWS = st.lists(st.tuples(CHOICE, st.booleans(), CHOICE, st.sampled_from([0.0, 0.1, 0.2, 0.5])), max_size=30)
T, F, N = True, False, None


def test_accuracy_counts_only_what_is_answered_and_labelled():
    found = accuracy_of([T, F, T, N, T, F], [T, F, F, T, N, F])
    assert (found.n, found.correct) == (4, 3)
    assert accuracy_of([N, T], [T, N]).known is False


def test_overrides_by_hand():
    model = [T, F, T, T, N, F]
    nearer = [F, T, T, F, T, T]
    labels = [T, T, T, N, T, F]
    found = overrides(model, nearer, labels)
    # Rows 1, 2, 4 and 6 are overridden; row 4 has no label; the model is right on rows 1 and 6, wrong on row 2.
    assert (found.chosen, found.overridden, found.right.n, found.right.correct) == (5, 4, 3, 2)
    assert found.share == 4 / 5
    assert overrides([N], [T], [T]).share is None


@given(ROWS)
def test_where_it_is_overridden_one_of_the_two_is_right(rows):
    model, nearer, labels, _ = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    found = overrides(model, nearer, labels)
    hybrid = [s if x is None else x for x, s in zip(model, nearer, strict=True)]
    gained = accuracy_of(hybrid, labels).correct - accuracy_of(nearer, labels).correct
    assert gained == found.right.correct - (found.right.n - found.right.correct)
    alike, both = agreement(model, nearer)
    assert (both - alike, both) == (found.overridden, found.chosen)


def test_agreement_by_hand():
    assert agreement([T, F, T, N, F], [T, T, F, T, F]) == (2, 4)
    assert agreement([], []) == (0, 0)


def test_parts_begin_with_the_largest_margins_and_add_up():
    margins = [0.1, 0.5, 0.3, 0.2, 0.4, 0.9]
    labels = [T, T, T, T, T, N]
    systems = {"near": [F, T, T, F, T, T], "model": [T, N, F, T, T, T]}
    found = by_margin(margins, systems, labels, parts=3)
    # By margin: rows 2 | 5, 3 | 4, 1; row 6 has no label.
    assert [(part.largest, part.smallest) for part in found] == [(0.5, 0.5), (0.4, 0.3), (0.2, 0.1)]
    assert [part.coverage for part in found] == [0.2, 0.6, 1]
    counts = {name: [(part.within[name].correct, part.within[name].n) for part in found] for name in systems}
    assert counts == {"near": [(1, 1), (2, 2), (0, 2)], "model": [(0, 0), (1, 2), (2, 2)]}
    assert [(part.covered["model"].correct, part.covered["model"].n) for part in found] == [(0, 0), (1, 2), (3, 4)]


def test_equal_margins_keep_the_order_of_the_triples():
    found = by_margin([0.1, 0.2, 0.1, 0.1], {"one": [T, T, F, F]}, [T, T, T, T], parts=2)
    assert [part.within["one"].correct for part in found] == [2, 0]


@given(ROWS, st.integers(1, 7))
def test_each_labelled_triple_stands_in_one_part(rows, parts):
    model, nearer, labels, margins = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    found = by_margin(margins, {"model": model, "near": nearer}, labels, parts)
    labelled = sum(label is not None for label in labels)
    sizes = [part.within["near"].n for part in found]
    assert len(found) == min(parts, labelled)
    assert sum(sizes) == labelled
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    for part, after in pairwise(found):
        assert part.smallest >= after.largest
    if found:
        assert found[-1].covered["model"] == accuracy_of(model, labels)
        assert found[-1].coverage == 1


def test_columns_of_other_lengths_are_refused():
    for wrong in (
        lambda: accuracy_of([T], [T, F]),
        lambda: overrides([T], [T], []),
        lambda: agreement([T], []),
        lambda: by_margin([0.1], {"one": [T, T]}, [T]),
    ):
        with pytest.raises(ValueError):
            wrong()
