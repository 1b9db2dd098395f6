"""Hard training examples, which a frozen encoder ranks incorrectly.

Letters in shapes: N examples, H hard examples, S stories of a table, U distinct stories, D dimension.
"""

from dataclasses import dataclass

import numpy as np

from narrlit.data.batch import StoryReader
from narrlit.data.schema import Floats, IntArray, TrainingExamples, TripleRole
from narrlit.errors import OptionError


@dataclass(frozen=True)
class HardExampleSampling:
    """Sampling of training examples that the frozen encoder ranks incorrectly.

    Source:
        Comhis, section 4.3 and Table 3, "hard example ratio (dev) 0.2". The ratio is read as a share of the dev set,
        not of its incorrectly ranked triples: according to Table 2, hard examples correct 42 of the 200 dev triples,
        and a share of 0.2 adds 40 of them to the training data.

    Attributes:
        share: maximum share of hard examples among all examples. The hard examples are those among the incorrectly
            ranked examples with the smallest margins. Validation triples are mined separately, with the same share.
        weight: frequency of hard examples relative to others, with sampling with replacement; 1: every example is drawn
            once per epoch.
        mine_validation: also train on hard triples of the validation data, with their labels, as in the paper.
            Validation accuracy is then no estimate of the accuracy on other triples, unless `data.validation_share`
            reserves triples for mining. The run is flagged.
    """

    share: float = 0.2
    weight: float = 1.0
    mine_validation: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise OptionError("config_value", option="hard_examples.share", found=self.share, needed="between 0 and 1")
        if not self.weight > 0:
            raise OptionError(
                "config_value", option="hard_examples.weight", found=self.weight, needed="a positive number"
            )


@dataclass(frozen=True)
class HardExampleRecord:
    """Counts of training examples for run.json.

    Attributes:
        wrong: number of examples that the frozen encoder ranks incorrectly.
        allowed: maximum number of hard examples according to the share.
        hard: number of hard examples.
        mined_validation: number of mined validation triples; None if none are mined.
    """

    wrong: int
    allowed: int
    hard: int
    mined_validation: int | None = None


def hard_examples(near: Floats, far: Floats, share: float) -> tuple[IntArray, int]:
    """Select the incorrectly ranked examples with the smallest margins, up to a share of all examples.

    Args:
        near: (N,) cosine of each anchor with its positive.
        far: (N,) highest cosine of each anchor with a negative; a tie with `near` counts as incorrect.
        share: maximum share of hard examples, 0 to 1.

    Returns:
        The hard examples (H,), smallest margins first, and the number of incorrectly ranked examples.

    Source:
        Comhis, section 4.3: examples that the base embeddings rank incorrectly, with small margins.

    >>> hard_examples(np.array([0.9, 0.5, 0.2, 0.4]), np.array([0.1, 0.6, 0.8, 0.4]), share=0.5)
    (array([3, 1]), 3)
    """
    margins = near - far
    wrong = np.flatnonzero(margins <= 0)
    closest_first = wrong[np.argsort(-margins[wrong], kind="stable")]
    maximum = int(share * len(margins))
    return closest_first[:maximum].astype(np.int64), len(wrong)


@dataclass(frozen=True, eq=False)
class _UnitVectors:
    """Unit vectors of U distinct stories from a table of S stories.

    Attributes:
        vectors: (U, D) unit vectors.
        rows: (S,) row of the vector of each story index; 0 for stories without a vector.
    """

    vectors: Floats
    rows: IntArray

    @classmethod
    def embed(
        cls, examples: TrainingExamples, indices: IntArray, role: TripleRole, reader: StoryReader
    ) -> "_UnitVectors":
        """Embed the stories with these indices, each distinct one once."""
        distinct = np.unique(indices)
        rows = np.zeros(len(examples.stories), dtype=np.int64)
        rows[distinct] = np.arange(len(distinct))
        texts = [examples.stories[index].text for index in distinct.tolist()]
        embeddings = reader.text_embeddings(texts, role)
        lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
        return cls(embeddings / np.maximum(lengths, 1e-12), rows)

    def of(self, indices: IntArray) -> Floats:
        """Return the unit vectors (N, D) of stories by their indices (N,)."""
        return self.vectors[self.rows[indices]]


def example_cosines(examples: TrainingExamples, reader: StoryReader) -> tuple[Floats, Floats]:
    """Compute the cosines (N,) of each anchor with its positive, and with its closest negative (-inf without one)."""
    negatives = examples.negatives
    candidate_indices = np.concatenate([examples.positives, negatives[negatives >= 0]])
    anchors = _UnitVectors.embed(examples, examples.anchors, "anchor", reader).of(examples.anchors)
    candidates = _UnitVectors.embed(examples, candidate_indices, "candidate", reader)
    near = np.einsum("nd,nd->n", anchors, candidates.of(examples.positives))
    far = np.full(len(examples), -np.inf, dtype=near.dtype)
    for column in negatives.T:  # one column at a time, because N x K x D numbers may not fit in memory
        cosines = np.einsum("nd,nd->n", anchors, candidates.of(np.maximum(column, 0)))
        far = np.maximum(far, np.where(column < 0, -np.inf, cosines))
    return near, far
