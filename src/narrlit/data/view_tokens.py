"""Token ids of stories that are joined with their views: the text and each view apart, what occurs twice once."""

from collections.abc import Sequence

import numpy as np
import torch

from narrlit.data.batch import PackedViews
from narrlit.data.places import PlaceTable, Rows
from narrlit.data.table import StoryTable
from narrlit.data.tokens import Tokenize, TokenTable

Parts = tuple[str, str, str, str]
"""A story's text, theme, plot and outcome."""


class ViewTable(PlaceTable[PackedViews]):
    """Token ids of the parts of a story table's texts.

    Attributes:
        truncated: different parts that were longer than the encoder reads.
    """

    def __init__(self, parts: Sequence[Parts | None], tokenize: Tokenize) -> None:
        """Args: text, theme, plot and outcome of each story, None for one that is never asked for; the tokenizer."""
        super().__init__(len(parts), symmetric=True)
        pieces = StoryTable()
        self._parts = np.full((len(parts), 4), -1, dtype=np.int64)
        for row, story in enumerate(parts):
            if story is not None:
                self._parts[row] = pieces.rows(story)
        self._tokens = TokenTable(pieces.texts, tokenize, symmetric=True)
        self.truncated = self._tokens.truncated
        self.provenance = {"truncated": self.truncated, "pieces": len(pieces)}

    def stories(self, places: Rows) -> PackedViews:
        """The stories at these places (U,), packed in their order."""
        needed, parts = np.unique(self._parts[places], return_inverse=True)
        return PackedViews(
            self._tokens.stories(needed), torch.from_numpy(parts.reshape(len(places), -1)), torch.from_numpy(places)
        )
