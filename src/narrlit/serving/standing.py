"""Ranks of similarities, from which the page takes its words."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from narrlit.explore.matched_pair import likeness
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

    A word for a similarity needs the ranks of both sides. A text that is searched for has none among its results, and
    neither has a story of a large collection, or one that is compared by another measure than the collection's own:
    these get the rank of the search, without a word.

    Args:
        snapshot: the collection.
        table: R results, with the columns id, rank and similarity.
        compared: row of the story that they are compared with; None: it is a text.
        ranked: number of stories that the search ranks.
        measure: measure of the search; None: that of the collection.
    """
    has_both_ranks = len(snapshot) <= COMPARED_ALL and measure in (None, snapshot.stories.measure)
    if compared is None or not has_both_ranks:
        return [Standing(rank=rank, of=ranked, alike=None) for rank in table["rank"].tolist()]
    rows = [snapshot.row_of(id) for id in table["id"]]
    similarities = table["similarity"].tolist()
    closer = num_closer(snapshot, rows, similarities)
    others = len(snapshot) - 1
    better = num_closer(snapshot, [compared] * len(rows), similarities)
    results = []
    for nearer, number in zip(better, closer, strict=True):
        word = likeness((nearer, number), others - 1)
        results.append(Standing(rank=nearer + 1, of=others, alike=word))
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
