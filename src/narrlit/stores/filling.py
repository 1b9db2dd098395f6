"""Filling a store: what it lacks is made once, shard by shard, by as many processes as there are."""

import time
from collections.abc import Callable, Sequence
from random import SystemRandom

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from tqdm import tqdm

from narrlit.distributed import rank, world_size
from narrlit.errors import ModelError
from narrlit.stores.vectors import VectorStore

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

SECONDS_A_SHARD = 5.0
"""What a killed filling loses at most."""
FEWEST, MOST = 32, 16384


def fill(store: VectorStore, keys: Sequence[bytes], texts: Sequence[str], embed: Embed, progress: bool = True) -> int:
    """Make the vectors that a store lacks.

    The processes of one fit divide them. Fits beside each other, on any node, begin at places of their own and look for
    the others' shards before each of theirs. An interrupted filling goes on where it was.

    Args:
        store: in a folder that every process sees; where one does not, it makes all of its vectors itself.
        keys: (N,) of the texts, each once.
        texts: N.
        embed: gives vectors (n, D) of n texts.
        progress: show a bar on stderr, in the first process.

    Returns:
        How many vectors this process made.

    Raises:
        ModelError: if `embed` gives another number of vectors, or numbers that are not finite, here or in another
            process of the fit.
    """
    lacking = store.missing(keys)
    bounds = [len(lacking) * i // world_size() for i in range(world_size() + 1)]
    own = lacking[bounds[rank()] : bounds[rank() + 1]]
    made = _together(lambda: _make(store, keys, texts, own, embed, progress and rank() == 0))
    store.refresh()
    return made + _make(store, keys, texts, store.missing(keys), embed, progress)


def _together(make: Callable[[], int]) -> int:
    """What this process makes, when all are done; an error in one is an error in each, and none waits for it."""
    if world_size() == 1:
        return make()
    made, fault = 0, None
    try:
        made = make()
    except Exception as error:  # noqa: BLE001 (whatever it is, the others must hear of it)
        fault = error
    faults: list[str | None] = [None] * world_size()
    dist.all_gather_object(faults, None if fault is None else str(fault) or type(fault).__name__)
    if fault is not None:
        raise fault
    if any(faults):
        raise ModelError(f"another process could not make its vectors: {next(filter(None, faults))}")
    return made


def _make(
    store: VectorStore, keys: Sequence[bytes], texts: Sequence[str], places: list[int], embed: Embed, progress: bool
) -> int:
    begin = SystemRandom().randrange(max(1, len(places)))
    order = places[begin:] + places[:begin]
    made = start = 0
    size = FEWEST
    with tqdm(total=len(order), desc="vectors", unit="text", disable=not progress, delay=0.5) as bar:
        while start < len(order):
            span = order[start : start + size]
            start += size
            store.refresh()
            left = [span[i] for i in store.missing([keys[place] for place in span])]
            if left:
                began = time.monotonic()
                found = _checked(embed([texts[place] for place in left]), len(left), store)
                store.add([keys[place] for place in left], found)
                made += len(left)
                size = _next_size(size, len(left), time.monotonic() - began)
            bar.update(len(span))
    return made


def _next_size(size: int, made: int, seconds: float) -> int:
    """Texts that take about as long as a shard should, whatever the embedder's speed; spans grow step by step.

    >>> _next_size(32, 32, 0.1), _next_size(128, 128, 10.0), _next_size(64, 2, 1.0)
    (128, 64, 32)
    """
    return min(MOST, max(FEWEST, min(4 * size, round(made * SECONDS_A_SHARD / max(seconds, 1e-3)))))


def _checked(vectors: NDArray[np.float32], count: int, store: VectorStore) -> torch.Tensor:
    if vectors.ndim != 2 or len(vectors) != count:
        raise ModelError(
            f"{count} texts were given, but vectors of shape {vectors.shape} came back; is the model whole?"
        )
    if not np.isfinite(vectors).all():
        worst = int((~np.isfinite(vectors)).any(1).sum())
        raise ModelError(
            f"{worst} of {count} vectors for {store.folder} hold numbers that are not finite: the model is broken, or "
            "its dtype too narrow"
        )
    return torch.from_numpy(np.ascontiguousarray(vectors))
