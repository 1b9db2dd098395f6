"""Token ids of every story, made once and kept: batches are cut out of one flat tensor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.data.batch import PackedStories

Rows = NDArray[np.int64]
Tokenize = Callable[[Sequence[str], Any], tuple[list[list[int]], int]]
ROLES = ("anchor", "candidate")
SPAN = 4096


class TokenTable:
    """Token ids of a story table's texts, once for each different prompt.

    A place in this table is a story's row, plus the table's length where the story stands as a candidate and
    candidates have a prompt of their own.

    Attributes:
        lengths: (P,) tokens at each place.
        truncated: texts longer than the encoder's limit, counted once for each prompt.
    """

    def __init__(self, texts: Sequence[str], tokenize: Tokenize, symmetric: bool) -> None:
        """Tokenise `texts` by `tokenize(texts, role)`; `symmetric`: one prompt serves all roles."""
        self._stories = len(texts)
        self._symmetric = symmetric
        self.truncated = 0
        pieces: list[NDArray[np.int32]] = []
        for role in ROLES[:1] if symmetric else ROLES:
            # In spans: as Python's numbers, the ids of a large collection would take ten times their memory.
            for start in range(0, len(texts), SPAN):
                ids, cut = tokenize(texts[start : start + SPAN], role)
                pieces += [np.array(text, dtype=np.int32) for text in ids]
                self.truncated += cut
        self.lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        self._bounds = np.concatenate([[0], self.lengths.cumsum()])
        self._flat = torch.from_numpy(np.concatenate(pieces))

    def places(self, rows: Rows, role: str) -> Rows:
        """Places of story rows in this role; -1 (padding) stays -1."""
        offset = self._stories if role == "candidate" and not self._symmetric else 0
        return np.where(rows < 0, -1, rows + offset)

    def pack(self, columns: Sequence[Rows]) -> tuple[PackedStories, list[torch.Tensor]]:
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

    def stories(self, places: Rows) -> PackedStories:
        """The stories at these places (U,), packed in their order."""
        pieces = [self._flat[self._bounds[place] : self._bounds[place + 1]] for place in places]
        return PackedStories(
            torch.cat(pieces).long(), tuple(self.lengths[places].tolist()), torch.from_numpy(places % self._stories)
        )
