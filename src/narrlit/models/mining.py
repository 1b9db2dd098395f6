"""Near but wrong stories as negatives, by a model's cosines.

Letters of the shapes: N examples, M stories of the table, D dimension, K negatives that an example has already.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from narrlit.data.components import components
from narrlit.data.records import Example, Negative
from narrlit.data.table import IndexedExamples, IntArray, index_examples
from narrlit.errors import ModelError
from narrlit.models.embedding import embed
from narrlit.models.view_encoder import AnyEncoder

MINED = "mined"
PAIRS_A_BLOCK = 2**22
"""Cosines that are held at a time, 256 anchors against 16,384 stories; four times as many take twice the time."""


class NearestWrong(NamedTuple):
    """What was found, and how many pairs of an anchor and a wrong story there were."""

    rows: Tensor
    """(N, count) int64, rows of the stories, nearest first, -1 where there are no more."""
    pairs: int
    """Pairs of an anchor and a story that is wrong by the data."""
    left_out: int
    """Those of them that the margin left out."""


class Mining(NamedTuple):
    """Examples with mined negatives, and what can be told of the work."""

    examples: list[Example]
    found: NearestWrong
    truncated: int
    """Stories that were longer than the encoder reads, counted once for each prompt."""


def mine_negatives(
    encoder: AnyEncoder, examples: list[Example], count: int, margin: float = -0.05, progress: bool = True
) -> Mining:
    """Give each example the nearest wrong stories of all the examples as negatives of kind "mined".

    Negatives that were mined before are dropped; the others stay, before the new ones. A dropped one remains a story
    that can be mined.

    Args:
        encoder: on the device where it shall work.
        examples: one at least.
        count: how many negatives an example gets at most.
        margin: stories whose cosine with the anchor is above the positive's plus this are left out.
        progress: show a bar on stderr.

    Raises:
        ModelError: if the model gives vectors that are no finite numbers.
    """
    bare = [_without_mined(example) for example in examples]
    indexed = index_examples(bare)
    # After the others, so that mining a mined file numbers its stories as before.
    indexed.table.rows(text for example in examples for text in example.texts)
    anchors, stories, truncated = _vectors(encoder, indexed, progress)
    positives, banned, groups = (
        torch.from_numpy(part).to(stories.device)
        for part in (indexed.positives, indexed.negatives, alike_groups(indexed))
    )
    found = nearest_wrong(anchors, stories, positives, banned, groups, count, margin)
    mined = [
        replace(example, negatives=(*example.negatives, *_negatives(indexed, rows)))
        for example, rows in zip(bare, found.rows.tolist(), strict=True)
    ]
    return Mining(mined, found, truncated)


def alike_groups(examples: IndexedExamples) -> IntArray:
    """Groups (M,) of the table's stories, each named by its least row: a chain of anchors and positives joins a group.

    A positive of an anchor's positive is thus like the anchor, though no example says so.
    """
    links = zip(examples.anchors.tolist(), examples.positives.tolist(), strict=True)
    return components(len(examples.table), links)


def nearest_wrong(
    anchors: Tensor,
    stories: Tensor,
    positives: Tensor,
    banned: Tensor,
    groups: Tensor,
    count: int,
    margin: float = -0.05,
    pairs_a_block: int = PAIRS_A_BLOCK,
) -> NearestWrong:
    """Find each anchor's nearest stories that are neither like it by the data nor likely to be by the model.

    A story c is wrong for an anchor a with the positive p if it is in another group and not banned. It is left out
    where cos(a, c) > cos(a, p) + margin: so near, it may be like the anchor though no one has said so.

    Source: the mask of false negatives in HITS, Eq. 3, used when mining. Stories that are equally near come by row.

    Args:
        anchors: (N, D), of any length.
        stories: (M, D), of any length; may differ from `anchors` in their prompt.
        positives: (N,) int64, rows of `stories`.
        banned: (N, K) int64, rows of `stories` that are not to be found, -1 for padding.
        groups: (M,) int64, as `alike_groups` gives them; an anchor belongs to its positive's.
        count: how many to find at most.
        margin: added to the positive's cosine.
        pairs_a_block: cosines that are held at a time.
    """
    stories = F.normalize(stories, dim=-1)
    step = max(1, pairs_a_block // max(1, len(stories)))
    rows, pairs, left_out = [anchors.new_empty(0, count, dtype=torch.int64)], 0, 0
    for start in range(0, len(anchors), step):
        own, positive = banned[start : start + step], positives[start : start + step, None]
        cosines = F.normalize(anchors[start : start + step], dim=-1) @ stories.T
        wrong = groups != groups[positive]
        example, place = (own >= 0).nonzero(as_tuple=True)
        wrong[example, own[example, place]] = False
        safe = cosines <= cosines.gather(1, positive) + margin
        pairs += int(wrong.sum())
        left_out += int((wrong & ~safe).sum())
        rows.append(_highest(cosines.masked_fill(~(wrong & safe), -torch.inf), count))
    return NearestWrong(torch.cat(rows), pairs, left_out)


def _highest(values: Tensor, count: int) -> Tensor:
    """Columns (N, count) of each row's highest finite values, highest first, -1 where there are no more.

    Ties go by column; topk alone would leave to chance which of them it takes, and in which order.
    """
    least = values.topk(min(count, values.shape[1])).values[:, -1:]
    chosen = (values >= least) & values.isfinite()
    row, column = chosen.nonzero(as_tuple=True)
    order = values[row, column].argsort(descending=True, stable=True)
    order = order[row[order].argsort(stable=True)]
    row, column = row[order], column[order]
    counts = chosen.sum(1)
    rank = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    inside = rank < count
    found = row.new_full((len(values), count), -1)
    found[row[inside], rank[inside]] = column[inside]
    return found


def _vectors(encoder: AnyEncoder, examples: IndexedExamples, progress: bool) -> tuple[Tensor, Tensor, int]:
    """Vectors of the anchors (N, D) and of all stories (M, D), and how many texts were cut."""
    texts = examples.table.texts
    stories, truncated = embed(encoder, texts, "candidate", progress)
    anchors = stories[examples.anchors]
    if encoder.prompt("anchor") != encoder.prompt("candidate"):
        anchors, cut = embed(encoder, [texts[row] for row in examples.anchors], "anchor", progress)
        truncated += cut
    if not (np.isfinite(stories).all() and np.isfinite(anchors).all()):
        raise ModelError(f"{encoder.config.model} gives vectors that are no finite numbers: name another model")
    device = next(encoder.parameters()).device
    place = device if device.type == "cuda" else torch.device("cpu")
    return torch.from_numpy(anchors).to(place), torch.from_numpy(stories).to(place), truncated


def _without_mined(example: Example) -> Example:
    others = tuple(negative for negative in example.negatives if negative.kind != MINED)
    return replace(example, negatives=others)


def _negatives(examples: IndexedExamples, rows: list[int]) -> list[Negative]:
    return [Negative(examples.table[row], MINED) for row in rows if row >= 0]
