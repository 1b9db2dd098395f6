"""Batches: every different story once, one after the other without padding, and index tensors that point at them.

The classes are not frozen, since half-precision trainers convert a batch's fields in place of a copy.

Letters of the shapes: T tokens or vectors of the batch, U different stories, D dimension, B triples or examples, K
negatives of an example.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Self


class Movable:
    """A dataclass whose tensor fields move together; loaders and trainers call these two methods by name."""

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The batch on another device."""
        return self._mapped(lambda value: value.to(*args, **kwargs))

    def pin_memory(self) -> Self:
        """The batch in page-locked memory."""
        return self._mapped(lambda value: value.pin_memory())

    def _mapped(self, function: Any) -> Self:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return type(self)(**{name: function(v) if isinstance(v, Tensor | Movable) else v for name, v in values.items()})


@dataclass
class PackedStories(Movable):
    """Token ids of U stories, one after the other.

    Attributes:
        token_ids: (T,) int64.
        lengths: tokens of each story; plain numbers, since attention cuts by them on every layer.
        rows: (U,) int64, each story's row in the story table, whatever prompt stands before it.
    """

    token_ids: Tensor
    lengths: tuple[int, ...]
    rows: Tensor

    def __len__(self) -> int:
        """U, the number of stories."""
        return len(self.lengths)

    def select(self, chosen: Sequence[int]) -> "PackedStories":
        """The stories at these places, in this order."""
        pieces = torch.split(self.token_ids, list(self.lengths))
        return PackedStories(
            torch.cat([pieces[i] for i in chosen]),
            tuple(self.lengths[i] for i in chosen),
            self.rows[torch.as_tensor(chosen, device=self.rows.device)],
        )


@dataclass
class PackedVectors(Movable):
    """Frozen vectors of U stories, one story after the other: a story's own, or one of each of its sentences.

    Attributes:
        vectors: (T, D) float32.
        lengths: vectors of each story, 1 or more; their sum is T.
        rows: (U,) int64, each story's row in the story table.
    """

    vectors: Tensor
    lengths: tuple[int, ...]
    rows: Tensor

    def __len__(self) -> int:
        """U, the number of stories."""
        return len(self.lengths)

    def select(self, chosen: Sequence[int]) -> "PackedVectors":
        """The stories at these places, in this order."""
        pieces = torch.split(self.vectors, list(self.lengths))
        return PackedVectors(
            torch.cat([pieces[i] for i in chosen]),
            tuple(self.lengths[i] for i in chosen),
            self.rows[torch.as_tensor(chosen, device=self.rows.device)],
        )


@dataclass
class PackedViews(Movable):
    """Texts and views of U stories, every different one of them once.

    Attributes:
        pieces: the P different texts and views.
        parts: (U, 4) int64, each story's text, theme, plot and outcome among the pieces.
        rows: (U,) int64, each story's row in the story table.
    """

    pieces: PackedStories
    parts: Tensor
    rows: Tensor

    def __len__(self) -> int:
        """U, the number of stories."""
        return len(self.rows)

    def select(self, chosen: Sequence[int]) -> "PackedViews":
        """The stories at these places, in this order."""
        places = torch.as_tensor(chosen, device=self.rows.device)
        needed, parts = torch.unique(self.parts[places], return_inverse=True)
        return PackedViews(self.pieces.select(needed.tolist()), parts, self.rows[places])


Packed = PackedStories | PackedVectors | PackedViews
"""What a batch may hold of its stories."""


@dataclass
class ExampleBatch(Movable):
    """Training examples; every index points into the U stories.

    Attributes:
        stories: the batch's different stories.
        anchors: (B,) int64.
        positives: (B,) int64.
        negatives: (B, K) int64, -1 for padding.
        kinds: (B, K) int64, each negative's index into KINDS, -1 for unknown and for padding.
    """

    stories: Packed
    anchors: Tensor
    positives: Tensor
    negatives: Tensor
    kinds: Tensor

    def keeping(self, used: Tensor) -> "ExampleBatch":
        """The batch without some negatives, which become padding, and without the stories that served them alone.

        Args:
            used: (B, K) bool, the negatives that stay; of no account where there is padding.

        Returns:
            A new batch; where no story falls out, it holds the same stories.
        """
        negatives = self.negatives.masked_fill(~used, -1)
        kept = replace(self, negatives=negatives, kinds=self.kinds.masked_fill(~used, -1))
        needed = torch.zeros(len(self.stories), dtype=torch.bool, device=negatives.device)
        for indices in (self.anchors, self.positives, negatives[negatives >= 0]):
            needed[indices] = True
        if bool(needed.all()):
            return kept
        place = needed.cumsum(0) - 1
        kept.stories = self.stories.select(needed.nonzero().squeeze(1).tolist())
        kept.anchors, kept.positives = place[self.anchors], place[self.positives]
        kept.negatives = torch.where(negatives < 0, -1, place[negatives.clamp(min=0)])
        return kept


@dataclass
class TripleBatch(Movable):
    """Triples to judge; every index points into the U stories.

    Attributes:
        stories: the batch's different stories.
        anchors: (B,) int64.
        a: (B,) int64.
        b: (B,) int64.
        labels: (B,) int64, 1 where A is closer, 0 where B is, -1 where nobody says.
        places: (B,) int64, each triple's place in its file, -1 for a repeat that only fills up a rank's share.
    """

    stories: Packed
    anchors: Tensor
    a: Tensor
    b: Tensor
    labels: Tensor
    places: Tensor


@dataclass
class ViewBatch(Movable):
    """Stories with views to train on, each beside another; every index points into the U stories.

    Attributes:
        stories: the batch's different stories.
        anchors: (B,) int64.
        others: (B,) int64, another story for each anchor: its views are those that the anchor is not to come near.
    """

    stories: PackedViews
    anchors: Tensor
    others: Tensor
