"""Fill an embedding cache: missing embeddings are computed once, in shards, by all processes."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import SystemRandom

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from narrlit.data.schema import FloatArray
from narrlit.distributed import from_first, rank, together, world_size
from narrlit.embedding_cache.pacing import next_size
from narrlit.embedding_cache.shards import Readings
from narrlit.embedding_cache.storage import EmbeddingCache

EmbedArrays = Callable[[list[int]], tuple[FloatArray, Readings]]
"""Function from n positions to embeddings (n, D) and readings (n, 5) as arrays."""
Embed = Callable[[list[int]], tuple[Tensor, Readings | None]]
"""Function from n positions to embeddings (n, D), and how much of each text was read, (n, 5), if known."""
SECONDS_PER_SHARD = 5.0
"""Seconds to compute a shard; a process that is killed loses at most one shard."""
FEWEST, MOST = 32, 16384


def fill(
    cache: EmbeddingCache, keys: Sequence[bytes], embed: Embed, *, in_step: bool = False, progress: bool = True
) -> int:
    """Compute the missing embeddings of a cache; an interrupted call resumes.

    The processes of one fit divide the work. Independent fits, on any node, start at random positions, and look for
    new shards of other fits before they compute one.

    Args:
        cache: in a folder that every process sees; a process that does not see it computes all embeddings.
        keys: (N,) distinct keys of the texts.
        embed: function that computes the embeddings of positions in `keys`.
        in_step: `embed` is a collective call, as for sharded encoders; only the first process then looks for missing
            embeddings, and writes.
        progress: show a bar on stderr, in the first process.

    Returns:
        Number of embeddings that this process computed.
    """
    cache.refresh()
    missing = from_first(lambda: cache.missing(keys))  # others may see fewer files in a network folder
    if in_step:
        return _compute(cache, keys, embed, missing, progress and rank() == 0, in_step=True)
    begin = len(missing) * rank() // world_size()
    end = len(missing) * (rank() + 1) // world_size()
    share = missing[begin:end]
    computed = together(lambda: _compute(cache, keys, embed, share, progress and rank() == 0))
    cache.refresh()
    return computed + _compute(cache, keys, embed, cache.missing(keys), progress)


def filled_arrays(
    cache: EmbeddingCache, keys: Sequence[bytes], embed: EmbedArrays, *, progress: bool
) -> tuple[FloatArray, Readings]:
    """Compute the missing embeddings of a cache, and read the embeddings (N, D) and readings (N, 5) of all N keys."""

    def embed_tensors(positions: list[int]) -> tuple[Tensor, Readings]:
        vectors, readings = embed(positions)
        return torch.from_numpy(vectors), readings

    fill(cache, keys, embed_tensors, progress=progress)
    vectors: FloatArray = cache.mapped(keys)[np.arange(len(keys))].numpy()
    return vectors, cache.readings(keys)


def _compute(
    cache: EmbeddingCache,
    keys: Sequence[bytes],
    embed: Embed,
    positions: list[int],
    progress: bool,
    in_step: bool = False,
) -> int:
    """Compute the embeddings at these positions in shards, from a random one on; return how many were computed."""
    begin = 0 if in_step else SystemRandom().randrange(max(1, len(positions)))
    order = positions[begin:] + positions[:begin]
    computed = start = 0
    size = FEWEST
    with tqdm(total=len(order), desc="embedding", unit="text", disable=not progress, delay=0.5) as bar:
        while start < len(order):
            span = order[start : start + size]
            start += size
            missing = span if in_step else _missing(cache, keys, span)
            if missing:
                start_time = time.monotonic()
                embeddings, readings = embed(missing)
                keys_of_shard = [keys[position] for position in missing]
                cache.add(keys_of_shard, embeddings, readings, write=rank() == 0 or not in_step)
                computed += len(missing)
                seconds = time.monotonic() - start_time
                size = min(MOST, next_size(size, len(missing), seconds, SECONDS_PER_SHARD, FEWEST))
                if in_step:
                    size = from_first(partial(int, size))
            bar.update(len(span))
    return computed


def _missing(cache: EmbeddingCache, keys: Sequence[bytes], positions: Sequence[int]) -> list[int]:
    """Select the positions whose embeddings no process has added yet."""
    cache.refresh()
    missing = cache.missing([keys[position] for position in positions])
    return [positions[number] for number in missing]
