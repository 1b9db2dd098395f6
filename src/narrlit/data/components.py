"""Connected components: what a chain of links joins."""

from collections.abc import Iterable

import numpy as np

from narrlit.data.table import IntArray


def components(count: int, links: Iterable[tuple[int, int]]) -> IntArray:
    """The component (count,) of each of `count` things, named by the least number in it.

    Args:
        count: how many things there are, numbered from 0.
        links: pairs of them that belong together.

    >>> components(5, [(3, 1), (4, 3)]).tolist()
    [0, 1, 2, 1, 1]
    """
    leader = list(range(count))

    def find(thing: int) -> int:
        while leader[thing] != thing:
            leader[thing] = thing = leader[leader[thing]]
        return thing

    for one, other in links:
        first, second = sorted((find(one), find(other)))
        leader[second] = first
    return np.array([find(thing) for thing in range(count)], dtype=np.int64)
