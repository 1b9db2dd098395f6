"""How records become batches, as plain data."""

from dataclasses import dataclass, field

from narrlit.errors import OptionError
from narrlit.preprocessing.pseudonyms import PseudonymOptions


@dataclass(frozen=True)
class Loading:
    """How records become batches.

    Attributes:
        batch_size: training examples of one process's batch.
        evaluation_batch_size: triples of one process's batch where nothing is trained.
        workers: processes that put batches together; 0: the training process itself, fast enough for packed tokens.
        strict: refuse the first row that can't be used, instead of dropping and counting it.
        samples_per_epoch: training examples of an epoch, others each time, over all processes; None: all of them.
        pseudonyms: placeholders in place of names, in all stories that are read.
    """

    batch_size: int = 16
    evaluation_batch_size: int = 32
    workers: int = 0
    strict: bool = False
    samples_per_epoch: int | None = None
    pseudonyms: PseudonymOptions = field(default_factory=PseudonymOptions)

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            OptionError: naming the field.
        """
        if self.batch_size < 1 or self.evaluation_batch_size < 1 or self.workers < 0:
            raise OptionError("loading: batch_size and evaluation_batch_size must be at least 1, workers at least 0")
        if self.samples_per_epoch is not None and self.samples_per_epoch < 1:
            raise OptionError(f"loading.samples_per_epoch is {self.samples_per_epoch}: a positive number is needed")
