"""Small stores of vectors on disk, and ways to damage them."""

import json
import os
import time

import torch
from safetensors.torch import load_file, save_file

from narrlit.models.config import EncoderConfig
from narrlit.stores.pruning import plan, take
from narrlit.stores.selection import Selection
from narrlit.stores.shards import FORMAT, read_keys, shard_paths
from narrlit.stores.spaces import SPACE, open_space, vector_space
from narrlit.stores.upkeep import find_stores
from narrlit.stores.vectors import VectorStore, content_keys

DIMENSION = 6


def keys_of(count):
    return content_keys({"model": "m"}, [f"text {i}" for i in range(count)])


def vectors_of(count):
    # What is drawn depends on how many are drawn, so always as many.
    return torch.randn(100, DIMENSION, generator=torch.Generator().manual_seed(7))[:count]


def make_store(root, *spans, model="org/name", dtype="float32", **config):
    """A store with a description, and a shard of each span (first, end) of `keys_of`."""
    store = open_space(root, vector_space(EncoderConfig(model, **config), dtype))
    return add_spans(store, *spans).folder


def make_plain(folder, *spans):
    """A store without a description, as a teacher's."""
    return add_spans(VectorStore(folder), *spans).folder


def add_spans(store, *spans):
    for start, end in spans:
        store.add(keys_of(end)[start:], vectors_of(end)[start:])
    return store


def assert_whole(folder, count, dtype="float32"):
    """Every vector of `keys_of(count)` is there and right."""
    found = VectorStore(folder, dtype).vectors(keys_of(count))
    assert torch.equal(found, vectors_of(count).to(found.dtype))


def shard_of(folder, rows):
    """The shard with so many rows."""
    (found,) = [path for path in shard_paths(folder) if len(load_file(path).get("keys", ())) == rows]
    return found


def flip(path, tensor="vectors", place=0):
    """Change the lowest bit of a byte of a shard's keys or vectors; a negative place counts from their end."""
    content = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    first, end = json.loads(content[8:begin])[tensor]["data_offsets"]
    content[begin + (first if place >= 0 else end) + place] ^= 1
    path.write_bytes(content)


def without_checksum(path):
    """Write a shard as earlier releases did."""
    save_file(dict(load_file(path)), path, metadata={"format": FORMAT})


def leftover(folder, hours, name=".0123456789abcdef01234567-x_2abcde.safetensors"):
    """What a process that was killed so many hours ago has left, 100 bytes."""
    path = folder / name
    path.write_bytes(b"x" * 100)
    aged(path, hours / 24)
    return path


def aged(path, days):
    """As if it had been changed so many days ago; a store with all that it holds."""
    then = time.time() - 86400 * days
    for one in [path, *path.iterdir()] if path.is_dir() else [path]:
        os.utime(one, (then, then))


def description(folder):
    return folder / SPACE


def prune(root, **selection):
    """Plan and take every step; the steps and the faults."""
    steps, faults = plan(find_stores(root), Selection(**selection))
    for step in steps:
        take(step)
    return steps, faults


def keys_in(folder):
    return [key for path in shard_paths(folder) for key in read_keys(path)]
