"""Hard negatives: stories with a high cosine to an anchor that are not known to be similar to it.

Letters in shapes: N examples, M stories, D dimension, K existing negatives of an example.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
from narrlit.data.schema import PADDING, IntArray, TrainingExample, TrainingExamples
from narrlit.data.writers import write_examples
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.errors import OptionError
from narrlit.models.config import Role

MINED = "mined"
PAIRS_PER_BLOCK = 2**22
"""Number of cosines in memory at a time, 256 anchors by 16,384 stories; with four times as many it is half as fast."""


class NearestNegatives(NamedTuple):
    """Nearest negatives of N anchors.

    Attributes:
        rows: (N, count) rows of the negatives, nearest first, then -1 if there are fewer.
        pairs: number of pairs of an anchor and a story that is dissimilar according to the data.
        excluded: number of these pairs that the margin excluded.
    """

    rows: Tensor
    pairs: int
    excluded: int


@dataclass(frozen=True, eq=False)
class Mining:
    """Training examples with mined negatives.

    Attributes:
        examples: N examples; mined negatives come after the others, with kind "mined".
        nearest: result of the search.
    """

    examples: TrainingExamples
    nearest: NearestNegatives

    def table(self) -> pd.DataFrame:
        """Tabulate the mined negatives: number of the example, and texts of anchor, positive and negative."""
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
        """Summarize in one line the numbers of negatives, of examples with too few, and of excluded stories."""
        nearest = self.nearest
        requested = nearest.rows.shape[1]
        counts = (nearest.rows >= 0).sum(1)
        with_fewer, with_none = int((counts < requested).sum()), int((counts == 0).sum())
        mined = f"{int(counts.sum())} negatives mined for {len(counts)} examples"
        missing = f"{with_fewer} got fewer than {requested}, {with_none} none"
        if nearest.pairs:
            excluded = f"the margin excluded {100 * nearest.excluded / nearest.pairs:.1f} % of dissimilar stories"
        else:
            excluded = "no story is dissimilar to any anchor, because positives connect all of them"
        return f"{mined}; {missing}; {excluded}"


def mine(
    examples: str | Path | TrainingExamples,
    encoder: StoryEncoder,
    *,
    per_example: int = 9,
    margin: float = -0.05,
    strict: bool = False,
    progress: bool = False,
) -> Mining:
    r"""Add hard negatives to each training example: stories of other examples that are close to its anchor.

    Stories that are connected to the anchor by a chain of positives are never added, nor stories so close that they may
    be false negatives. Negatives from an earlier mining are replaced, all others are kept.

    Args:
        examples: a file of labeled triples, or of anchors with positives and negatives; or examples in memory.
        encoder: encoder from `narrlit.load`.
        per_example: maximum number of negatives to add to an example.
        margin: skip stories whose cosine with the anchor is above that of the positive plus this margin, -2 to 2.
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
        raise OptionError("at_least", option="per_example", found=per_example, least=1)
    if not -2 <= margin <= 2:
        raise OptionError("margin_of_cosines", margin=margin)
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
    """Add the nearest negatives among the stories of all examples to each example, with kind "mined".

    Previously mined negatives are replaced, and can be mined again; other negatives are kept, before the new ones. An
    example gets at most `count` negatives, none with a cosine above that of the positive plus `margin`.
    """
    unmined = TrainingExamples(examples.stories, list(map(_without_mined, examples.rows)))
    # Replaced negatives come last, so that mining a file again resolves ties in the same way.
    indices = _story_indices(unmined.rows + examples.rows)
    row_of = np.full(len(examples.stories) + 1, PADDING, dtype=np.int64)  # index -1 (PADDING) gives PADDING
    row_of[indices] = np.arange(len(indices))
    anchors, positives, existing = row_of[unmined.anchors], row_of[unmined.positives], row_of[unmined.negatives]
    groups = similar_groups(anchors, positives, len(indices))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def embed(story_indices: IntArray, role: Role) -> Tensor:
        stories = [examples.stories[index] for index in story_indices.tolist()]
        return torch.from_numpy(encoder.embed(stories, role, progress)).to(device)

    candidates = embed(indices, "candidate")
    nearest = nearest_negatives(
        embed(unmined.anchors, "anchor"),
        candidates,
        torch.from_numpy(positives).to(device),
        torch.from_numpy(existing).to(device),
        torch.from_numpy(groups).to(device),
        count,
        margin,
    )
    mined = []
    for example, rows in zip(unmined.rows, nearest.rows.cpu().numpy(), strict=True):
        mined.append(_with_mined(example, indices[rows[rows >= 0]].tolist()))
    return Mining(TrainingExamples(examples.stories, mined), nearest)


def _story_indices(examples: Iterable[TrainingExample]) -> IntArray:
    """List the distinct story indices of examples, in order of appearance."""
    indices: dict[int, None] = {}
    for example in examples:
        indices.update(dict.fromkeys(example.indices))
    return np.array(list(indices), dtype=np.int64)


def _without_mined(example: TrainingExample) -> TrainingExample:
    """Remove the mined negatives of an example."""
    negatives: list[int] = []
    kinds: list[str | None] = []
    for index, kind in zip(example.negatives, example.kinds, strict=True):
        if kind != MINED:
            negatives.append(index)
            kinds.append(kind)
    return replace(example, negatives=tuple(negatives), kinds=tuple(kinds))


def _with_mined(example: TrainingExample, mined: Sequence[int]) -> TrainingExample:
    """Add mined negatives to an example, after its own."""
    negatives = (*example.negatives, *mined)
    kinds = (*example.kinds, *[MINED] * len(mined))
    return replace(example, negatives=negatives, kinds=kinds)


def similar_groups(anchors: IntArray, positives: IntArray, count: int) -> IntArray:
    """Group stories (M,) that are connected by chains of anchors and positives.

    A positive of a positive thus counts as similar to the anchor, even if no example says so.
    """
    ones = np.ones(len(anchors), dtype=np.int8)
    links = coo_array((ones, (anchors, positives)), shape=(count, count))
    _, labels = connected_components(links, directed=False)
    groups: IntArray = labels.astype(np.int64)
    return groups


def nearest_negatives(
    anchors: Tensor,
    stories: Tensor,
    positives: Tensor,
    existing: Tensor,
    groups: Tensor,
    count: int,
    margin: float = -0.05,
    pairs_per_block: int = PAIRS_PER_BLOCK,
) -> NearestNegatives:
    """Find the nearest stories to each anchor that are similar to it neither in the data nor, probably, in truth.

    A story c is a negative of an anchor a with positive p if it is in another group and not in `existing`. It may be a
    false negative, and is left out, if cos(a, c) > cos(a, p) + margin. Ties are ordered by row.

    Source: the mask of false negatives in HITS, Eq. 3, applied to mining.

    Args:
        anchors: (N, D), of any length.
        stories: (M, D), of any length.
        positives: (N,) rows of `stories`.
        existing: (N, K) rows of the negatives that the examples already have, -1 for padding.
        groups: (M,) groups from `similar_groups`; an anchor belongs to the group of its positive.
        count: maximum number of negatives.
        margin: added to the cosine of the positive.
        pairs_per_block: number of cosines in memory at a time.
    """
    stories = F.normalize(stories, dim=-1)
    step = max(1, pairs_per_block // max(1, len(stories)))
    rows, num_pairs, num_too_close = [], 0, 0
    for start in range(0, len(anchors), step):
        block = slice(start, start + step)
        cosines = F.normalize(anchors[block], dim=-1) @ stories.T
        positive = positives[block, None]
        negative = groups != groups[positive]
        existing_rows = existing[block]
        example, column = (existing_rows >= 0).nonzero(as_tuple=True)
        negative[example, existing_rows[example, column]] = False
        far_enough = cosines <= cosines.gather(1, positive) + margin
        num_pairs += int(negative.sum())
        num_too_close += int((negative & ~far_enough).sum())
        rows.append(_highest(cosines.masked_fill(~(negative & far_enough), -torch.inf), count))
    return NearestNegatives(torch.cat(rows), num_pairs, num_too_close)


def _highest(values: Tensor, count: int) -> Tensor:
    """Return the columns (N, count) of each row's highest finite values, ties by column, then -1 if there are fewer."""
    columns = values.argsort(dim=1, descending=True, stable=True)[:, :count]  # topk orders ties arbitrarily
    columns = columns.where(values.gather(1, columns).isfinite(), -1)
    return F.pad(columns, (0, count - columns.shape[1]), value=-1)
