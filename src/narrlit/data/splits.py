"""Folds whose rows share no story, and what two sets of examples or triples have in common.

Letters of the shapes: N rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from narrlit.data.schema import IntArray, TrainingExamples, normal_text
from narrlit.errors import OptionError


def story_groups(examples: TrainingExamples) -> IntArray:
    """Group rows that share a story, directly or through other rows, or have the same `group`.

    A story is shared whatever its role, and without regard to case and white space.

    Returns:
        (N,) each row's group, numbered in order of first appearance.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes: dict[tuple[str, str], int] = {}
    links = []
    for row, example in enumerate(examples):
        keys = [("story", normal_text(examples.stories[index].source_text)) for index in example.indices]
        keys += [("group", example.group)] if example.group is not None else []
        links += [(row, len(examples) + nodes.setdefault(key, len(nodes))) for key in keys]
    size = len(examples) + len(nodes)
    first, second = np.array(links, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(size, size))
    groups: IntArray = connected_components(graph, directed=False)[1][: len(examples)].astype(np.int64)
    return groups


def grouped_folds(groups: IntArray, folds: int, seed: int = 0) -> list[IntArray]:
    """Divide rows into folds of similar size without splitting a group.

    Args:
        groups: (N,) each row's group.
        folds: how many folds.
        seed: the same gives the same folds.

    Returns:
        For each fold the rows that it evaluates, ascending; every row is in one fold.

    Raises:
        OptionError: if there are fewer than two folds, or fewer groups than folds.
    """
    from sklearn.model_selection import GroupKFold

    if folds < 2:
        raise OptionError(f"--folds {folds}: at least 2 are needed, one to evaluate and one to train")
    sizes = np.unique(groups, return_counts=True)[1]
    if len(sizes) < folds:
        largest = f", the largest with {sizes.max()} of {len(groups)} rows" if len(sizes) else ""
        raise OptionError(
            f"--folds {folds}: rows that share stories stay together, and there are only {len(sizes)} such groups"
            f"{largest}; give fewer folds or more rows"
        )
    splitter = GroupKFold(folds, shuffle=True, random_state=seed)
    return [np.sort(rows).astype(np.int64) for _, rows in splitter.split(groups, groups=groups)]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much two sets share; sizes are those of (one, other), each different story, pair or triple counted once."""

    shared_stories: int
    shared_pairs: int
    shared_triples: int
    stories: tuple[int, int]
    pairs: tuple[int, int]
    triples: tuple[int, int]

    def describe(self) -> str:
        """Describe the overlap in one line.

        >>> overlap([("x", "y", "z")], [("X", "w")]).describe()
        'shared: 1 story (of 3 and 2), 0 pairs (of 2 and 1), 0 triples (of 1 and 0)'
        """
        parts = (
            (self.shared_stories, "story", "stories", self.stories),
            (self.shared_pairs, "pair", "pairs", self.pairs),
            (self.shared_triples, "triple", "triples", self.triples),
        )
        lines = (f"{n} {one if n == 1 else many} (of {sizes[0]} and {sizes[1]})" for n, one, many, sizes in parts)
        return f"shared: {', '.join(lines)}"


def overlap(one: Iterable[Sequence[str]], other: Iterable[Sequence[str]]) -> Overlap:
    """Compare two sets of items, each the texts of an example or a triple, anchor first; a single story is a 1-tuple.

    Texts are compared without regard to case and white space. A pair is an anchor and one of its candidates, in either
    order; a triple is an anchor and its first two candidates, in either order.
    """
    first, second = _sets(one), _sets(other)
    shared = [len(a & b) for a, b in zip(first, second, strict=True)]
    stories, pairs, triples = [(len(a), len(b)) for a, b in zip(first, second, strict=True)]
    return Overlap(shared[0], shared[1], shared[2], stories, pairs, triples)


def _sets(items: Iterable[Sequence[str]]) -> tuple[set[object], set[object], set[object]]:
    normal: dict[str, str] = {}  # a story occurs in many items: each is normalized once
    stories: set[object] = set()
    pairs: set[object] = set()
    triples: set[object] = set()
    for item in items:
        anchor, *candidates = [normal[t] if t in normal else normal.setdefault(t, normal_text(t)) for t in item]
        stories.update((anchor, *candidates))
        pairs.update(frozenset((anchor, candidate)) for candidate in candidates)
        if len(candidates) >= 2:
            triples.add((anchor, frozenset(candidates[:2])))
    return stories, pairs, triples
