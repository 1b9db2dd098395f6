"""Agreement of similarity with a catalog: share of nearest neighbors with the same value in a column.

Letters in shapes: N stories that have a value, k neighbors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import IntArray
from narrlit.errors import DataError, printable
from narrlit.measures.collection import CollectionSimilarity
from narrlit.statistics.significance import p_text

PERMUTATIONS = 1000
"""Number of permutations of the column, from which the agreement by chance is computed."""
LISTED = 10
"""Number of pairs with different values that are listed."""
SAMPLE = 200
"""Maximum number of stories with a value, and of other stories, in a mean similarity."""


@dataclass(frozen=True)
class NeighborAgreement:
    """Share of nearest neighbors with the same value as their story.

    Attributes:
        neighbors: number of nearest neighbors per story.
        share: share of neighbors with the same value, 0 to 1.
        possible: maximum of this share: a story whose value occurs twice has only one such neighbor.
        chance: mean share over 1,000 permutations of the values.
        low: lower end of the middle 95 % of the permutations.
        high: upper end of the middle 95 %.
        p: share of permutations that agree at least as much.
    """

    neighbors: int
    share: float
    possible: float
    chance: float
    low: float
    high: float
    p: float

    def sentence(self, column: str, partners: int) -> str:
        """Describe the share and what is expected by chance."""
        if self.neighbors == 1:
            text = (
                f"Of the {partners:,} stories that share their {column} with another, {_percent(self.share)} have such "
                "a story as nearest neighbor"
            )
        else:
            text = (
                f"Of the {self.neighbors} nearest neighbors of each of them, {_percent(self.share)} share its {column}"
            )
        chance = (
            f"chance {_percent(self.chance)} (95 % of permutations: {_percent(self.low)} to {_percent(self.high)}), "
            f"{p_text(self.p)}"
        )
        limit = f"; at most {_percent(self.possible)} are possible" if self.possible < 1 else ""
        return f"{text}; {chance}{limit}"


@dataclass(frozen=True)
class ValueSimilarity:
    """Similarity of the stories of one value.

    Attributes:
        value: value of the column.
        stories: number of stories with this value, two or more.
        share: share of these stories with a nearest neighbor of the same value, 0 to 1.
        within: their mean similarity with each other.
        to_others: their mean similarity with stories of other values.
    """

    value: str
    stories: int
    share: float
    within: float
    to_others: float


class Surprise(NamedTuple):
    """Rows of two similar stories with different values, and their similarity."""

    first: int
    second: int
    similarity: float


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of nearest neighbors with the values of a column, for the N stories that have a value.

    Attributes:
        column: name of the column.
        stories: N.
        partners: number of stories that share their value with another story; only these can agree, and shares refer to
            them.
        shares: agreement of the nearest neighbor, and of the k nearest neighbors.
        values: values that two or more stories share, those with the least similar stories first.
        surprises: the most similar pairs of stories with different values.
    """

    column: str
    stories: int
    partners: int
    shares: Sequence[NeighborAgreement]
    values: Sequence[ValueSimilarity]
    surprises: Sequence[Surprise]

    def lines(self) -> list[str]:
        """Describe the shares, with those expected by chance."""
        column = printable(self.column, 60)
        return [share.sentence(column, self.partners) for share in self.shares]


def neighbor_agreement(
    similarities: CollectionSimilarity, column: str, labels: Sequence[str], k: int, seed: int = 0
) -> Agreement:
    """Compare stories' nearest neighbors with a column of a catalog.

    Args:
        similarities: similarities of the stories.
        column: name of the column.
        labels: value of each story; stories with an empty value are excluded, also as neighbors.
        k: number of neighbors per story.
        seed: seed of the permutations.

    Raises:
        DataError: if fewer than two values occur, or no value is shared by two stories.
    """
    labeled = np.flatnonzero(list(map(bool, labels)))
    names, codes = np.unique(np.array(labels)[labeled], return_inverse=True)
    sizes = np.bincount(codes, minlength=len(names))
    if len(names) < 2 or sizes.max() < 2:
        raise DataError("group_of_one_value" if len(names) == 1 else "group_without_pairs", column=column)

    compared = similarities.take(labeled)
    neighbors, values = compared.nearest(min(k, len(labeled) - 1))
    generator = np.random.default_rng(seed)
    permutations = [generator.permutation(codes) for _ in range(PERMUTATIONS)]
    counts = dict.fromkeys([1, neighbors.shape[1]])  # the same number once
    surprises = []
    for i, j, similarity in _closest_different(neighbors, values, codes):
        surprises.append(Surprise(int(labeled[i]), int(labeled[j]), similarity))
    nearest = neighbors[:, 0]
    return Agreement(
        column=column,
        stories=len(labeled),
        partners=int((sizes[codes] > 1).sum()),
        shares=[_share(neighbors[:, :count], codes, permutations) for count in counts],
        values=_value_similarities(compared, names, codes, agrees=codes[nearest] == codes),
        surprises=surprises,
    )


def _share(neighbors: IntArray, codes: IntArray, permutations: Sequence[IntArray]) -> NeighborAgreement:
    """Compute the share of neighbors (N, k) with the value of their story, among stories that share a value.

    A story with a value of its own has no such neighbor in any permutation, so that only the other stories count.
    """
    count = neighbors.shape[1]
    sizes = np.bincount(codes)[codes]
    partners = sizes[sizes > 1]
    possible = np.minimum(partners - 1, count).mean() / count
    total = len(partners) * count

    def share_of(values: IntArray) -> float:
        """Divide the number of neighbors with the value of their story by the number of neighbors."""
        agrees = values[neighbors] == values[:, None]
        return float(agrees.sum() / total)

    share = share_of(codes)
    chance = np.array(list(map(share_of, permutations)))
    low, high = np.quantile(chance, [0.025, 0.975])
    at_least = int((chance >= share).sum())
    p = (1 + at_least) / (1 + len(permutations))
    return NeighborAgreement(count, share, float(possible), float(chance.mean()), float(low), float(high), p)


def _closest_different(neighbors: IntArray, similarities: NDArray[np.floating], codes: IntArray) -> list[Surprise]:
    """Return the most similar pairs (i, j), i < j, of neighbors with different values."""
    similarity_of: dict[tuple[int, int], float] = {}
    is_different = codes[neighbors] != codes[:, None]
    for story, rank in np.argwhere(is_different).tolist():
        neighbor = int(neighbors[story, rank])
        pair = (min(story, neighbor), max(story, neighbor))
        similarity_of[pair] = float(similarities[story, rank])
    closest = sorted(similarity_of, key=lambda pair: (-similarity_of[pair], pair))[:LISTED]
    return [Surprise(i, j, similarity_of[i, j]) for i, j in closest]


def _value_similarities(
    similarities: CollectionSimilarity, names: NDArray[np.str_], codes: IntArray, agrees: NDArray[np.bool_]
) -> list[ValueSimilarity]:
    """Compare the stories of each value with each other and with the other stories, or samples of many stories.

    Args:
        similarities: similarities of the N stories.
        names: names of the values.
        codes: (N,) index of each story's value.
        agrees: (N,) True if the nearest neighbor has the same value.
    """
    rows = np.random.default_rng(0).permutation(len(codes))
    values = []
    for code, name in enumerate(names):
        has_value = codes[rows] == code
        members = rows[has_value]
        if len(members) < 2:
            continue
        sample, others = members[:SAMPLE], rows[~has_value][:SAMPLE]
        different = ~np.eye(len(sample), dtype=bool)
        within = float(similarities.between(sample, sample)[different].mean())
        to_others = float(similarities.between(sample, others).mean())
        share = float(agrees[members].mean())
        values.append(ValueSimilarity(str(name), len(members), share, within, to_others))
    return sorted(values, key=lambda value: value.within - value.to_others)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
