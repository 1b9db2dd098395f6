"""Token ids of every story, made once and kept: batches are cut out of one flat tensor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from narrlit.data.batch import PackedStories
from narrlit.data.places import ROLES, PlaceTable, Rows

Tokenize = Callable[[Sequence[str], Any], tuple[list[list[int]], int]]
SPAN = 4096


class TokenTable(PlaceTable[PackedStories]):
    """Token ids of a story table's texts.

    Attributes:
        lengths: (P,) tokens at each place.
        truncated: texts longer than the encoder's limit, counted once for each prompt.
    """

    def __init__(self, texts: Sequence[str], tokenize: Tokenize, symmetric: bool) -> None:
        """Tokenise `texts` by `tokenize(texts, role)`; `symmetric`: one prompt serves all roles."""
        super().__init__(len(texts), symmetric)
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
        self.provenance = {"truncated": self.truncated}

    def stories(self, places: Rows) -> PackedStories:
        """The stories at these places (U,), packed in their order."""
        pieces = [self._flat[self._bounds[place] : self._bounds[place + 1]] for place in places]
        return PackedStories(
            torch.cat(pieces).long(), tuple(self.lengths[places].tolist()), torch.from_numpy(places % self._stories)
        )
