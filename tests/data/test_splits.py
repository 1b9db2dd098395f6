"""Groups, folds and overlap against plain loops."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from narrlit.data.schema import Story, StoryTable, TrainingExample, TrainingExamples
from narrlit.data.splits import grouped_folds, overlap, story_groups


def examples(rows, groups=None):
    table = StoryTable()
    found = []
    for number, (anchor, positive, *others) in enumerate(rows):
        negatives = tuple(map(table.add, others))
        group = groups[number] if groups else None
        indices = table.add(anchor), table.add(positive)
        found.append(TrainingExample(*indices, negatives, ("triple",) * len(others), group))
    return TrainingExamples(table, found)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), min_size=3, max_size=3), min_size=1, max_size=12))
def test_rows_share_a_group_if_a_chain_of_stories_joins_them(rows):
    joined = [{i} for i in range(len(rows))]
    for _ in rows:
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                if set(one) & set(other):
                    joined[i] = joined[j] = joined[i] | joined[j]

    groups = story_groups(examples(rows))

    for i in range(len(rows)):
        assert {j for j in range(len(rows)) if groups[j] == groups[i]} == joined[i]


def test_case_white_space_names_and_group_join_rows():
    found = examples([("a b", "c"), ("d", "A  B"), ("e", "f"), ("g", "h"), ("x", "y")], [None, None, "x", "x", None])
    assert story_groups(found).tolist() == [0, 0, 1, 1, 2]
    renamed = StoryTable(Story(s.id, f"Character_{s.id}", original=s.text) for s in found.stories)
    assert story_groups(TrainingExamples(renamed, found.rows)).tolist() == [0, 0, 1, 1, 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.integers(2, 5), st.integers(0, 3))
def test_folds_hold_every_row_once_and_whole_groups(groups, folds, seed):
    groups = np.array(groups)
    if len(set(groups.tolist())) < folds:
        with refused("few_groups"):
            grouped_folds(groups, folds, seed)
        return

    found = grouped_folds(groups, folds, seed)

    assert sorted(row for fold in found for row in fold.tolist()) == list(range(len(groups)))
    assert all(len(fold) for fold in found)
    for fold in found:
        assert not set(groups[fold]) & set(np.delete(groups, fold))
    assert [fold.tolist() for fold in grouped_folds(groups, folds, seed)] == [fold.tolist() for fold in found]


def test_folds_of_equal_groups_are_even_and_the_seed_divides_them_otherwise():
    groups = np.arange(40)
    one = grouped_folds(groups, 4)
    other = grouped_folds(groups, 4, seed=1)

    assert [len(fold) for fold in one] == [10] * 4
    assert [fold.tolist() for fold in one] != [fold.tolist() for fold in other]
    with refused("few_folds", folds=1):
        grouped_folds(groups, 1)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([("x", "p", "q")], (3, 2, 1)),
        ([("X", "q", " P ")], (3, 2, 1)),
        ([("p", "x")], (2, 1, 0)),
        ([("p",)], (1, 0, 0)),
        ([("x.", "p.", "q.")], (0, 0, 0)),
    ],
)
def test_overlap(other, expected):
    assert overlap([("x", "p", "q")], other) == expected


def test_decomposed_copies_are_shared_stories():
    texts = ("Amélie perdit la perle.", "Une forêt enneigée.", "Le boulanger de Besançon.")
    decomposed = tuple(unicodedata.normalize("NFD", text).replace(" ", "\u00a0") for text in texts)
    assert overlap([texts], [decomposed]) == (3, 2, 1)
