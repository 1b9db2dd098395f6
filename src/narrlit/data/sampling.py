"""Samplers and collators of batches in which no story occurs twice as anchor or positive."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler

from narrlit.data.batch import Collator, ExampleBatch, PackedParts, StoryInputs, TripleBatch, UnlabelledBatch, ViewBatch
from narrlit.data.schema import PADDING, IntArray, TrainingExamples, Triples

EPOCHS_TRIED = 8
"""Number of epochs that are planned to find the largest number of batches."""


@dataclass(frozen=True)
class ProcessShare:
    """Share of one process in distributed training, by its rank among `world` processes."""

    rank: int = 0
    world: int = 1

    def of(self, batch: list[int]) -> list[int]:
        """Return the slice of a joint batch that belongs to this process."""
        size = len(batch) // self.world
        return batch[self.rank * size : (self.rank + 1) * size]


@dataclass(frozen=True)
class StorySettings:
    """Settings of N examples: what their stories share apart from the plot.

    Attributes:
        numbers: (N,) number of each example's setting, PADDING where it has none.
        share: share of these examples, 0 to 1, that are put in batches with a single setting.
    """

    numbers: IntArray
    share: float


class DistinctBatchSampler(Sampler[list[int]]):
    """Sampler of batches in which no story, and no version of it, is an anchor or positive twice.

    With in-batch negatives, a story that occurs twice in a batch would be its own negative. An example whose anchor or
    positive is already in the batch waits for the next batch; a batch remains small only if no other example is left.
    Batches may be filled from a single setting, which their stories then share.

    With several processes, the rule holds for the joint batch, of which each process takes a slice. Examples that do
    not divide evenly among the processes are dropped, since gathering needs equal shares.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (what the examples share, and how an epoch is drawn)
        self,
        anchors: IntArray,
        positives: IntArray,
        batch_size: int,
        seed: int,
        share: ProcessShare | None = None,
        weights: NDArray[np.float64] | None = None,
        limit: int | None = None,
        settings: StorySettings | None = None,
        near: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """Initialize the sampler of N examples.

        Args:
            anchors: (N,) story or group of each example's anchor.
            positives: (N,) story or group of each example's positive.
            batch_size: examples per process.
            seed: seed of the order, together with the epoch.
            share: rank of this process; None: there is one process.
            weights: (N,) sampling weights. An epoch then draws N examples with replacement, and a batch may contain an
                example twice. None: an epoch draws each example once.
            limit: largest number of examples per epoch, drawn anew in each epoch; None: all.
            settings: settings of the examples, ignored with `weights`; None: batches mix all examples.
            near: stories or groups that are not in a batch with each of the N examples, ignored with `weights`; None:
                there are none.
        """
        self._settings = settings
        self._chances = None if weights is None else weights / weights.sum()
        self._pairs = list(zip(anchors.tolist(), positives.tolist(), strict=True))
        self._near = near
        self._batch_size = batch_size
        self._seed = seed
        self._limit = limit
        self._share = share or ProcessShare()
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
        """Return itself, since trainers look for `set_epoch` only in the `sampler` of a batch sampler."""
        return self

    def __len__(self) -> int:
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        # Planned at the first batch: a resumed trainer creates the iterator before it sets the epoch.
        skip, self.skip = self.skip, 0
        yield from self._batches()[skip:]

    def _batches(self) -> list[list[int]]:
        """Return this process's batches of the epoch."""
        if self._plan is None:
            if self._length is None:
                # Trainers read the length once, and would skip validation in an epoch with fewer batches.
                self._length = max(len(self._joint_batches(epoch)) for epoch in range(EPOCHS_TRIED))
            joint = equalized(self._joint_batches(self._epoch), self._length, self._share.world)
            self._plan = [self._share.of(batch) for batch in joint]
        return self._plan

    def _joint_batches(self, epoch: int) -> list[list[int]]:
        """Make the joint batches of all processes; each divides evenly among the processes."""
        rng = np.random.default_rng([self._seed, epoch])
        world = self._share.world
        size = self._batch_size * world
        order = self._order(rng)
        if self._chances is not None:
            batches = [order[start : start + size] for start in range(0, len(order), size)]
        elif self._settings is not None:
            batches = self._batches_by_setting(order, size, self._settings, rng)
        else:
            batches = distinct_batches(order, self._pairs, size, self._near)
        divisible = [batch[: len(batch) // world * world] for batch in batches]
        return list(filter(None, divisible))

    def _order(self, rng: np.random.Generator) -> list[int]:
        """Draw the order of the examples: each once, or, with weights, some several times and others never."""
        count = len(self._pairs)
        drawn = rng.permutation(count) if self._chances is None else rng.choice(count, count, p=self._chances)
        order: list[int] = drawn.tolist()
        return order[: self._limit]

    def _batches_by_setting(
        self, order: list[int], size: int, settings: StorySettings, rng: np.random.Generator
    ) -> list[list[int]]:
        """Put a share of the examples in batches with a single setting, and the rest in mixed batches.

        A batch with a single setting that would be less than half full is dissolved into the rest.
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
            for batch in distinct_batches(positions, self._pairs, size, self._near):
                if 2 * len(batch) >= size:
                    batches.append(batch)
                else:
                    mixed += batch
        batches += distinct_batches(rng.permutation(mixed).tolist(), self._pairs, size, self._near)
        return [batches[number] for number in rng.permutation(len(batches))]


def equalized(batches: list[list[int]], count: int, world: int = 1) -> list[list[int]]:
    """Change the number of batches to `count`: halve the largest ones, or drop the last ones.

    Halving is rare, since it is needed only if stories recur in very many examples.

    Args:
        batches: joint batches.
        count: wanted number of batches; there are fewer if no batch can be halved.
        world: number of processes, among which each half divides evenly.

    >>> equalized([[1, 2, 3, 4], [5]], 3)
    [[1, 2], [3, 4], [5]]
    """
    batches = batches[:count]
    while len(batches) < count:
        batch = max(batches, key=len)
        widest = batches.index(batch)
        half = len(batch) // world // 2 * world
        if not half:
            break
        batches[widest : widest + 1] = [batch[:half], batch[half:]]
    return batches


def distinct_batches(
    order: list[int], pairs: list[tuple[int, int]], size: int, near: Sequence[Sequence[int]] | None = None
) -> list[list[int]]:
    """Cut `order` into batches of at most `size` positions whose pairs share no story.

    Args:
        order: positions.
        pairs: two stories by position.
        size: maximum size of a batch.
        near: stories that are not in a batch with each pair, by position; if A is near B, B is near A.

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
                taken.update(pairs[position], () if near is None else near[position])
            else:
                passed.append(position)
        rest.extendleft(reversed(passed))
        batches.append(batch)
    return batches


def padded_share(count: int, share: ProcessShare) -> list[int]:
    """Return this process's share of the positions 0 to count - 1, padded with -1 to the same length in every process.

    >>> padded_share(5, ProcessShare(rank=1, world=2))
    [1, 3, -1]
    """
    positions = list(range(share.rank, count, share.world))
    largest_share = -(-count // share.world)  # rounded up
    return positions + [-1] * (largest_share - len(positions))


@dataclass(frozen=True)
class ExampleCollator:
    """Collator of training batches; a class, since a closure can't be pickled for worker processes."""

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
    """Collator of anchors, each paired with the next anchor of the batch, whose order is random."""

    examples: TrainingExamples
    inputs: StoryInputs[PackedParts]

    def __call__(self, chosen: list[int]) -> ViewBatch:
        """Make the batch of the anchors at these positions; a single anchor is paired with one outside the batch."""
        anchors = self.examples.anchors
        others = anchors[[*chosen[1:], chosen[0]]]
        if len(chosen) == 1:
            different = anchors[anchors != anchors[chosen[0]]]
            others = different[[chosen[0] % len(different)]] if len(different) else others
        stories, columns = self.inputs.pack([(anchors[chosen], "anchor"), (others, "anchor")])
        return ViewBatch(stories, *columns)


@dataclass(frozen=True)
class TripleCollator:
    """Collator of triples to evaluate."""

    triples: Triples
    inputs: StoryInputs[Any]

    def __call__(self, positions: Sequence[int]) -> TripleBatch:
        """Make the batch of the triples at these positions; position -1 repeats the first triple as padding."""
        chosen = [max(position, 0) for position in positions]
        rows = self.triples.indices[chosen]
        stories, (anchors, a, b) = self.inputs.pack(
            [(rows[:, 0], "anchor"), (rows[:, 1], "candidate"), (rows[:, 2], "candidate")]
        )
        labels = torch.from_numpy(self.triples.labels[chosen])
        return TripleBatch(stories, anchors, a, b, labels, torch.tensor(positions))


@dataclass(frozen=True, eq=False)
class PseudoLabelCollator:
    """Collator that adds pseudo-labels to another's batches and, in a transductive run, unlabelled stories."""

    collator: Collator  # makes the batches
    inputs: StoryInputs[Any]  # encoder inputs of all stories
    labels: IntArray  # (S, 3) pseudo-labels by story index, PADDING where a label is missing
    unlabelled: IntArray  # (M,) story indices for this process; a batch gets as many stories as it has examples
    seed: int  # seed of the draw; the same examples get the same unlabelled stories

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
