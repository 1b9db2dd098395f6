"""A loader that goes on in the middle of an epoch."""

from collections.abc import Iterator
from typing import Any, cast

from torch.utils.data import DataLoader

from narrlit.data.sampling import DistinctBatchSampler


class ResumableLoader(DataLoader[Any]):
    """Training batches; trainers keep its state in a checkpoint and give it back, by these two methods' names.

    Without it, a fit resumed from a checkpoint within an epoch would see that epoch's first batches again.
    """

    _taken = 0
    _skip = 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        sampler = cast(DistinctBatchSampler, self.batch_sampler)
        sampler.skip = self._taken = self._skip
        self._skip = 0
        for batch in super().__iter__():
            self._taken += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Batches of this epoch that were handed out."""
        return {"taken": self._taken}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Leave out the batches that were handed out; after a whole epoch, none."""
        self._skip = state["taken"] if state["taken"] < len(self) else 0
