"""Samplers and collators of batches, in which no story occurs twice among anchors and positives."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler

from narrlit.data.batch import Collator, ExampleBatch, PackedViews, StoryInputs, TripleBatch, UnlabelledBatch, ViewBatch
from narrlit.data.schema import PADDING, IntArray, TrainingExamples, Triples

EPOCHS_TRIED = 8


@dataclass(frozen=True)
class Share:
    """Share of one process: its rank among `world` processes."""

    rank: int = 0
    world: int = 1

    def of(self, batch: list[int]) -> list[int]:
        """Return this process's part of a joint batch."""
        size = len(batch) // self.world
        return batch[self.rank * size : (self.rank + 1) * size]


@dataclass(frozen=True)
class Settings:
    """Settings of N examples: what their stories share apart from the plot.

    Attributes:
        numbers: (N,) each example's setting, PADDING where it has none.
        share: of the examples with a setting that are in batches of that setting alone, 0 to 1.
    """

    numbers: IntArray
    share: float


class DistinctBatchSampler(Sampler[list[int]]):
    """Batches of example positions: no story, and no version of it, is an anchor or positive twice.

    With in-batch negatives, a story that occurs twice would be its own negative. An example whose anchor or positive
    is in the batch already waits for the next one; only if nothing else is left does a batch stay small. Batches may
    be filled from one setting, so that their stories share it.
    Over several processes the rule holds for their batches together, each takes its slice, and what doesn't divide
    evenly at the epoch's end is dropped, since gathering needs equal shares.
    """

    def __init__(
        self,
        anchors: IntArray,
        positives: IntArray,
        batch_size: int,
        seed: int,
        share: Share | None = None,
        weights: NDArray[np.float64] | None = None,
        limit: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Sample from N examples, `batch_size` for each process.

        Args:
            anchors: (N,) story or group of each example's anchor.
            positives: (N,) likewise of its positive.
            batch_size: examples of a process.
            seed: decides the order, with the epoch.
            share: this process among all.
            weights: (N,) an epoch's N examples are drawn in proportion to these, with replacement, and a batch may
                have an example twice; None: each example is drawn once.
            limit: an epoch has at most so many examples, different ones in each epoch.
            settings: settings of the examples; None: batches are filled from all. With `weights` they are not read.
        """
        self._settings = settings
        self._chances = None if weights is None else weights / weights.sum()
        self._pairs = list(zip(anchors.tolist(), positives.tolist(), strict=True))
        self._batch_size = batch_size
        self._seed = seed
        self._limit = limit
        self._share = share or Share()
        self._epoch = 0
        self._plan: list[list[int]] | None = None
        self._length: int | None = None
        # Batches to skip at the beginning of the next iteration: a fit resumed within an epoch has seen them.
        self.skip = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which decides the order; trainers call this by name."""
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, None

    @property
    def sampler(self) -> "DistinctBatchSampler":
        """Return itself: trainers look for `set_epoch` in a batch sampler's sampler only."""
        return self

    def __len__(self) -> int:
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        # Planned at the first batch, not before: a resumed trainer makes its iterator first and names the epoch then.
        skip, self.skip = self.skip, 0
        yield from self._batches()[skip:]

    def _batches(self) -> list[list[int]]:
        """Return this process's batches of the epoch."""
        if self._plan is None:
            if self._length is None:
                # Trainers count once, and would skip validation in an epoch of fewer batches.
                self._length = max(len(self._joint_batches(epoch)) for epoch in range(EPOCHS_TRIED))
            joint = equalized(self._joint_batches(self._epoch), self._length, self._share.world)
            self._plan = [self._share.of(batch) for batch in joint]
        return self._plan

    def _joint_batches(self, epoch: int) -> list[list[int]]:
        """Make the batches of all processes together; each divides evenly among them."""
        rng = np.random.default_rng([self._seed, epoch])
        count = len(self._pairs)
        world = self._share.world
        size = self._batch_size * world
        drawn = rng.permutation(count) if self._chances is None else rng.choice(count, count, p=self._chances)
        order = drawn.tolist()[: self._limit]
        if self._chances is not None:
            batches = [order[start : start + size] for start in range(0, len(order), size)]
        elif self._settings is not None:
            batches = self._batches_by_setting(order, size, self._settings, rng)
        else:
            batches = distinct_batches(order, self._pairs, size)
        divisible = [batch[: len(batch) // world * world] for batch in batches]
        return [batch for batch in divisible if batch]

    def _batches_by_setting(
        self, order: list[int], size: int, settings: Settings, rng: np.random.Generator
    ) -> list[list[int]]:
        """Fill batches from one setting each with a share of the examples, and others with the rest.

        Examples that would be a batch of less than half the size join the rest.
        """
        mixed: list[int] = []
        of_setting: dict[int, list[int]] = {}
        for position in order:
            setting = int(settings.numbers[position])
            if setting != PADDING and rng.random() < settings.share:
                of_setting.setdefault(setting, []).append(position)
            else:
                mixed.append(position)
        batches: list[list[int]] = []
        for positions in of_setting.values():
            for batch in distinct_batches(positions, self._pairs, size):
                if 2 * len(batch) >= size:
                    batches.append(batch)
                else:
                    mixed += batch
        batches += distinct_batches(rng.permutation(mixed).tolist(), self._pairs, size)
        return [batches[number] for number in rng.permutation(len(batches))]


def equalized(batches: list[list[int]], count: int, world: int = 1) -> list[list[int]]:
    """Make exactly `count` batches: the largest are halved, or the last dropped.

    Halving is rarely needed: only where stories recur in very many examples.

    >>> equalized([[1, 2, 3, 4], [5]], 3)
    [[1, 2], [3, 4], [5]]
    """
    batches = batches[:count]
    while len(batches) < count:
        widest = max(range(len(batches)), key=lambda position: len(batches[position]))
        batch = batches[widest]
        half = len(batch) // world // 2 * world
        if not half:
            break
        batches[widest : widest + 1] = [batch[:half], batch[half:]]
    return batches


def distinct_batches(order: list[int], pairs: list[tuple[int, int]], size: int) -> list[list[int]]:
    """Cut `order` into batches of at most `size` positions whose pairs share no story.

    >>> distinct_batches([0, 1, 2], [(7, 8), (7, 9), (5, 6)], 2)
    [[0, 2], [1]]
    """
    batches: list[list[int]] = []
    rest = deque(order)
    while rest:
        batch: list[int] = []
        taken: set[int] = set()
        passed: list[int] = []
        while rest and len(batch) < size:
            position = rest.popleft()
            if taken.isdisjoint(pairs[position]):
                batch.append(position)
                taken.update(pairs[position])
            else:
                passed.append(position)
        rest.extendleft(reversed(passed))
        batches.append(batch)
    return batches


def padded_share(count: int, share: Share) -> list[int]:
    """Return this process's share of the positions 0 to count - 1, filled up with -1 to the same size in every process.

    >>> padded_share(5, Share(rank=1, world=2))
    [1, 3, -1]
    """
    positions = list(range(share.rank, count, share.world))
    largest_share = -(-count // share.world)  # rounded up
    return positions + [-1] * (largest_share - len(positions))


@dataclass(frozen=True)
class ExampleCollator:
    """Collate training batches; a class, since a closure can't be pickled for worker processes."""

    examples: TrainingExamples
    inputs: StoryInputs[Any]

    def __call__(self, chosen: list[int]) -> ExampleBatch:
        """Make the batch of the examples at these positions."""
        examples = self.examples
        positives, negatives = examples.positives[chosen], examples.negatives[chosen]
        stories, (anchors, near, far) = self.inputs.pack(
            [(examples.anchors[chosen], "anchor"), (positives, "candidate"), (negatives, "candidate")]
        )
        kinds = torch.from_numpy(examples.kinds[chosen])
        groups = torch.from_numpy(examples.groups[stories.indices.numpy()])
        return ExampleBatch(stories, anchors, near, far, kinds, groups)


@dataclass(frozen=True)
class ViewCollator:
    """Collate batches of anchors, each paired with the next one of the batch, which is in random order."""

    examples: TrainingExamples
    inputs: StoryInputs[PackedViews]

    def __call__(self, chosen: list[int]) -> ViewBatch:
        """Make the batch of these examples' anchors; a single one is paired with a story outside the batch."""
        anchors = self.examples.anchors
        others = anchors[[*chosen[1:], chosen[0]]]
        if len(chosen) == 1:
            different = anchors[anchors != anchors[chosen[0]]]
            others = different[[chosen[0] % len(different)]] if len(different) else others
        stories, columns = self.inputs.pack([(anchors[chosen], "anchor"), (others, "anchor")])
        return ViewBatch(stories, *columns)


@dataclass(frozen=True)
class TripleCollator:
    """Collate batches of triples to evaluate."""

    triples: Triples
    inputs: StoryInputs[Any]

    def __call__(self, positions: Sequence[int]) -> TripleBatch:
        """Make the batch of the triples at these positions; -1 repeats the first triple, marked as -1."""
        chosen = [max(position, 0) for position in positions]
        rows = self.triples.indices[chosen]
        stories, (anchors, a, b) = self.inputs.pack(
            [(rows[:, 0], "anchor"), (rows[:, 1], "candidate"), (rows[:, 2], "candidate")]
        )
        labels = torch.from_numpy(self.triples.labels[chosen])
        return TripleBatch(stories, anchors, a, b, labels, torch.tensor(positions))


@dataclass(frozen=True, eq=False)
class PseudoLabelCollator:
    """Add pseudo-labels to another collator's batches and, in a transductive run, unlabelled stories."""

    collator: Collator  # makes the batch
    inputs: StoryInputs[Any]  # of all stories
    labels: IntArray  # (S, 3) pseudo-labels by story index, PADDING where there is none
    unlabelled: IntArray  # (M,) story indices of this process alone; each batch gets as many as it has examples
    seed: int  # of the draw; the same examples get the same unlabelled stories

    def __call__(self, chosen: list[int]) -> ExampleBatch:
        """Make the batch of the examples at these positions."""
        batch: ExampleBatch = self.collator(chosen)
        batch.pseudo_labels = torch.from_numpy(self.labels[batch.stories.indices.numpy()])
        if len(self.unlabelled):
            count = min(len(chosen), len(self.unlabelled))
            drawn = np.random.default_rng([self.seed, *chosen]).choice(self.unlabelled, count, replace=False)
            stories, _ = self.inputs.pack([(drawn, "anchor")])
            batch.unlabelled = UnlabelledBatch(stories, torch.from_numpy(self.labels[stories.indices.numpy()]))
        return batch
