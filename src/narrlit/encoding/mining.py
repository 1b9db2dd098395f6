"""Hard negatives: stories with a high cosine to an anchor that are not known to be similar to it.

Letters in shapes: N examples, M stories, D dimension, K negatives that an example has already.
"""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn import functional as F

from narrlit.console import say_truncated
from narrlit.data.readers import read_examples, say_rows
from narrlit.data.schema import PADDING, FloatArray, IntArray, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError

MINED = "mined"
PAIRS_PER_BLOCK = 2**22
"""Cosines in memory at a time, 256 anchors by 16,384 stories; four times as many take twice the time."""


class NearestNegatives(NamedTuple):
    """Nearest negatives of N anchors.

    Attributes:
        rows: (N, count) rows of the negatives, nearest first, -1 where there are no more.
        pairs: number of pairs of an anchor and a negative by the data.
        excluded: number of those that the margin excluded.
    """

    rows: Tensor
    pairs: int
    excluded: int


@dataclass(frozen=True, eq=False)
class Mining:
    """Training examples with mined negatives.

    Attributes:
        examples: N examples; mined negatives come after the others, with kind "mined".
        nearest: the search's result.
    """

    examples: TrainingExamples
    nearest: NearestNegatives

    def table(self) -> pd.DataFrame:
        """Tabulate the mined negatives, a row each: number of the example, texts of anchor, positive and negative."""
        rows = []
        for number, (example, texts) in enumerate(zip(self.examples, self.examples.texts(), strict=True)):
            anchor, positive, *negatives = texts
            for negative, kind in zip(negatives, example.kinds, strict=True):
                if kind == MINED:
                    rows.append({"example": number, "anchor": anchor, "positive": positive, "negative": negative})
        return pd.DataFrame(rows, columns=["example", "anchor", "positive", "negative"])

    def write(self, path: str | Path) -> None:
        """Write the examples to JSON Lines (.jsonl)."""
        write_examples(path, self.examples)

    def __str__(self) -> str:
        """Describe in one line how many were mined, how many examples lack some, and what the margin left out."""
        nearest = self.nearest
        counts = (nearest.rows >= 0).sum(1)
        wanted = nearest.rows.shape[1]
        line = f"{int(counts.sum())} negatives mined for {len(counts)} examples; "
        line += f"{int((counts < wanted).sum())} got fewer than {wanted}, {int((counts == 0).sum())} none; "
        if not nearest.pairs:
            return line + "no story is dissimilar to any anchor: links of positives join them all"
        return line + f"the margin left out {100 * nearest.excluded / nearest.pairs:.1f} % of dissimilar stories"


def mine(
    examples: str | Path | TrainingExamples,
    encoder: StoryEncoder,
    *,
    per_example: int = 9,
    margin: float = -0.05,
    strict: bool = False,
    progress: bool = False,
) -> Mining:
    r"""Add hard negatives to each training example: stories of all examples near its anchor but not similar to it.

    Stories connected to the anchor by a chain of anchors and positives are never added, nor stories so near that they
    may be false negatives. Negatives of an earlier mining are replaced, all others kept.

    Args:
        examples: a file of labeled triples, or of anchors with positives and negatives; or examples in memory.
        encoder: encoder from `narrlit.load`.
        per_example: maximum number of negatives to add to an example.
        margin: skip stories with a cosine to the anchor above that of the positive plus this margin, -2 to 2.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        progress: print how files were read, and show a progress bar, on stderr.

    Returns:
        A `Mining`: `.examples`, `.table()`, `.write(path)`.

    Raises:
        DataError: if the file can't be read.
        ModelError: if the model can't be loaded.
        OptionError: if a number is out of range.

    >>> import narrlit
    >>> rows = [
    ...     '{"anchor": "A knight seeks a grail.", "positive": "A knight looks for a cup."}',
    ...     '{"anchor": "A bank lowers its rates.", "positive": "Money gets cheaper."}',
    ... ]
    >>> path = getfixture("tmp_path") / "examples.jsonl"
    >>> _ = path.write_text("\n".join(rows))
    >>> mining = mine(path, narrlit.load("minilm"), per_example=1)
    >>> mining.table()["negative"].tolist()
    ['Money gets cheaper.', 'A knight seeks a grail.']
    """
    if per_example < 1:
        raise OptionError(f"`per_example={per_example}`: must be at least 1")
    if not -2 <= margin <= 2:
        raise OptionError(f"`margin={margin}`: must be a difference of cosines, from -2 to 2")
    if not isinstance(examples, TrainingExamples):
        examples = read_examples(examples, strict=strict)
    if progress:
        say_rows(examples)
    mining = mine_negatives(encoder, examples, per_example, margin, progress)
    if progress:
        say_truncated(encoder.coverage, encoder.facts.max_length, *encoder.facts.unit)
    return mining


def mine_negatives(
    encoder: StoryEncoder, examples: TrainingExamples, count: int, margin: float = -0.05, progress: bool = True
) -> Mining:
    """Give each example the nearest negatives among the stories of all examples, with kind "mined".

    Negatives mined before are replaced, and can be mined again; the others stay, before the new ones. An example gets
    `count` at most, and none whose cosine with the anchor is above the positive's plus `margin`.
    """
    bare = TrainingExamples(examples.stories, [_with_mined(example, []) for example in examples.rows])
    # Replaced negatives last, so that mining a mined file again breaks ties as before.
    used = dict.fromkeys(chain.from_iterable(row.indices for row in chain(bare.rows, examples.rows)))
    indices = np.array(list(used), dtype=np.int64)
    row_of = np.full(len(examples.stories) + 1, PADDING, dtype=np.int64)  # the last one serves PADDING
    row_of[indices] = np.arange(len(indices))
    anchors, positives, banned = row_of[bare.anchors], row_of[bare.positives], row_of[bare.negatives]
    candidates = encoder.embed([examples.stories[i] for i in indices.tolist()], "candidate", progress)
    vectors = encoder.embed([examples.stories[i] for i in bare.anchors.tolist()], "anchor", progress)
    groups = similar_groups(anchors, positives, len(indices))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def to_device(array: FloatArray | IntArray) -> Tensor:
        return torch.from_numpy(array).to(device)

    nearest = nearest_negatives(
        to_device(vectors),
        to_device(candidates),
        to_device(positives),
        to_device(banned),
        to_device(groups),
        count,
        margin,
    )
    mined = []
    for example, rows in zip(bare.rows, nearest.rows.cpu().numpy(), strict=True):
        mined.append(_with_mined(example, indices[rows[rows >= 0]].tolist()))
    return Mining(TrainingExamples(examples.stories, mined), nearest)


def similar_groups(anchors: IntArray, positives: IntArray, count: int) -> IntArray:
    """Group stories (M,) that chains of anchors and positives connect.

    A positive of a positive thus counts as similar to the anchor, although no example states it.
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
    """Find the nearest stories of each anchor that are neither similar to it by the data nor probably by the model.

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
        block = slice(start, start + step)
        cosines = F.normalize(anchors[block], dim=-1) @ stories.T
        positive = positives[block, None]
        negative = groups != groups[positive]
        banned_rows = banned[block]
        example, column = (banned_rows >= 0).nonzero(as_tuple=True)
        negative[example, banned_rows[example, column]] = False
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
    others = [(index, kind) for index, kind in zip(example.negatives, example.kinds, strict=True) if kind != MINED]
    pairs = others + [(index, MINED) for index in mined]
    return replace(example, negatives=tuple(index for index, _ in pairs), kinds=tuple(kind for _, kind in pairs))
