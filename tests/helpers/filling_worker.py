"""Fills a cache in a process of its own, which may be one of two, and may be killed at a given point as by a power cut.

main(FOLDER, LOG, [die WHERE COUNT | rank RANK PORT | broken RANK PORT | step RANK PORT])
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch
from embedding_server import hashed_vector

from narrlit.embedding_cache import filling, storage
from narrlit.embedding_cache.space import content_keys
from narrlit.embedding_cache.storage import EmbeddingCache
from narrlit.errors import ModelError

TEXTS = [f"a story of {i} sentences" for i in range(400)]
KEYS = content_keys({"model": "hashed"}, TEXTS)
TEXTS_PER_SHARD = 16
POINTS = ("in embed", "before a shard is written", "in a half-written shard", "before its name", "after its name")


def expected():
    return torch.tensor(np.array([hashed_vector(text) for text in TEXTS], dtype=np.float32))


def embed_into(log, die):
    """An embed that notes each text before it is embedded, in a file that outlives the process."""

    def embed(positions):
        for position in positions:
            with Path(log).open("a") as file:
                file.write(TEXTS[position] + "\n")
            die("in embed")
            time.sleep(0.001)  # the other process's turn
        return expected()[positions], None

    return embed


def deaths(where, count):
    """A function that ends the process when it is called for the `count`-th time with this point."""
    left = [count]

    def die(point):
        left[0] -= point == where
        if left[0] == 0 and point == where:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def die_while_writing(die):
    """Points inside EmbeddingCache.add: around what safetensors writes, and around the file's own name."""
    save, replace = storage.save_file, Path.replace

    def cut(tensors, path, metadata):
        die("before a shard is written")
        save(tensors, path, metadata=metadata)
        whole = Path(path).read_bytes()
        Path(path).write_bytes(whole[: len(whole) // 2])
        die("in a half-written shard")
        Path(path).write_bytes(whole)

    def rename(path, target):
        die("before its name")
        replace(path, target)
        die("after its name")

    storage.save_file, Path.replace = cut, rename


def fail(cache, log, broken):
    """Fill with a source that is down in one process; what is raised goes to the log."""

    def down(positions):
        raise ValueError("the source is down")

    try:
        filling.fill(cache, KEYS, down if broken else embed_into(log, lambda point: None), progress=False)
    except (ValueError, ModelError) as error:
        Path(log).write_text(f"{type(error).__name__}: {error}\n")
        sys.exit(3)


def main(folder, log, role=None, *more):
    filling.FEWEST, filling.SECONDS_PER_SHARD = TEXTS_PER_SHARD, 0.0
    die = deaths(more[0], int(more[1])) if role == "die" else lambda point: None
    die_while_writing(die)
    if role in ("rank", "broken", "step"):
        import torch.distributed as dist

        dist.init_process_group("gloo", f"tcp://127.0.0.1:{more[1]}", rank=int(more[0]), world_size=2)
    # In step, the second process sees a folder of its own, as on a node without the shared one.
    own = Path(folder) / str(more[0]) if role == "step" else Path(folder)
    cache = EmbeddingCache(own)
    if role == "broken":
        fail(cache, log, broken=more[0] == 1)
    else:
        filling.fill(cache, KEYS, embed_into(log, die), in_step=role == "step", progress=False)
        assert cache.missing(KEYS) == [] or (role == "step" and more[0] == 1)
