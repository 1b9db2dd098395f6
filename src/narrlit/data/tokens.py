"""Token ids of every story and view, made once and kept in one flat tensor that batches are cut from."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from narrlit.data.batch import PackedStories, PackedViews, StoryInputs
from narrlit.data.schema import PADDING, IntArray, Role, Story, StoryTable
from narrlit.errors import DataError

Tokenize = Callable[[Sequence[str], Any], tuple[list[list[int]], int]]
"""Returns token ids of texts in a role, and how many of the texts were truncated."""

ROLES: tuple[Role, Role] = ("anchor", "candidate")
TEXTS_PER_CALL = 4096


class TokenizedStories(StoryInputs[PackedStories]):
    """Token ids of stories, for each prompt.

    Attributes:
        lengths: (P,) tokens at each position.
        truncated: texts longer than the encoder's limit, counted for each prompt.
    """

    def __init__(self, stories: Sequence[Story] | Sequence[str], tokenize: Tokenize, symmetric: bool) -> None:
        """Tokenize stories by `tokenize(texts, role)`; `symmetric`: both roles have the same prompt."""
        super().__init__(len(stories), symmetric)
        texts = [story if isinstance(story, str) else story.text for story in stories]
        self.truncated = 0
        pieces = []
        for role in ROLES[:1] if symmetric else ROLES:
            # In blocks: as Python's numbers, the ids of a large collection would take ten times their memory.
            for start in range(0, len(texts), TEXTS_PER_CALL):
                ids, truncated = tokenize(texts[start : start + TEXTS_PER_CALL], role)
                pieces += [np.array(text, dtype=np.int32) for text in ids]
                self.truncated += truncated
        self.lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        self._bounds = np.concatenate([[0], self.lengths.cumsum()])
        self._flat = torch.from_numpy(np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32))
        self.provenance = {"truncated": self.truncated}

    def select(self, positions: IntArray) -> PackedStories:
        """Pack the stories at these positions (U,), in their order."""
        pieces = [self._flat[self._bounds[position] : self._bounds[position + 1]] for position in positions]
        indices = torch.from_numpy(positions % self.num_stories)
        return PackedStories(torch.cat(pieces).long(), tuple(self.lengths[positions].tolist()), indices)


class TokenizedViews(StoryInputs[PackedViews]):
    """Token ids of stories and their views, each different text once; one prompt serves all.

    Attributes:
        truncated: different texts longer than the encoder's limit.
    """

    def __init__(self, stories: Sequence[Story], tokenize: Tokenize) -> None:
        """Tokenize stories by `tokenize(texts, role)`; a story without views is skipped and must not be asked for."""
        super().__init__(len(stories), symmetric=True)
        pieces = StoryTable()
        self._parts = np.full((len(stories), 4), PADDING, dtype=np.int64)
        for index, story in enumerate(stories):
            if story.views is not None:
                self._parts[index] = [pieces.add(text) for text in (story.text, *story.views.texts)]
        self._tokens = TokenizedStories(pieces, tokenize, symmetric=True)
        self.truncated = self._tokens.truncated
        self.provenance = {"truncated": self.truncated, "pieces": len(pieces)}

    def select(self, positions: IntArray) -> PackedViews:
        """Pack the stories at these positions (U,), in their order.

        Raises:
            DataError: if one of them has no views.
        """
        needed, parts = np.unique(self._parts[positions], return_inverse=True)
        if needed.size and needed[0] < 0:
            raise DataError("a story of this batch has no views: give --views FILE (in a config data.views.files)")
        shaped = torch.from_numpy(parts.reshape(len(positions), -1))
        return PackedViews(self._tokens.select(needed), shaped, torch.from_numpy(positions))
