"""Training examples that a frozen encoder finds hard.

Letters in shapes: N examples, H hard ones, D dimension.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrlit.data.batch import StoryReader
from narrlit.data.schema import IntArray, Role, TrainingExamples
from narrlit.errors import OptionError

Cosines = NDArray[np.floating]


@dataclass(frozen=True)
class HardExampleSampling:
    """Sampling of training examples that the frozen encoder ranks wrongly.

    Source: Comhis, section 4.3; Table 3, "hard example ratio (dev) 0.2", read as a ratio of the dev set, not of its
    wrongly ranked triples: Table 2 has 42 of 200 dev triples more right with hard examples, of which 40 may then train.

    Attributes:
        share: largest share of hard examples among all that are mined: of those ranked wrongly, the closest calls. If
            fewer are ranked wrongly, all of these are hard. Validation triples are mined separately.
        weight: how much more often a hard example is drawn than another, with replacement; 1: every example once an
            epoch.
        mine_validation: also train on hard triples of the validation data, with their labels, as the paper does:
            validation accuracy is then no estimate for other triples, unless `data.validation_share` sets apart those
            that are mined. The run is flagged.
    """

    share: float = 0.2
    weight: float = 1.0
    mine_validation: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise OptionError(f"hard_examples.share is {self.share}: must be between 0 and 1")
        if not self.weight > 0:
            raise OptionError(f"hard_examples.weight is {self.weight}: must be a positive number")


@dataclass(frozen=True)
class HardExampleRecord:
    """Counts of training examples for run.json.

    Attributes:
        wrong: examples that the frozen encoder ranks wrongly.
        allowed: examples that may be hard, by the share.
        hard: examples that are.
        mined_validation: validation triples that train too; None where none may.
    """

    wrong: int
    allowed: int
    hard: int
    mined_validation: int | None = None


def hard_examples(near: Cosines, far: Cosines, share: float) -> tuple[IntArray, int]:
    """Select examples that are ranked wrongly, of these the closest calls, up to a share of all.

    Source: Comhis, section 4.3: incorrectly ranked by the base embeddings, among these small margins.

    `near` (N,) are cosines of anchors with positives, `far` (N,) the highest with a negative; a tie is wrong. Returns
    the hard examples (H,), closest calls first, and how many examples are ranked wrongly.

    >>> hard_examples(np.array([0.9, 0.5, 0.2, 0.4]), np.array([0.1, 0.6, 0.8, 0.4]), share=0.5)
    (array([3, 1]), 3)
    """
    margins = near - far
    wrong = np.flatnonzero(margins <= 0)
    closest = wrong[np.argsort(-margins[wrong], kind="stable")]
    return closest[: int(share * len(margins))].astype(np.int64), len(wrong)


@dataclass(frozen=True, eq=False)
class _UnitVectors:
    """Unit vectors of some of M stories.

    Attributes:
        vectors: (U, D) of different stories.
        rows: (M,) row of each story's vector, by story index; 0 for stories without one.
    """

    vectors: Cosines
    rows: IntArray

    @classmethod
    def embed(cls, examples: TrainingExamples, indices: IntArray, role: Role, reader: StoryReader) -> "_UnitVectors":
        """Embed the stories of these indices, repeated ones once."""
        different = np.unique(indices)
        rows = np.zeros(len(examples.stories), dtype=np.int64)
        rows[different] = np.arange(len(different))
        texts = [examples.stories[index].text for index in different.tolist()]
        embeddings = reader.text_embeddings(texts, role)
        lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
        return cls(embeddings / np.maximum(lengths, 1e-12), rows)

    def of(self, indices: IntArray) -> Cosines:
        """Return the vectors (N, D) of stories by their indices (N,)."""
        return self.vectors[self.rows[indices]]


def example_cosines(examples: TrainingExamples, reader: StoryReader) -> tuple[Cosines, Cosines]:
    """Compute cosines (N,) of each anchor with its positive, and with its closest negative: -inf without negatives."""
    negatives = examples.negatives
    others = np.concatenate([examples.positives, negatives[negatives >= 0]])
    anchors = _UnitVectors.embed(examples, examples.anchors, "anchor", reader).of(examples.anchors)
    candidates = _UnitVectors.embed(examples, others, "candidate", reader)
    near = np.einsum("nd,nd->n", anchors, candidates.of(examples.positives))
    far = np.full(len(examples), -np.inf, dtype=near.dtype)
    for column in negatives.T:  # one column at a time: N x K x D numbers would not fit
        cosines = np.einsum("nd,nd->n", anchors, candidates.of(np.maximum(column, 0)))
        far = np.maximum(far, np.where(column < 0, -np.inf, cosines))
    return near, far
