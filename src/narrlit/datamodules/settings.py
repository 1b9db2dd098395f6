"""Settings of datamodules, as plain data."""

from dataclasses import dataclass, field
from typing import Literal

from narrlit.data.schema import ASPECTS
from narrlit.errors import OptionError
from narrlit.preprocessing.pseudonyms import PseudonymOptions


@dataclass(frozen=True)
class Loading:
    """How rows become batches.

    Attributes:
        batch_size: training examples per process.
        evaluation_batch_size: triples per process in evaluation.
        workers: processes that assemble batches; 0: the training process, which is fast enough for packed tokens.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
        samples_per_epoch: training examples of an epoch over all processes, others in each epoch; None: all.
        pseudonyms: placeholders in place of names, in all stories.
    """

    batch_size: int = 16
    evaluation_batch_size: int = 32
    workers: int = 0
    strict: bool = False
    samples_per_epoch: int | None = None
    pseudonyms: PseudonymOptions = field(default_factory=PseudonymOptions)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.evaluation_batch_size < 1 or self.workers < 0:
            raise OptionError("loading: batch_size and evaluation_batch_size must be at least 1, workers at least 0")
        if self.samples_per_epoch is not None and self.samples_per_epoch < 1:
            raise OptionError(f"loading.samples_per_epoch is {self.samples_per_epoch}: a positive number is needed")


@dataclass(frozen=True)
class Extra:
    """Further files, apart so that a system can be tried without them.

    Attributes:
        synthetic: training rows that a language model wrote; they train like the others.
        unlabelled: stories without labels, for transductive pseudo-labels alone.
    """

    synthetic: str | list[str] | None = None
    unlabelled: str | list[str] | None = None


@dataclass(frozen=True)
class HardExampleSampling:
    """Sampling of training examples that the frozen encoder ranks wrongly.

    Source: Comhis, section 4.3.

    Attributes:
        share: of all examples, how many are hard at most: of those ranked wrongly the closest calls.
        weight: how much more often than another a hard example is drawn, with replacement; 1: nothing is drawn, and
            every example comes once an epoch.
        mine_validation: also train on hard triples of the validation data, with their labels, as the paper does:
            validation accuracy is then no estimate for other triples. The run is flagged.
    """

    share: float = 0.2
    weight: float = 1.0
    mine_validation: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise OptionError(f"hard_examples.share is {self.share}: a share from 0 to 1 is needed")
        if not self.weight > 0:
            raise OptionError(f"hard_examples.weight is {self.weight}: a positive number is needed")


@dataclass(frozen=True)
class Clusters:
    """Number of K-means clusters of each aspect.

    Attributes:
        theme: clusters of first segments.
        action: clusters of middle segments.
        outcome: clusters of last segments.
        seed: of K-means.
    """

    theme: int = 8
    action: int = 5
    outcome: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for aspect in ASPECTS:
            if getattr(self, aspect) < 2:
                raise OptionError(f"clusters.{aspect} is {getattr(self, aspect)}: a whole number from 2 is needed")
        if not 0 <= self.seed < 2**32:
            raise OptionError(f"clusters.seed is {self.seed}: a whole number from 0 to {2**32 - 1} is needed")


@dataclass(frozen=True)
class PseudoLabels:
    """Labels of theme, action and outcome for the training stories.

    Attributes:
        source: `positional` clusters the embeddings of each story's first, middle and last segments; `truth` takes
            StoryWorld's; `none`: no labels.
        clusters: of the positional labels.
        transductive: also cluster, and train on, stories of `extra.unlabelled`. The run is flagged.
    """

    source: Literal["positional", "truth", "none"] = "none"
    clusters: Clusters = field(default_factory=Clusters)
    transductive: bool = False

    def __post_init__(self) -> None:
        if self.transductive and self.source != "positional":
            raise OptionError("pseudo_labels.transductive needs pseudo_labels.source: positional")
