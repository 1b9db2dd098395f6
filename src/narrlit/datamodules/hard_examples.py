"""Training examples that a frozen encoder finds hard.

Letters of the shapes: N examples, H hard ones, S stories, D dimension.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from narrlit.data.batch import StoryReader
from narrlit.data.schema import IntArray, TrainingExamples

Cosines = np.ndarray[Any, np.dtype[np.floating[Any]]]


def hard_examples(near: Cosines, far: Cosines, share: float) -> tuple[IntArray, int]:
    """Select examples that are ranked wrongly, of these the closest calls, up to a share of all.

    Source: Comhis, section 4.3: incorrectly ranked by the base embeddings, among these small margins.

    Args:
        near: (N,) cosine of each anchor with its positive.
        far: (N,) highest cosine of each anchor with a negative. A tie is wrong.
        share: of all N, 0 to 1, rounded down.

    Returns:
        (H,) the hard examples, closest calls first, and how many examples are ranked wrongly.

    >>> hard_examples(np.array([0.9, 0.5, 0.2, 0.4]), np.array([0.1, 0.6, 0.8, 0.4]), share=0.5)
    (array([3, 1]), 3)
    """
    margins = near - far
    wrong = np.flatnonzero(margins <= 0)
    closest = wrong[np.argsort(-margins[wrong], kind="stable")]
    return closest[: int(share * len(margins))].astype(np.int64), len(wrong)


def example_cosines(examples: TrainingExamples, reader: StoryReader) -> tuple[Cosines, Cosines]:
    """Compute cosines (N,) of each anchor with its positive, and with its closest negative.

    Examples without a negative have -inf, as nothing is closer than their positive.
    """
    anchors, positives, negatives = examples.anchors, examples.positives, examples.negatives
    anchor_row, anchor_units = _units(examples, anchors, reader, "anchor")
    others = np.concatenate([positives, negatives[negatives >= 0]])
    row, units = _units(examples, others, reader, "candidate")
    x = anchor_units[anchor_row[anchors]]
    near = np.einsum("nd,nd->n", x, units[row[positives]])
    far = np.full(len(examples), -np.inf, dtype=near.dtype)
    for column in negatives.T:  # one column at a time: N x K x D numbers would not fit
        cosines = np.einsum("nd,nd->n", x, units[row[np.maximum(column, 0)]])
        far = np.maximum(far, np.where(column < 0, -np.inf, cosines))
    return near, far


def _units(
    examples: TrainingExamples, indices: IntArray, reader: StoryReader, role: Any
) -> tuple[IntArray, np.ndarray[Any, Any]]:
    """Return for each story index its row among the unit embeddings, and these."""
    different = np.unique(indices)
    row = np.zeros(len(examples.stories), dtype=np.int64)
    row[different] = np.arange(len(different))
    texts: Sequence[str] = [examples.stories[index].text for index in different.tolist()]
    embeddings = reader.text_embeddings(texts, role)
    return row, embeddings / np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), 1e-12)
