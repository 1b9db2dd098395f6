"""Ranks of similarities, from which the page takes its words."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from narrlit.explore.pairs import ROUNDING
from narrlit.library.options import COMPARED_ALL
from narrlit.measures.collection import sample_rows
from narrlit.measures.fit import REFERENCES
from narrlit.serving.collection_models import Standing
from narrlit.serving.shelf import Snapshot


def standings(
    snapshot: Snapshot, table: pd.DataFrame, compared: int | None, ranked: int, measure: str | None
) -> list[Standing]:
    """Rank the results of a search among all stories of the collection.

    If the collection is large, or searched by another measure than its own, the rank is that of the search, and the
    word for a similarity follows from it alone.

    Args:
        snapshot: the collection.
        table: R results, with the columns id, rank and similarity.
        compared: row of the story that they are compared with; None: it is a text.
        ranked: number of stories that the search ranks.
        measure: measure of the search; None: that of the collection.
    """
    ranks = table["rank"].tolist()
    if len(snapshot) > COMPARED_ALL or measure not in (None, snapshot.stories.measure):
        return [Standing.of_rank(rank, ranked, (rank - 1, rank - 1), ranked - 1) for rank in ranks]
    rows = [snapshot.row_of(id) for id in table["id"]]
    similarities = table["similarity"].tolist()
    closer = num_closer(snapshot, rows, similarities)
    others = len(snapshot) - 1
    if compared is not None:
        better = num_closer(snapshot, [compared] * len(rows), similarities)
        return [Standing.of_rank(a + 1, others, (a, b), others - 1) for a, b in zip(better, closer, strict=True)]
    results = []
    for rank, number in zip(ranks, closer, strict=True):
        # Of a part of the collection, only the other side of the comparison has a rank among all.
        nearer = rank - 1 if ranked == len(snapshot) else number
        results.append(Standing.of_rank(rank, ranked, (nearer, number), others))
    return results


def num_closer(snapshot: Snapshot, rows: Sequence[int], similarities: Sequence[float]) -> list[int]:
    """Count the stories that are more similar to each of P stories than a similarity, (P,).

    Of a collection of more than 1,000 stories, a random sample of 1,000 is counted.

    Args:
        snapshot: the collection.
        rows: (P,) rows of the stories.
        similarities: (P,) similarities.
    """
    if not rows:
        return []
    stories, sample = np.array(rows), sample_rows(len(snapshot))
    values = snapshot.stories.similarities.between(stories, sample)
    limits = np.array(similarities)[:, None] + ROUNDING
    is_closer = (values > limits) & (sample[None, :] != stories[:, None])
    counts: list[int] = is_closer.sum(axis=1).tolist()
    return counts


def num_others(snapshot: Snapshot) -> int:
    """Count the stories among which `num_closer` counts for a pair, without the pair."""
    return min(len(snapshot), REFERENCES) - 2
