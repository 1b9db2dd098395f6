"""Batches (each different story once, packed without padding, with index tensors into them) and their producers.

The classes are not frozen, since half-precision trainers convert a batch's fields in place.

Letters in shapes: T tokens or frozen embeddings of the batch, U different stories, D dimension, B triples or examples,
K negatives of an example.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from narrlit.data.schema import PADDING, FloatArray, IntArray, Role, Story, StoryTable, TrainingExamples
from narrlit.errors import DataError


class Batch:
    """Base of dataclasses whose tensor fields move together; trainers and loaders call these methods by name."""

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Copy the batch to another device."""
        return self._map(lambda value: value.to(*args, **kwargs))

    def pin_memory(self) -> Self:
        """Copy the batch to page-locked memory."""
        return self._map(lambda value: value.pin_memory())

    def _map(self, function: Callable[[Any], Any]) -> Self:
        """Copy the batch with a function applied to its tensors and to the batches inside it."""
        values = {}
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = getattr(self, field.name)
            values[field.name] = function(value) if isinstance(value, Tensor | Batch) else value
        return type(self)(**values)


class _Concatenated(Batch):
    """Base of U stories' pieces of one tensor, the first field."""

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
    lengths: tuple[int, ...]  # tokens of each story; plain numbers, since attention cuts by them in every layer
    indices: Tensor  # (U,) int64 story indices, whatever the prompt


@dataclass
class PackedFeatures(_Concatenated):
    """Frozen embeddings of U stories, concatenated: one for the whole story, or one for each of its sentences."""

    features: Tensor  # (T, D) float32
    lengths: tuple[int, ...]  # embeddings of each story, 1 or more; their sum is T
    indices: Tensor  # (U,) int64 story indices


@dataclass
class PackedViews(Batch):
    """Texts and views of U stories, each different one of them once."""

    pieces: PackedStories  # the P different texts and views
    parts: Tensor  # (U, 4) int64, each story's text, theme, action and outcome as positions in the pieces
    indices: Tensor  # (U,) int64 story indices

    def __len__(self) -> int:
        """U, the number of stories."""
        return len(self.indices)

    def select(self, chosen: Sequence[int]) -> "PackedViews":
        """Pack the stories at these positions of the batch."""
        positions = torch.as_tensor(chosen, device=self.indices.device)
        needed, parts = torch.unique(self.parts[positions], return_inverse=True)
        return PackedViews(self.pieces.select(needed.tolist()), parts, self.indices[positions])


Packed = PackedStories | PackedFeatures | PackedViews


@dataclass
class UnlabelledBatch(Batch):
    """M stories without triples, of a transductive run."""

    stories: Packed
    pseudo_labels: Tensor  # (M, 3) int64, PADDING where there is none


@dataclass
class ExampleBatch(Batch):
    """Training examples; every index points into the batch's U stories."""

    stories: Packed  # the batch's different stories
    anchors: Tensor  # (B,) int64
    positives: Tensor  # (B,) int64
    negatives: Tensor  # (B, K) int64, PADDING where there is none
    kinds: Tensor  # (B, K) int64, each negative's index into KINDS, PADDING for unknown and for no negative
    groups: Tensor  # (U,) int64, stories of the same group are never each other's negatives
    # (U, 3) int64, each story's pseudo-label of every aspect, PADDING where there is none
    pseudo_labels: Tensor | None = None
    unlabelled: UnlabelledBatch | None = None  # further stories of a transductive run

    def with_negatives(self, used: Tensor) -> "ExampleBatch":
        """Copy the batch with only the negatives `used` (B, K bool), and without stories that are no longer needed."""
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
    """Triples to evaluate; every index points into the batch's U stories."""

    stories: Packed  # the batch's different stories
    anchors: Tensor  # (B,) int64
    a: Tensor  # (B,) int64
    b: Tensor  # (B,) int64
    labels: Tensor  # (B,) int64, 1 where A is closer, 0 where B is, PADDING where there is no label
    # (B,) int64, each triple's position in its file; -1 for a repeat that only fills up a process's share
    positions: Tensor


@dataclass
class ViewBatch(Batch):
    """Anchors with views, each paired with another story; every index points into the batch's U stories."""

    stories: PackedViews  # the batch's different stories
    anchors: Tensor  # (B,) int64
    others: Tensor  # (B,) int64, for each anchor the story whose views are its negatives


P = TypeVar("P", PackedStories, PackedFeatures, PackedViews)


class StoryInputs(ABC, Generic[P]):
    """Inputs of an encoder for each story of a table: token ids, views, or frozen embeddings.

    A position is a story index, plus the number of stories where the story is a candidate and candidates have a prompt
    of their own.
    """

    provenance: dict[str, object]
    """Plain data for run.json."""

    def __init__(self, num_stories: int, symmetric: bool) -> None:
        """Set the number of stories; `symmetric`: both roles have the same prompt."""
        self.num_stories = num_stories
        self.symmetric = symmetric
        self.provenance = {}

    @abstractmethod
    def select(self, positions: IntArray) -> P:
        """Pack the stories at these positions (U,), in their order, with `indices = positions % num_stories`."""

    def pack(self, columns: Sequence[tuple[IntArray, Role]]) -> tuple[P, list[Tensor]]:
        """Pack each story of the columns (story indices of any shape, or PADDING) once; return indices into them."""
        positions = [self._positions(indices, role) for indices, role in columns]
        unique, inverse = np.unique(np.concatenate([column.ravel() for column in positions]), return_inverse=True)
        num_padding = int(unique.size > 0 and unique[0] < 0)  # padding is the first value, and is not packed
        ends = np.cumsum([column.size for column in positions])[:-1]
        parts = np.split(inverse.ravel() - num_padding, ends)
        indices = [torch.from_numpy(part.reshape(column.shape)) for part, column in zip(parts, positions, strict=True)]
        return self.select(unique[num_padding:]), indices

    def _positions(self, indices: IntArray, role: Role) -> IntArray:
        """Positions of stories in a role, PADDING where there is none."""
        has_own_prompt = role == "candidate" and not self.symmetric
        offset = self.num_stories if has_own_prompt else 0
        return np.where(indices < 0, PADDING, indices + offset)


Tokenize = Callable[[Sequence[str], Any], tuple[list[list[int]], int]]
"""Function from texts in a role to their token ids, and the number of truncated texts."""

ROLES: tuple[Role, Role] = ("anchor", "candidate")
TEXTS_PER_CALL = 4096


class TokenizedStories(StoryInputs[PackedStories]):
    """Token ids of stories, for each prompt; `truncated` counts texts longer than the encoder's limit."""

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
    """Token ids of stories and their views, each different text once; one prompt serves all."""

    def __init__(self, stories: Sequence[Story], tokenize: Tokenize) -> None:
        """Tokenize stories by `tokenize(texts, role)`; a story without views is skipped and can't be selected."""
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
        """Pack the stories at these positions (U,), in their order."""
        needed, parts = np.unique(self._parts[positions], return_inverse=True)
        if needed.size and needed[0] < 0:
            raise DataError("a story of this batch has no views: give `views=FILE` (in a config data.views.files)")
        shaped = torch.from_numpy(parts.reshape(len(positions), -1))
        return PackedViews(self._tokens.select(needed), shaped, torch.from_numpy(positions))


Collator = Callable[[list[int]], Any]
"""Function from positions in a list of examples or triples to a batch."""


class StoryReader(Protocol):
    """Methods of an objective that a datamodule calls."""

    reads_views: bool
    """The encoder reads a story's views in addition to its text."""

    def story_inputs(self, stories: Sequence[Story], name: str) -> StoryInputs[Any]:
        """Make the inputs of stories, by story index; `name` is that of the set, for messages."""

    def collator(self, examples: TrainingExamples, inputs: StoryInputs[Any]) -> Collator:
        """Return the collator of training batches from positions in the examples."""

    def text_embeddings(self, texts: Sequence[str], role: Role = "anchor") -> FloatArray:
        """Embed texts (N, D) by a frozen encoder; others raise OptionError."""
