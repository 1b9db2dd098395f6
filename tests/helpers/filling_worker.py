"""Fills a store in a process of its own, which may be one of two, and may be killed at a given point as by a power cut.

python filling_worker.py FOLDER LOG [die WHERE COUNT | rank RANK PORT]
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from embedding_server import hashed_vector

from narrlit.errors import ModelError
from narrlit.stores import filling, shards
from narrlit.stores.vectors import VectorStore, content_keys

TEXTS = [f"a story of {i} sentences" for i in range(400)]
KEYS = content_keys({"model": "hashed"}, TEXTS)
TEXTS_A_SHARD = 16
PLACES = ("in embed", "before a shard is written", "in a half-written shard", "before its name", "after its name")


def expected():
    return np.array([hashed_vector(text) for text in TEXTS], dtype=np.float32)


def embed_into(log, die):
    """An embed that notes each text before it is embedded, in a file that outlives the process."""

    def embed(texts):
        vectors = []
        for text in texts:
            with Path(log).open("a") as file:
                file.write(text + "\n")
            die("in embed")
            time.sleep(0.001)  # the other process's turn
            vectors.append(hashed_vector(text))
        return np.array(vectors, dtype=np.float32)

    return embed


def deaths(where, count):
    """A function that ends the process when it is called for the `count`-th time with this place."""
    left = [count]

    def die(place):
        left[0] -= place == where
        if left[0] == 0 and place == where:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def die_while_writing(die):
    """Points inside VectorStore.add: around what safetensors writes, and around the file's own name."""
    save, replace = shards.save_file, Path.replace

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

    shards.save_file, Path.replace = cut, rename


def fail(store, log, broken):
    """Fill with a source that is down in one process; what is raised stands in the log."""

    def down(texts):
        raise ValueError("the source is down")

    try:
        filling.fill(store, KEYS, TEXTS, down if broken else embed_into(log, lambda place: None), progress=False)
    except (ValueError, ModelError) as error:
        Path(log).write_text(f"{type(error).__name__}: {error}\n")
        sys.exit(3)


def main(folder, log, role=None, *more):
    filling.FEWEST, filling.SECONDS_A_SHARD = TEXTS_A_SHARD, 0.0
    die = deaths(more[0], int(more[1])) if role == "die" else lambda place: None
    die_while_writing(die)
    if role in ("rank", "broken"):
        import torch.distributed as dist

        dist.init_process_group("gloo", f"tcp://127.0.0.1:{more[1]}", rank=int(more[0]), world_size=2)
    store = VectorStore(Path(folder))
    if role == "broken":
        fail(store, log, broken=more[0] == "1")
    else:
        filling.fill(store, KEYS, TEXTS, embed_into(log, die), progress=False)
        assert store.missing(KEYS) == []


if __name__ == "__main__":
    main(*sys.argv[1:])
