"""Folds that share no story, and the overlap of two sets of examples or triples.

Letters in shapes: N rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from narrlit.data.schema import IntArray, Story, TrainingExamples, Triples, connected, normal_form, normal_text
from narrlit.errors import OptionError


def story_groups(examples: TrainingExamples) -> IntArray:
    """Number the groups (N,) of rows that are linked, directly or through other rows.

    Two rows are linked if they share a story, in whatever role, or have the same `group`. Stories are compared without
    regard to case and white space.
    """
    nodes: dict[tuple[str, str], int] = {}
    links = []
    texts = _comparable_texts(examples.stories)
    for row, example in enumerate(examples):
        keys = [("story", texts[index]) for index in example.indices]
        if example.group is not None:
            keys.append(("group", normal_form(example.group)))
        for key in keys:
            node = nodes.setdefault(key, len(nodes))
            links.append((row, len(examples) + node))
    return connected(links, len(examples) + len(nodes))[: len(examples)]


def story_numbers(triples: Triples) -> IntArray:
    """Number the stories (N, 3) of N triples; stories that `story_groups` considers equal have the same number."""
    number_of: dict[str, int] = {}
    numbers = np.empty(len(triples.stories), dtype=np.int64)
    for index, text in enumerate(_comparable_texts(triples.stories)):
        numbers[index] = number_of.setdefault(text, len(number_of))
    return numbers[triples.indices]


def story_digests(triples: Triples) -> list[list[int]]:
    """Identify the stories (N, 3) of N triples by 48 bits of the digests of their texts.

    Unlike `story_numbers`, they can be compared with those of other triples.
    """
    digests = []
    for text in _comparable_texts(triples.stories):
        digests.append(int(sha256(text.encode()).hexdigest()[:12], 16))
    return [[digests[index] for index in triple.indices] for triple in triples]


def _comparable_texts(stories: Iterable[Story]) -> list[str]:
    """Normalize the texts of stories, with their original names; equal stories have the same text."""
    return [normal_text(story.source_text) for story in stories]


def grouped_folds(groups: IntArray, folds: int, seed: int = 0) -> list[IntArray]:
    """Divide N rows into folds of similar size without splitting a group.

    Args:
        groups: (N,) number of each row's group.
        folds: number of folds, at least 2.
        seed: seed of the division.

    Returns:
        The rows that each fold evaluates, ascending; every row is in one fold.

    Raises:
        OptionError: if there are fewer than 2 folds, or fewer groups than folds.
    """
    from sklearn.model_selection import GroupKFold  # light services read stories without it

    if folds < 2:
        raise OptionError("few_folds", folds=folds)
    sizes = np.unique(groups, return_counts=True)[1]
    if len(sizes) < folds:
        largest = f", the largest with {sizes.max()} of {len(groups)} rows" if len(sizes) else ""
        raise OptionError("few_groups", folds=folds, groups=len(sizes), largest=largest)
    splitter = GroupKFold(folds, shuffle=True, random_state=seed)
    evaluated = []
    for _, rows in splitter.split(groups, groups=groups):
        evaluated.append(np.sort(rows).astype(np.int64))
    return evaluated


def random_share(rows: int, share: float, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Divide row numbers at random into a share, rounded to whole rows, and the rest; both are ascending.

    >>> [len(rows) for rows in random_share(5, 0.6)]
    [3, 2]
    """
    order = np.random.default_rng(seed).permutation(rows)
    count = round(share * rows)
    return np.sort(order[:count]).astype(np.int64), np.sort(order[count:]).astype(np.int64)


class Overlap(NamedTuple):
    """Numbers of distinct stories, of pairs of anchor and candidate, and of anchors that two sets share."""

    shared_stories: int
    shared_pairs: int
    shared_anchors: int


def overlap(one: Iterable[Sequence[str]], other: Iterable[Sequence[str]]) -> Overlap:
    """Count the stories, pairs and anchors that two sets share.

    Texts are compared without regard to case and white space, pairs without regard to order.

    Args:
        one: texts of each example or triple, anchor first; a story by itself is a tuple of one text.
        other: the other set, likewise.

    >>> overlap([("x", "y", "z")], [("X", "w"), ("y", "x")])
    Overlap(shared_stories=2, shared_pairs=1, shared_anchors=1)
    """
    first = _Parts.of(one)
    second = _Parts.of(other)
    return Overlap(
        shared_stories=len(first.stories & second.stories),
        shared_pairs=len(first.pairs & second.pairs),
        shared_anchors=len(first.anchors & second.anchors),
    )


@dataclass(frozen=True)
class _Parts:
    """Normalized texts of the distinct stories, pairs and anchors of a set."""

    stories: set[str] = field(default_factory=set)
    pairs: set[frozenset[str]] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, items: Iterable[Sequence[str]]) -> "_Parts":
        """Collect the parts of examples or triples, given their texts with the anchor first."""
        normal = cache(normal_text)  # a story occurs in many items
        parts = cls()
        for item in items:
            anchor, *candidates = map(normal, item)
            parts.anchors.add(anchor)
            parts.stories.add(anchor)
            for candidate in candidates:
                parts.stories.add(candidate)
                parts.pairs.add(frozenset((anchor, candidate)))
        return parts
