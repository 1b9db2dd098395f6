"""A loader that goes on in the middle of an epoch."""

from collections.abc import Iterator
from typing import Any, cast

from torch.utils.data import DataLoader

from narrlit.data.sampling import DistinctBatchSampler


class ResumableLoader(DataLoader[Any]):
    """Training batches; its datamodule keeps in a checkpoint how many were handed out, and leaves them out again.

    Attributes:
        taken: batches of this epoch that were handed out.
        skip: batches to leave out of the next epoch.
    """

    taken = 0
    skip = 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        sampler = cast(DistinctBatchSampler, self.batch_sampler)
        sampler.skip = self.taken = self.skip
        self.skip = 0
        for batch in super().__iter__():
            self.taken += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Nothing: trainers look for this method to know that a loader can go on, but load what it gives too late."""
        return {}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Nothing, likewise."""
