"""Hard negatives: stories close to an anchor by a model's cosines that are not known to be similar to it.

Letters of the shapes: N examples, M stories, D dimension, K negatives that an example has already.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn import functional as F

from narrlit.data.schema import PADDING, IntArray, TrainingExample, TrainingExamples
from narrlit.encoding.story_encoder import StoryEncoder

MINED = "mined"
PAIRS_PER_BLOCK = 2**22
"""Cosines in memory at a time, 256 anchors by 16,384 stories; four times as many take twice the time."""


class NearestNegatives(NamedTuple):
    """Rows (N, count) of the nearest negatives of N anchors, nearest first, -1 where there are no more.

    `pairs` is the number of pairs of an anchor and a negative by the data, `excluded` of those that the margin
    excluded.
    """

    rows: Tensor
    pairs: int
    excluded: int


class Mining(NamedTuple):
    """Examples with mined negatives, and the result of the search."""

    examples: TrainingExamples
    nearest: NearestNegatives


def mine_negatives(
    encoder: StoryEncoder, examples: TrainingExamples, count: int, margin: float = -0.05, progress: bool = True
) -> Mining:
    """Give each example the nearest negatives among the stories of all examples, with kind "mined".

    Negatives mined before are replaced, and can be mined again; the others stay, before the new ones. An example gets
    `count` at most, and none whose cosine with the anchor is above the positive's plus `margin`.
    """
    bare = TrainingExamples(examples.stories, [_with_mined(example, []) for example in examples.rows])
    # Replaced negatives last, so that mining a mined file again breaks ties as before.
    used = dict.fromkeys(index for rows in (bare.rows, examples.rows) for row in rows for index in row.indices)
    stories = np.array(list(used), dtype=np.int64)
    row_of = np.full(len(examples.stories) + 1, PADDING, dtype=np.int64)  # the last one serves PADDING
    row_of[stories] = np.arange(len(stories))
    anchors, positives, banned = (row_of[column] for column in (bare.anchors, bare.positives, bare.negatives))
    candidates = encoder.embed([examples.stories[i] for i in stories.tolist()], "candidate", progress)
    vectors = encoder.embed([examples.stories[i] for i in bare.anchors.tolist()], "anchor", progress)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    groups = similar_groups(anchors, positives, len(stories))
    columns = (torch.from_numpy(part).to(device) for part in (vectors, candidates, positives, banned, groups))
    a, c, p, b, g = columns
    nearest = nearest_negatives(a, c, p, b, g, count, margin)
    mined = [
        _with_mined(example, stories[[row for row in rows if row >= 0]].tolist())
        for example, rows in zip(bare.rows, nearest.rows.tolist(), strict=True)
    ]
    return Mining(TrainingExamples(examples.stories, mined), nearest)


def similar_groups(anchors: IntArray, positives: IntArray, count: int) -> IntArray:
    """Group stories (M,) that chains of anchors and positives connect.

    A positive of an anchor's positive is thus similar to the anchor, though no example says so.
    """
    links = coo_array((np.ones(len(anchors), dtype=np.int8), (anchors, positives)), shape=(count, count))
    groups: IntArray = connected_components(links, directed=False)[1].astype(np.int64)
    return groups


def nearest_negatives(
    anchors: Tensor,
    stories: Tensor,
    positives: Tensor,
    banned: Tensor,
    groups: Tensor,
    count: int,
    margin: float = -0.05,
    pairs_per_block: int = PAIRS_PER_BLOCK,
) -> NearestNegatives:
    """Find each anchor's nearest stories that are neither similar to it by the data nor likely to be by the model.

    A story c is a negative of an anchor a with the positive p if it is in another group and not banned. It is excluded
    if cos(a, c) > cos(a, p) + margin: so near, it may be a false negative.

    Source: the mask of false negatives in HITS, Eq. 3, used when mining. Equally near stories come by row.

    Args:
        anchors: (N, D), of any length.
        stories: (M, D), of any length.
        positives: (N,) rows of `stories`.
        banned: (N, K) rows of `stories` to leave out, -1 for padding.
        groups: (M,) as `similar_groups` gives them; an anchor belongs to its positive's.
        count: how many to find at most.
        margin: added to the positive's cosine.
        pairs_per_block: cosines held at a time.
    """
    stories = F.normalize(stories, dim=-1)
    step = max(1, pairs_per_block // max(1, len(stories)))
    rows, pairs, excluded = [], 0, 0
    for start in range(0, len(anchors), step):
        own, positive = banned[start : start + step], positives[start : start + step, None]
        cosines = F.normalize(anchors[start : start + step], dim=-1) @ stories.T
        negative = groups != groups[positive]
        example, column = (own >= 0).nonzero(as_tuple=True)
        negative[example, own[example, column]] = False
        safe = cosines <= cosines.gather(1, positive) + margin
        pairs += int(negative.sum())
        excluded += int((negative & ~safe).sum())
        rows.append(_highest(cosines.masked_fill(~(negative & safe), -torch.inf), count))
    return NearestNegatives(torch.cat(rows), pairs, excluded)


def _highest(values: Tensor, count: int) -> Tensor:
    """Return columns (N, count) of each row's highest finite values, ties by column, -1 where there are no more."""
    columns = values.argsort(dim=1, descending=True, stable=True)[:, :count]  # topk leaves the order of ties to chance
    columns = columns.where(values.gather(1, columns).isfinite(), -1)
    return F.pad(columns, (0, count - columns.shape[1]), value=-1)


def _with_mined(example: TrainingExample, mined: list[int]) -> TrainingExample:
    """Replace an example's mined negatives."""
    others = [pair for pair in zip(example.negatives, example.kinds, strict=True) if pair[1] != MINED]
    pairs = [*others, *((index, MINED) for index in mined)]
    return replace(example, negatives=tuple(index for index, _ in pairs), kinds=tuple(kind for _, kind in pairs))
