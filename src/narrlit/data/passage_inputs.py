"""Encoder inputs of stories that are read passage by passage: a sample of each story's passages."""

from collections.abc import Collection, Sequence

import numpy as np
import torch

from narrlit.data.batch import PackedParts, StoryInputs, Tokenize, TokenizedStories
from narrlit.data.schema import PADDING, IntArray, Story, StoryTable
from narrlit.preprocessing.passages import PASSAGE_WORDS, split_passages


class TokenizedPassages(StoryInputs[PackedParts]):
    """Token ids of the passages of stories; a batch has a sample of them.

    The parts of a story are its passages in order, at most `count`, and after them, with `whole`, its whole text. From
    a story with more passages, one is drawn from each of `count` equal parts, anew in each batch.
    """

    def __init__(
        self,
        stories: Sequence[Story],
        used: Collection[int],
        tokenize: Tokenize,
        symmetric: bool,
        count: int = 8,
        words: int = PASSAGE_WORDS,
        whole: bool = False,
        seed: int = 0,
    ) -> None:
        """Split and tokenize stories.

        Args:
            stories: stories in the order of their story indices.
            used: indices of the stories that can be selected; the others are not tokenized.
            tokenize: function of texts and their role.
            symmetric: both roles have the same prompt.
            count: maximum number K of passages of a story in a batch.
            words: number of words of a passage.
            whole: add the whole text as the last part.
            seed: seed of the samples, which also depend on the stories of the batch.
        """
        super().__init__(len(stories), symmetric)
        self.count = count
        self._seed = seed
        pieces = StoryTable()
        self._passages: dict[int, list[int]] = {}
        self._whole: dict[int, int] = {}
        for index in used:
            text = stories[index].text
            self._passages[index] = [pieces.add(passage) for passage in split_passages(text, words)]
            if whole:
                self._whole[index] = pieces.add(text)
        self._num_pieces = len(pieces)
        self._tokens = TokenizedStories(pieces, tokenize, symmetric)
        self.truncated = self._tokens.truncated

    def select(self, positions: IntArray) -> PackedParts:
        """Pack a sample of the passages of the stories at these positions (U,), in their order."""
        rng = np.random.default_rng([self._seed, *positions.tolist()])
        width = self.count + bool(self._whole)
        parts = np.full((len(positions), width), PADDING, dtype=np.int64)
        for row, position in enumerate(positions.tolist()):
            story = position % self.num_stories
            passages = self._passages[story]
            chosen = sample_positions(len(passages), self.count, rng)
            parts[row, : len(chosen)] = [passages[number] for number in chosen]
            if self._whole:
                parts[row, -1] = self._whole[story]
            is_own_prompt = position >= self.num_stories  # as in `StoryInputs.pack`
            parts[row, parts[row] >= 0] += self._num_pieces * is_own_prompt
        needed, places = np.unique(parts[parts >= 0], return_inverse=True)
        packed_parts = np.full_like(parts, PADDING)
        packed_parts[parts >= 0] = places
        indices = torch.from_numpy(positions % self.num_stories)
        return PackedParts(self._tokens.select(needed), torch.from_numpy(packed_parts), indices)


def sample_positions(length: int, count: int, rng: np.random.Generator) -> list[int]:
    """Draw one of each of `count` equal parts of the numbers 0 to length - 1, ascending; all if there are no more.

    >>> sample_positions(6, 3, np.random.default_rng(0))
    [1, 3, 5]
    """
    if length <= count:
        return list(range(length))
    bounds = np.arange(count + 1) * length // count
    numbers: list[int] = rng.integers(bounds[:-1], bounds[1:]).tolist()
    return numbers
