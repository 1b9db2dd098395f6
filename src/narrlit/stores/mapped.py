"""Rows of a store, read from memory-mapped shards when they are asked for."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Places = NDArray[np.int64]
COPIED_BYTES = 2**28
"""Up to so many bytes, vectors of several shards are copied together once: a batch out of many costs far more."""


class MappedVectors:
    """N vectors of a store by place; what is not asked for is not read.

    Attributes:
        dimension: D, numbers of a vector.
    """

    def __init__(self, shards: Sequence[Tensor], shard_of: Places, row_of: Places) -> None:
        """Args: memory-mapped shards (S_i, D); for each of N places the shard and the row in it."""
        self._shards = list(shards)
        self._shard_of = shard_of
        self._row_of = row_of
        self.dimension = int(shards[0].shape[1])
        if len(shards) > 1 and len(row_of) * self.dimension * shards[0].element_size() <= COPIED_BYTES:
            self._shards = [self._gathered(np.arange(len(row_of)))]
            self._shard_of, self._row_of = np.zeros_like(row_of), np.arange(len(row_of))

    def __len__(self) -> int:
        return len(self._row_of)

    def __getitem__(self, places: Places) -> Tensor:
        """Vectors (n, D), float32, of n places."""
        if len(self._shards) == 1:
            return self._shards[0][torch.from_numpy(self._row_of[places])].float()
        return self._gathered(places)

    def _gathered(self, places: Places) -> Tensor:
        rows = torch.from_numpy(self._row_of[places])
        found = torch.empty(len(places), self.dimension)
        shard_of = self._shard_of[places]
        for shard in np.unique(shard_of).tolist():
            chosen = torch.from_numpy(np.flatnonzero(shard_of == shard))
            found[chosen] = self._shards[shard][rows[chosen]].float()
        return found
