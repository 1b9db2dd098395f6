"""Stories as places of a table, and batches that hold each of their stories once, whatever stands for a story."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.data.batch import PackedStories, PackedVectors, PackedViews

Rows = NDArray[np.int64]
ROLES = ("anchor", "candidate")
Packed = TypeVar("Packed", PackedStories, PackedVectors, PackedViews)


class PlaceTable(ABC, Generic[Packed]):
    """What stands for each story of a story table, once for each different prompt.

    A place in this table is a story's row, plus the number of stories where the story stands as a candidate and
    candidates have a prompt of their own.

    Attributes:
        provenance: plain data for records.
    """

    provenance: dict[str, Any]

    def __init__(self, stories: int, symmetric: bool) -> None:
        """Args: number of stories; `symmetric`: one prompt serves all roles."""
        self._stories = stories
        self._symmetric = symmetric
        self.provenance = {}

    @abstractmethod
    def stories(self, places: Rows) -> Packed:
        """The stories at these places (U,), packed in their order."""

    def places(self, rows: Rows, role: str) -> Rows:
        """Places of story rows in this role; -1 (padding) stays -1."""
        offset = self._stories if role == "candidate" and not self._symmetric else 0
        return np.where(rows < 0, -1, rows + offset)

    def pack(self, columns: Sequence[Rows]) -> tuple[Packed, list[torch.Tensor]]:
        """Pack every place that occurs in `columns` once.

        Args:
            columns: arrays of places of any shapes, -1 for padding.

        Returns:
            The U stories, and the columns as indices into them, -1 kept.
        """
        flat = np.concatenate([column.ravel() for column in columns])
        unique, inverse = np.unique(flat, return_inverse=True)
        padding = int(unique.size > 0 and unique[0] < 0)
        inverse = inverse.ravel() - padding
        unique = unique[padding:]
        sizes = np.cumsum([column.size for column in columns])[:-1]
        parts = zip(np.split(inverse, sizes), columns, strict=True)
        indices = [torch.from_numpy(part.reshape(column.shape)) for part, column in parts]
        return self.stories(unique), indices
