"""Agreement of similarity with a catalog: share of nearest neighbors with the same value in a column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray
from narrlit.errors import DataError, printable
from narrlit.explore.pairs import nearest
from narrlit.metrics.significance import p_text

NEAREST = (
    "Of the {partners:,} stories that share their {column} with another, {share} have such a story as nearest neighbor"
)
AMONG = "Of the COUNT nearest neighbors of each of them, {share} share its {column}"
PERMUTATIONS, LISTED = 1000, 10
"""Permutations of the column behind chance levels; surprises that are listed."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of nearest neighbors with a column's values, among the N stories that have one.

    Attributes:
        column: its name.
        stories: N.
        partners: number of stories whose value another story has, too; shares are of these, since others can't agree.
        shares: a row for the nearest neighbor and one for the k nearest: share of neighbors with the story's value,
            the largest share possible, and what 1,000 permutations of the values give: mean, 95 % range, p.
        values: a row a value of two stories or more, those whose stories are least alike first.
        surprises: the most similar pairs (i, j, similarity) of stories with different values.
    """

    column: str
    stories: int
    partners: int
    shares: Sequence[dict[str, Any]]
    values: Sequence[dict[str, Any]]
    surprises: Sequence[tuple[int, int, float]]

    def lines(self) -> list[str]:
        """Describe the shares, with those expected by chance."""
        column = printable(self.column, 60)
        return [
            f"{row['sentence'].format(partners=self.partners, share=_percent(row['share']), column=column)}; chance "
            f"{_percent(row['chance'])} (95 % of permutations: {_percent(row['low'])} to {_percent(row['high'])}), "
            + p_text(row["p"])
            + (f"; {_percent(row['possible'])} could at most" if row["possible"] < 1 else "")
            for row in self.shares
        ]


def agreement(vectors: FloatArray, column: str, labels: Sequence[str], k: int, seed: int = 0) -> Agreement:
    """Compare stories' nearest neighbors with a column of a catalog.

    Args:
        vectors: (N, D) unit vectors.
        column: name of the column.
        labels: (N) values; stories whose value is empty are left out, as neighbors too.
        k: neighbors of a story.
        seed: of the permutations.

    Raises:
        DataError: if no value, or only one, is that of two stories.
    """
    rows = np.array([row for row, label in enumerate(labels) if label])
    names, codes = np.unique([label for label in labels if label], return_inverse=True)
    sizes = np.bincount(codes, minlength=len(names))
    if len(names) < 2 or sizes.max() < 2:
        problem = "has one value only" if len(names) == 1 else "has no value that two stories share"
        raise DataError(f"`group={column}`: the column {problem}; name a column of categories, such as a tale type")
    vectors, k = vectors[rows], min(k, len(rows) - 1)
    indices, cosines = nearest(vectors, k)
    generator = np.random.default_rng(seed)
    orders = [codes, *(generator.permutation(codes) for _ in range(PERMUTATIONS))]
    same = codes[indices] == codes[:, None]
    with_partner = sizes[codes] > 1
    partners = int(with_partner.sum())
    shares = []
    for count, sentence in {1: NEAREST, k: AMONG.replace("COUNT", str(k))}.items():
        matches = [int((order[indices[:, :count]] == order[:, None]).sum()) for order in orders]
        # A story without a partner has no match, in any order: the matches are those of the others.
        share, *chance = [number / (partners * count) for number in matches]
        low, high = np.quantile(chance, [0.025, 0.975])
        most = np.minimum(sizes[codes][with_partner] - 1, count)
        row = {"sentence": sentence, "share": share, "possible": float(most.mean() / count)}
        row |= {"chance": float(np.mean(chance)), "low": float(low), "high": float(high)}
        shares.append(row | {"p": (1 + sum(value >= share for value in chance)) / (1 + PERMUTATIONS)})
    pairs = {
        (min(i, j), max(i, j)): float(cosine)
        for i, (near, values) in enumerate(zip(indices.tolist(), cosines, strict=True))
        for j, cosine in zip(near, values, strict=True)
        if codes[i] != codes[j]
    }
    closest = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:LISTED]
    return Agreement(
        column,
        len(rows),
        partners,
        shares,
        _by_value(vectors, names, codes, same[:, 0]),
        [(int(rows[i]), int(rows[j]), pairs[i, j]) for i, j in closest],
    )


def _by_value(
    vectors: FloatArray, names: NDArray[np.str_], codes: NDArray[np.intp], shared: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """Compare the mean similarity within each value with that to the other stories."""
    total, values = vectors.sum(axis=0), []
    for code, name in enumerate(names):
        inside = codes == code
        n, summed = int(inside.sum()), vectors[inside].sum(axis=0)
        if n > 1:
            within = float(summed @ summed - (vectors[inside] ** 2).sum()) / (n * (n - 1))
            outside = float(summed @ (total - summed)) / (n * (len(codes) - n))
            row = {"value": str(name), "stories": n, "share": float(shared[inside].mean())}
            values.append(row | {"within": within, "to others": outside})
    return sorted(values, key=lambda row: row["within"] - row["to others"])


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
