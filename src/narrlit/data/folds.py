"""Folds for cross-validation: rows that share a story stay together, so that no judged story has been trained on.

Letters of the shapes: N rows.
"""

from collections.abc import Sequence
from random import Random

import numpy as np

from narrlit.data.components import components
from narrlit.data.leakage import normal_text
from narrlit.data.records import Example
from narrlit.data.table import IntArray, StoryTable
from narrlit.errors import OptionError


def story_groups(examples: Sequence[Example]) -> IntArray:
    """Groups (N,) of the examples, each named by its first row: a chain of shared stories joins a group.

    A story is shared whatever it is, anchor, positive or negative, and without regard to case and to the kind and
    amount of white space. Examples with the same `group`, copies of one source, are joined, too.

    >>> story_groups([Example("a", "b"), Example("c", "d"), Example("B", "e"), Example("f", "g", group="x")]).tolist()
    [0, 1, 0, 3]
    """
    things = StoryTable()
    links = []
    for row, example in enumerate(examples):
        # The mark keeps a group's name apart from a story of the same words.
        names = [f"story {normal_text(text)}" for text in example.texts]
        if example.group is not None:
            names.append(f"group {example.group}")
        links += [(row, len(examples) + thing) for thing in things.rows(names)]
    return components(len(examples) + len(things), links)[: len(examples)]


def grouped_folds(groups: IntArray, folds: int, seed: int = 0) -> list[IntArray]:
    """Deal rows into folds of about the same size, without splitting a group.

    The largest group comes first, each into the fold that is smallest by then; the seed decides between equals.

    Args:
        groups: (N,) each row's group.
        folds: how many folds.
        seed: of the deal; the same gives the same folds.

    Returns:
        For each fold the rows that it judges, ascending; every row is in one fold.

    Raises:
        OptionError: if there are fewer than two folds, or fewer groups than folds.

    >>> [fold.tolist() for fold in grouped_folds(np.array([0, 0, 2, 2, 2, 5]), folds=2)]
    [[2, 3, 4], [0, 1, 5]]
    """
    if folds < 2:
        raise OptionError(f"--folds {folds}: at least 2 are needed, one to judge and one to train")
    names, of_row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(names) < folds:
        largest = f", the largest with {sizes.max()} of {len(groups)} rows" if len(names) else ""
        raise OptionError(
            f"--folds {folds}: rows that share stories stay together, and there are only {len(names)} such groups"
            f"{largest}; give fewer folds or more rows"
        )
    order = list(range(len(names)))
    Random(seed).shuffle(order)
    order.sort(key=lambda group: -int(sizes[group]))  # stable: equals stay shuffled
    filled = [0] * folds
    fold_of = np.empty(len(names), dtype=np.int64)
    for group in order:
        smallest = filled.index(min(filled))
        fold_of[group] = smallest
        filled[smallest] += int(sizes[group])
    return [np.flatnonzero(fold_of[of_row] == fold) for fold in range(folds)]
