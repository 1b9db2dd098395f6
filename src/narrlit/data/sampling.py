"""Which examples make a batch: in random order, no story twice among a batch's anchors and positives."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

from narrlit.data.places import Rows


@dataclass(frozen=True)
class Share:
    """One process's part of the work: its rank among `world` processes."""

    rank: int = 0
    world: int = 1


class DistinctBatchSampler(Sampler[list[int]]):
    """Batches of example places in which no story stands twice as an anchor or a positive.

    With in-batch negatives, a story that occurs twice would be pushed away from its own kind. An example whose
    anchor or positive is taken already waits for the next batch; only if nothing else is left does a batch stay small.
    Over several processes the rule holds for the batch of all processes together, each takes its slice, and
    what doesn't divide evenly at the epoch's end is left out, since gathering needs equal shares.
    """

    def __init__(
        self,
        anchors: Rows,
        positives: Rows,
        batch_size: int,
        seed: int,
        share: Share | None = None,
        weights: NDArray[np.float64] | None = None,
        limit: int | None = None,
    ) -> None:
        """Args say what is drawn.

        Args:
            anchors: (N,) rows of the anchors.
            positives: (N,) rows of the positives.
            batch_size: examples of a process's batch.
            seed: of all epochs.
            share: this process's part of the work.
            weights: (N,) how likely each example is at each of an epoch's N draws, with replacement, in proportion; a
                batch may then hold one twice. None: each example comes once.
            limit: how many examples an epoch has at most, others each time; None: all.
        """
        self._chances = None if weights is None else weights / weights.sum()
        self._pairs = list(zip(anchors.tolist(), positives.tolist(), strict=True))
        self._batch_size = batch_size
        self._seed = seed
        self._limit = limit
        self._share = share or Share()
        self._epoch = 0
        self._plan: list[list[int]] | None = None
        self._length: int | None = None
        self.skip = 0
        """Batches to leave out at the next iteration's beginning: a fit resumed within an epoch has seen them."""

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, whose number decides the order; trainers call this by name."""
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, None

    @property
    def sampler(self) -> "DistinctBatchSampler":
        """Itself: trainers look for `set_epoch` in a batch sampler's sampler, and nowhere else."""
        return self

    def __len__(self) -> int:
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        # Planned at the first batch, not before: a resumed trainer makes its iterator first and names the epoch then.
        skip, self.skip = self.skip, 0
        yield from self._batches()[skip:]

    def _batches(self) -> list[list[int]]:
        if self._plan is None:
            together = evened(self._together(self._epoch), self._count(), self._share.world)
            self._plan = [self._slice(batch) for batch in together]
        return self._plan

    def _count(self) -> int:
        """Batches of every epoch: trainers ask once, and would skip validation in an epoch of fewer."""
        if self._length is None:
            self._length = max(len(self._together(epoch)) for epoch in range(EPOCHS_TRIED))
        return self._length

    def _together(self, epoch: int) -> list[list[int]]:
        order = self._order(np.random.default_rng([self._seed, epoch]))
        world = self._share.world
        size = self._batch_size * world
        if self._chances is None:
            batches = distinct_batches(order, self._pairs, size)
        else:
            batches = [order[start : start + size] for start in range(0, len(order), size)]
        return [whole for batch in batches if (whole := batch[: len(batch) // world * world])]

    def _order(self, rng: np.random.Generator) -> list[int]:
        count = len(self._pairs)
        drawn: list[int] = (
            rng.permutation(count) if self._chances is None else rng.choice(count, count, p=self._chances)
        ).tolist()
        return drawn[: self._limit]

    def _slice(self, batch: list[int]) -> list[int]:
        size = len(batch) // self._share.world
        return batch[self._share.rank * size : (self._share.rank + 1) * size]


EPOCHS_TRIED = 8


def evened(batches: list[list[int]], count: int, world: int = 1) -> list[list[int]]:
    """The same batches as exactly `count`: the widest are halved, or what stands beyond is left out.

    More than the tried epochs needed is rare: it takes stories that recur in very many examples.

    >>> evened([[1, 2, 3, 4], [5]], 3)
    [[1, 2], [3, 4], [5]]
    """
    batches = batches[:count]
    while len(batches) < count:
        widest = max(range(len(batches)), key=lambda place: len(batches[place]))
        batch = batches[widest]
        half = len(batch) // world // 2 * world
        if not half:
            break
        batches[widest : widest + 1] = [batch[:half], batch[half:]]
    return batches


def distinct_batches(order: list[int], pairs: list[tuple[int, int]], size: int) -> list[list[int]]:
    """Cut `order` into batches of at most `size` places whose pairs share no row.

    >>> distinct_batches([0, 1, 2], [(7, 8), (7, 9), (5, 6)], 2)
    [[0, 2], [1]]
    """
    batches: list[list[int]] = []
    waiting: list[int] = []
    rest = iter(order)
    exhausted = False
    while waiting or not exhausted:
        batch: list[int] = []
        taken: set[int] = set()
        still_waiting: list[int] = []
        pool = iter(waiting)
        while len(batch) < size:
            place = next(pool, None)
            if place is None and (place := next(rest, None)) is None:
                exhausted = True
                break
            if taken.isdisjoint(pairs[place]):
                batch.append(place)
                taken.update(pairs[place])
            else:
                still_waiting.append(place)
        waiting = still_waiting + list(pool)
        if batch:
            batches.append(batch)
    return batches


def padded_share(count: int, share: Share) -> list[int]:
    """Places 0 to count - 1 of this process; -1 fills up, so that every process has equally many.

    >>> padded_share(5, Share(rank=1, world=2))
    [1, 3, -1]
    """
    mine = list(range(share.rank, count, share.world))
    return mine + [-1] * (-(-count // share.world) - len(mine))
