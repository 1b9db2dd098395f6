"""Batches of stories, and the encoder inputs that they are made from.

A batch holds each distinct story once, packed without padding, and index tensors that point to its stories.
The classes are not frozen, since half-precision trainers convert the fields of a batch in place.

Letters in shapes: T tokens or embeddings of the batch, U distinct stories, D dimension, B triples or examples, K
negatives of an example.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from narrlit.data.schema import PADDING, FloatArray, IntArray, Story, StoryTable, TrainingExamples, TripleRole
from narrlit.errors import DataError


class Batch:
    """Base class of batches: dataclasses whose tensor fields move together.

    Trainers and loaders call `to` and `pin_memory` by name.
    """

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Copy the batch to another device."""
        return self._map(lambda value: value.to(*args, **kwargs))

    def pin_memory(self) -> Self:
        """Copy the batch to page-locked memory."""
        return self._map(lambda value: value.pin_memory())

    def _map(self, function: Callable[[Any], Any]) -> Self:
        """Copy the batch, applying a function to its tensors and to the batches inside it."""
        values = {}
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, field.name)
            values[field.name] = function(value) if isinstance(value, Tensor | Batch) else value
        return type(self)(**values)


class _Concatenated(Batch):
    """Base class of U stories that are concatenated in one tensor, the first field."""

    lengths: tuple[int, ...]
    indices: Tensor

    def __len__(self) -> int:
        """U, the number of stories."""
        return len(self.lengths)

    def select(self, chosen: Sequence[int]) -> Self:
        """Pack the stories at these positions of the batch."""
        first_field = fields(self)[0]  # type: ignore[arg-type]  # subclasses are dataclasses
        content: Tensor = getattr(self, first_field.name)
        pieces = torch.split(content, list(self.lengths))
        lengths = tuple(self.lengths[i] for i in chosen)
        indices = self.indices[torch.as_tensor(chosen, device=self.indices.device)]
        packed = torch.cat([pieces[i] for i in chosen])
        return type(self)(packed, lengths, indices)  # type: ignore[call-arg]  # subclasses have these fields


@dataclass
class PackedStories(_Concatenated):
    """Token ids of U stories, concatenated."""

    token_ids: Tensor  # (T,) int64
    lengths: tuple[int, ...]  # tokens of each story; plain integers, since attention splits by them in every layer
    indices: Tensor  # (U,) int64 story indices, the same for every prompt


@dataclass
class PackedFeatures(_Concatenated):
    """Embeddings of U stories by a frozen encoder, concatenated: one per story, or one per sentence."""

    features: Tensor  # (T, D) float32
    lengths: tuple[int, ...]  # number of embeddings of each story, at least 1; their sum is T
    indices: Tensor  # (U,) int64 story indices


@dataclass
class PackedParts(Batch):
    """Parts of U stories, each distinct text once: a story's text and its views, or its passages in order."""

    pieces: PackedStories  # the P distinct texts
    parts: Tensor  # (U, K) int64, positions in `pieces` of each story's parts, PADDING where it has fewer
    indices: Tensor  # (U,) int64 story indices

    def __len__(self) -> int:
        """U, the number of stories."""
        return len(self.indices)

    def select(self, chosen: Sequence[int]) -> "PackedParts":
        """Pack the stories at these positions of the batch."""
        positions = torch.as_tensor(chosen, device=self.indices.device)
        parts = self.parts[positions]
        needed = torch.unique(parts[parts >= 0])
        place = torch.full((len(self.pieces),), PADDING, device=parts.device)
        place[needed] = torch.arange(len(needed), device=parts.device)
        new_parts = torch.where(parts < 0, PADDING, place[parts.clamp(min=0)])
        return PackedParts(self.pieces.select(needed.tolist()), new_parts, self.indices[positions])


Packed = PackedStories | PackedFeatures | PackedParts


@dataclass
class UnlabelledBatch(Batch):
    """M unlabelled stories of a transductive run, which occur in no training example."""

    stories: Packed
    pseudo_labels: Tensor  # (M, 3) int64, PADDING where a label is missing


@dataclass
class ExampleBatch(Batch):
    """B training examples; indices point to the U stories of the batch."""

    stories: Packed  # the U distinct stories
    anchors: Tensor  # (B,) int64
    positives: Tensor  # (B,) int64
    negatives: Tensor  # (B, K) int64, PADDING where an example has fewer
    kinds: Tensor  # (B, K) int64, the index of each negative's kind in NEGATIVE_KINDS; PADDING if unknown or missing
    groups: Tensor  # (U,) int64, stories of the same group are never each other's negatives
    # (U, 3) int64, pseudo-labels of each story's aspects, PADDING where a label is missing
    pseudo_labels: Tensor | None = None
    unlabelled: UnlabelledBatch | None = None  # unlabelled stories of a transductive run

    def with_negatives(self, used: Tensor) -> "ExampleBatch":
        """Copy the batch with some of its negatives, and only the stories that are then needed.

        Args:
            used: (B, K) bool, True for the negatives to keep.
        """
        negatives = self.negatives.masked_fill(~used, PADDING)
        batch = replace(self, negatives=negatives, kinds=self.kinds.masked_fill(~used, PADDING))
        needed = torch.zeros(len(self.stories), dtype=torch.bool, device=negatives.device)
        for indices in (self.anchors, self.positives, negatives[negatives >= 0]):
            needed[indices] = True
        if bool(needed.all()):
            return batch
        position = needed.cumsum(0) - 1
        batch.stories = self.stories.select(needed.nonzero().squeeze(1).tolist())
        batch.groups = self.groups[needed]
        batch.anchors, batch.positives = position[self.anchors], position[self.positives]
        batch.negatives = torch.where(negatives < 0, PADDING, position[negatives.clamp(min=0)])
        batch.pseudo_labels = None if self.pseudo_labels is None else self.pseudo_labels[needed]
        return batch


@dataclass
class TripleBatch(Batch):
    """B triples to evaluate; indices point to the U stories of the batch."""

    stories: Packed  # the U distinct stories
    anchors: Tensor  # (B,) int64
    a: Tensor  # (B,) int64
    b: Tensor  # (B,) int64
    labels: Tensor  # (B,) int64, 1 where A is closer, 0 where B is, PADDING where there is no label
    # (B,) int64, the position of each triple in its file; -1 for a repeated triple that pads a process's share
    positions: Tensor


@dataclass
class ViewBatch(Batch):
    """B anchors with views, each paired with another story; indices point to the U stories of the batch."""

    stories: PackedParts  # the U distinct stories
    anchors: Tensor  # (B,) int64
    others: Tensor  # (B,) int64, for each anchor the story whose views are its negatives


P = TypeVar("P", PackedStories, PackedFeatures, PackedParts)


class StoryInputs(ABC, Generic[P]):
    """Encoder inputs for the stories of a table: token ids, views, or embeddings by a frozen encoder.

    Inputs are addressed by position. The position of a story is its story index. If candidates have a prompt of their
    own, the position of a candidate is its story index plus the number of stories.
    """

    provenance: dict[str, object]
    """Origin of the inputs, as plain data for run.json."""

    def __init__(self, num_stories: int, symmetric: bool) -> None:
        """Initialize the addressing.

        Args:
            num_stories: number of stories in the table.
            symmetric: both roles have the same prompt.
        """
        self.num_stories = num_stories
        self.symmetric = symmetric
        self.provenance = {}

    @abstractmethod
    def select(self, positions: IntArray) -> P:
        """Pack the stories at positions (U,), in this order; their `indices` are `positions % num_stories`."""

    def pack(self, columns: Sequence[tuple[IntArray, TripleRole]]) -> tuple[P, list[Tensor]]:
        """Pack each distinct story of several columns once.

        Args:
            columns: story indices of any shape, or PADDING, with the role of the stories.

        Returns:
            The packed stories and, for each column, a tensor of its shape that points to them; PADDING stays PADDING.
        """
        positions = [self._positions(indices, role) for indices, role in columns]
        flat = np.concatenate(positions, axis=None)
        unique, inverse = np.unique(flat, return_inverse=True)
        num_padding = int(unique.size > 0 and unique[0] < 0)  # PADDING sorts first, and is not packed
        remaining = inverse.ravel() - num_padding
        pointers = []
        for column in positions:
            own, remaining = np.split(remaining, [column.size])
            pointers.append(torch.from_numpy(own.reshape(column.shape)))
        return self.select(unique[num_padding:]), pointers

    def _positions(self, indices: IntArray, role: TripleRole) -> IntArray:
        """Return the positions of stories in a role; PADDING stays PADDING."""
        has_own_prompt = role == "candidate" and not self.symmetric
        offset = self.num_stories if has_own_prompt else 0
        return np.where(indices < 0, PADDING, indices + offset)


Tokenize = Callable[[Sequence[str], Any], tuple[list[list[int]], int]]
"""Function that maps texts and their role to token ids and the number of truncated texts."""

ROLES: tuple[TripleRole, TripleRole] = ("anchor", "candidate")
TEXTS_PER_CALL = 4096


class TokenizedStories(StoryInputs[PackedStories]):
    """Token ids of stories, for each prompt.

    Attributes:
        lengths: number of tokens at each position.
        truncated: number of texts that were longer than the encoder's limit.
    """

    def __init__(self, stories: Sequence[Story] | Sequence[str], tokenize: Tokenize, symmetric: bool) -> None:
        """Tokenize stories.

        Args:
            stories: stories, or their texts.
            tokenize: function of texts and their role.
            symmetric: both roles have the same prompt, so that texts are tokenized only once.
        """
        super().__init__(len(stories), symmetric)
        texts = [_text_of(story) for story in stories]
        self.truncated = 0
        pieces = []
        for role in ROLES[:1] if symmetric else ROLES:
            # In blocks: as Python integers, the ids of a large collection would take ten times the memory.
            for start in range(0, len(texts), TEXTS_PER_CALL):
                ids, truncated = tokenize(texts[start : start + TEXTS_PER_CALL], role)
                pieces += [np.array(text, dtype=np.int32) for text in ids]
                self.truncated += truncated
        self.lengths = np.fromiter(map(len, pieces), dtype=np.int64)
        self._bounds = np.concatenate([[0], self.lengths.cumsum()])
        self._flat = torch.from_numpy(np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32))
        self.provenance = {"truncated": self.truncated}

    def select(self, positions: IntArray) -> PackedStories:
        """Pack the stories at these positions (U,), in their order."""
        pieces = []
        for position in positions:
            start, end = self._bounds[position : position + 2]
            pieces.append(self._flat[start:end])
        indices = torch.from_numpy(positions % self.num_stories)
        return PackedStories(torch.cat(pieces).long(), tuple(self.lengths[positions].tolist()), indices)


def _text_of(story: Story | str) -> str:
    return story if isinstance(story, str) else story.text


class TokenizedViews(StoryInputs[PackedParts]):
    """Token ids of stories and their views, each distinct text once; all texts have the same prompt.

    Attributes:
        truncated: number of texts that were longer than the encoder's limit.
    """

    def __init__(self, stories: Sequence[Story], tokenize: Tokenize) -> None:
        """Tokenize stories and their views.

        Args:
            stories: stories; those without views are skipped, and can't be selected.
            tokenize: function of texts and their role.
        """
        super().__init__(len(stories), symmetric=True)
        pieces = StoryTable()
        self._parts = np.full((len(stories), 4), PADDING, dtype=np.int64)
        for index, story in enumerate(stories):
            if story.views is not None:
                self._parts[index] = [pieces.add(text) for text in story.texts]
        self._tokens = TokenizedStories(pieces, tokenize, symmetric=True)
        self.truncated = self._tokens.truncated
        self.provenance = {"truncated": self.truncated, "pieces": len(pieces)}

    def select(self, positions: IntArray) -> PackedParts:
        """Pack the stories at these positions (U,), in their order."""
        needed, parts = np.unique(self._parts[positions], return_inverse=True)
        if needed.size and needed[0] < 0:
            raise DataError("batch_without_views")
        shaped = torch.from_numpy(parts.reshape(len(positions), -1))
        return PackedParts(self._tokens.select(needed), shaped, torch.from_numpy(positions))


Collator = Callable[[list[int]], Any]
"""Function that makes a batch from positions in a list of examples or triples."""


class StoryReader(Protocol):
    """Methods of an objective that a datamodule calls."""

    reads_views: bool
    """True if the encoder reads the views of a story in addition to its text."""

    def story_inputs(self, stories: Sequence[Story], name: str) -> StoryInputs[Any]:
        """Make the encoder inputs of stories.

        Args:
            stories: stories in the order of their story indices.
            name: name of the set, for messages.
        """

    def collator(self, examples: TrainingExamples, inputs: StoryInputs[Any]) -> Collator:
        """Return a collator that makes training batches from positions in the examples."""

    def text_embeddings(self, texts: Sequence[str], role: TripleRole = "anchor") -> FloatArray:
        """Compute the embeddings (N, D) of N texts by a frozen encoder.

        Raises:
            OptionError: if the encoder is not frozen.
        """
