"""Settings of data loading, and a loader of training batches that can resume within an epoch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from torch.utils.data import DataLoader

from narrlit.data.sampling import DistinctBatchSampler
from narrlit.errors import OptionError
from narrlit.preprocessing.pseudonyms import PseudonymOptions


@dataclass(frozen=True)
class LoaderOptions:
    """Settings of data loading.

    Attributes:
        batch_size: training examples per batch and process.
        evaluation_batch_size: triples per batch and process in evaluation.
        workers: number of processes that assemble batches; 0: the training process, which is fast enough for packed
            tokens.
        strict: stop at the first invalid row instead of dropping and counting invalid rows.
        samples_per_epoch: training examples per epoch over all processes, a new sample in each epoch; None: all.
        pseudonyms: replacement of names with placeholders in all stories.
    """

    batch_size: int = 16
    evaluation_batch_size: int = 32
    workers: int = 0
    strict: bool = False
    samples_per_epoch: int | None = None
    pseudonyms: PseudonymOptions = field(default_factory=PseudonymOptions)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.evaluation_batch_size < 1 or self.workers < 0:
            raise OptionError("batch_sizes")
        if self.samples_per_epoch is not None and self.samples_per_epoch < 1:
            raise OptionError(
                "config_value",
                option="loading.samples_per_epoch",
                found=self.samples_per_epoch,
                needed="a positive number",
            )


class ResumableLoader(DataLoader[Any]):
    """Loader of training batches; in a resumed epoch, it skips the batches that were already used."""

    taken = 0  # number of batches of this epoch that were skipped or yielded
    skip = 0  # number of batches to skip in the next iteration

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # torch declares its own class of iterators
        sampler = cast(DistinctBatchSampler, self.batch_sampler)
        sampler.skip = self.taken = self.skip
        self.skip = 0
        for batch in super().__iter__():
            self.taken += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Return an empty state, because trainers need this method, but restore the state too late."""
        return {}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Ignore the state; the datamodule sets `skip` instead."""
