"""Filling a cache: only missing embeddings are computed, with several processes and after any number of kills."""

import multiprocessing
import random
import signal
import socket

import filling_worker
import pytest
import torch
from filling_worker import KEYS, POINTS, TEXTS, TEXTS_PER_SHARD, expected
from interruptions import wait_for
from refusals import refused
from safetensors.torch import load_file

from narrlit.embedding_cache import filling
from narrlit.embedding_cache.filling import fill
from narrlit.embedding_cache.storage import EmbeddingCache


class Counting:
    """An embed that remembers what it was given."""

    def __init__(self):
        self.calls = []

    def __call__(self, positions):
        self.calls.append([TEXTS[i] for i in positions])
        return expected()[positions]

    @property
    def texts(self):
        return [text for call in self.calls for text in call]


@pytest.fixture
def embed():
    return Counting()


@pytest.fixture
def spans_of_eight(monkeypatch):
    monkeypatch.setattr(filling, "FEWEST", 8)
    monkeypatch.setattr(filling, "SECONDS_PER_SHARD", 0.0)


def filled(folder, embed, count, begin=0):
    cache = EmbeddingCache(folder)
    keys = KEYS[begin:count]
    return cache, fill(cache, keys, lambda positions: (embed([begin + i for i in positions]), None), progress=False)


def test_everything_is_computed_once_in_several_shards(tmp_path, embed, spans_of_eight):
    store, made = filled(tmp_path, embed, 60)
    assert made == 60
    assert sorted(embed.texts) == sorted(TEXTS[:60])
    assert [len(call) for call in embed.calls] == [8] * 7 + [4]
    assert len(list(tmp_path.glob("*.safetensors"))) == 8
    assert torch.equal(store.read(KEYS[:60]), (expected()[:60]))


def test_only_missing_embeddings_are_computed(tmp_path, embed, spans_of_eight):
    filled(tmp_path, embed, 30, begin=20)
    embed.calls.clear()
    store, made = filled(tmp_path, embed, 50)

    assert made == 40
    assert sorted(embed.texts) == sorted(TEXTS[:20] + TEXTS[30:50])
    assert torch.equal(store.read(KEYS[:50]), (expected()[:50]))

    embed.calls.clear()
    assert filled(tmp_path, embed, 50)[1] == 0
    assert embed.calls == []


def test_embeddings_of_another_process_are_not_computed_again(tmp_path, embed, spans_of_eight):
    def beside(positions):
        if not embed.calls:  # all of the other's work, while this process makes its first span
            filled(tmp_path, Counting(), 40, begin=24)
        return embed(positions)

    store, made = filled(tmp_path, beside, 60)

    assert len(embed.texts) == made
    assert set(TEXTS[:24] + TEXTS[40:60]) <= set(embed.texts)
    assert len(set(embed.texts) & set(TEXTS[24:40])) <= 8  # of the first span alone
    assert torch.equal(store.read(KEYS[:60]), (expected()[:60]))


def test_finished_shards_survive_an_error(tmp_path, embed, spans_of_eight):
    def failing(positions):
        if len(embed.calls) == 3:
            raise KeyboardInterrupt
        return embed(positions)

    with pytest.raises(KeyboardInterrupt):
        filled(tmp_path, failing, 60)

    done = set(embed.texts)
    assert len(done) == 24

    embed.calls.clear()
    filled(tmp_path, embed, 60)
    assert sorted(embed.texts) == sorted(set(TEXTS[:60]) - done)


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        (lambda found: found[1:], {"code": "embeddings_of_shape", "texts": 8, "shape": "(7, 6)"}),
        (lambda found: found[0], {"code": "embeddings_of_shape", "texts": 8, "shape": "(6,)"}),
        (
            lambda found: found.where(torch.arange(8)[:, None] > 1, torch.nan),
            {"code": "embeddings_not_finite", "n": 2, "embeddings": 8},
        ),
        (
            lambda found: found.where(torch.arange(8)[:, None] < 7, torch.inf),
            {"code": "embeddings_not_finite", "n": 1, "embeddings": 8},
        ),
    ],
)
def test_results_that_are_not_embeddings_of_the_texts_are_refused(tmp_path, embed, spans_of_eight, wrong, refusal):
    with refused(**refusal):
        filled(tmp_path, lambda positions: wrong(embed(positions)), 16)
    assert len(EmbeddingCache(tmp_path)) == 0


def worker(folder, log, *more):
    """A fork of this process that fills the cache: it has the libraries loaded."""
    process = multiprocessing.get_context("fork").Process(target=filling_worker.main, args=(folder, log, *more))
    process.start()
    return process


def exit_codes(processes):
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def lines(log):
    return log.read_text().splitlines() if log.exists() else []


def stored_texts(folder):
    """Text of each row of each finished shard, read without the cache."""
    text_of = dict(zip(KEYS, TEXTS, strict=True))
    shards = [load_file(path)["keys"].numpy() for path in folder.glob("[!.]*.safetensors")]
    return [text_of[key.tobytes()] for keys in shards for key in keys]


def assert_all_right(folder):
    store = EmbeddingCache(folder)
    assert len(store) == len(TEXTS)
    assert torch.equal(store.read(KEYS), expected())


@pytest.mark.slow
def test_a_kill_neither_loses_nor_repeats_a_finished_shard(tmp_path):
    chance = random.Random(5)
    folder = tmp_path / "store"
    log = tmp_path / "log"
    deaths = [("die", where, chance.randrange(1, 4)) for where in POINTS[1:]]
    deaths += [("die", POINTS[0], chance.randrange(1, 3 * TEXTS_PER_SHARD)) for _ in range(2)]
    # From outside, as soon as so many more texts have been embedded: anywhere in the process.
    deaths += [chance.randrange(1, 3 * TEXTS_PER_SHARD) for _ in range(2)]
    chance.shuffle(deaths)
    for death in [*deaths, None]:
        finished = set(stored_texts(folder))
        before = len(lines(log))
        process = worker(folder, log, *(death if isinstance(death, tuple) else ()))
        if isinstance(death, int):
            wait_for(lambda least=before + death: len(lines(log)) >= least, process)
            process.kill()
        assert exit_codes([process]) == [0 if death is None else -signal.SIGKILL], death
        embedded = lines(log)[before:]
        assert embedded
        assert not finished & set(embedded), death
        assert finished <= set(stored_texts(folder))

    assert sorted(stored_texts(folder)) == sorted(TEXTS)  # none is in two shards
    assert_all_right(folder)

    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert len(left) >= 3  # one each of the three points within the writing of a shard


@pytest.mark.slow
def test_two_processes_at_once_store_every_embedding_correctly(tmp_path):
    folder = tmp_path / "store"
    logs = [tmp_path / "one", tmp_path / "two"]
    processes = [worker(folder, log) for log in logs]

    assert exit_codes(processes) == [0, 0]
    assert set(lines(logs[0]) + lines(logs[1])) == set(TEXTS)
    assert_all_right(folder)


@pytest.mark.slow
def test_the_processes_of_one_fit_divide_what_is_missing(tmp_path, port):
    folder = tmp_path / "store"
    logs = [tmp_path / "one", tmp_path / "two"]
    EmbeddingCache(folder).add(KEYS[:100], (expected()[:100]))
    processes = [worker(folder, log, "rank", rank, port) for rank, log in enumerate(logs)]

    assert exit_codes(processes) == [0, 0]
    assert sorted(lines(logs[0])) == sorted(TEXTS[100:250])
    assert sorted(lines(logs[1])) == sorted(TEXTS[250:])
    assert_all_right(folder)


@pytest.mark.slow
def test_an_error_in_one_process_ends_the_others_too(tmp_path, port):
    logs = [tmp_path / "one", tmp_path / "two"]
    processes = [worker(tmp_path / "store", log, "broken", rank, port) for rank, log in enumerate(logs)]
    assert exit_codes(processes) == [3, 3]
    assert logs[0].read_text() == "ModelError: process 1 failed: the source is down\n"
    assert logs[1].read_text() == "ValueError: the source is down\n"


@pytest.mark.slow
def test_in_step_only_the_first_process_decides_and_writes(tmp_path, port):
    folder = tmp_path / "cache"
    logs = [tmp_path / "one", tmp_path / "two"]
    EmbeddingCache(folder / "0").add(KEYS[:100], expected()[:100])
    EmbeddingCache(folder / "1").add(KEYS[:50], expected()[:50])  # an older view of the same folder
    processes = [worker(folder, log, "step", rank, port) for rank, log in enumerate(logs)]

    assert exit_codes(processes) == [0, 0]
    assert lines(logs[0]) == lines(logs[1]) == TEXTS[100:]
    assert_all_right(folder / "0")
    assert sorted(stored_texts(folder / "1")) == sorted(TEXTS[:50])
