"""Requests in flight are embedded together; the queue is bounded, and those that leave are dropped."""

import asyncio
import platform
import threading

import numpy as np
import psutil
import pytest
from refusals import refused

from narrlit.errors import DataError
from narrlit.serving import batching
from narrlit.serving.batching import BATCH_CHARACTERS, Batcher, release_free_memory
from narrlit.serving.metrics import ServerMetrics
from narrlit.serving.problems import RefusedError
from narrlit.serving.settings import Limits


class ScriptedEncoder:
    """Embeds a text as its length; waits while it is held."""

    def __init__(self):
        self.batches = []
        self.free = threading.Event()
        self.free.set()
        self.busy = threading.Event()

    def embed(self, texts):
        self.busy.set()
        assert self.free.wait(10)
        self.batches.append(list(texts))
        if "bad" in texts:
            raise DataError("blank_text", id="bad")
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def run(work, **limits):
    """Run work(batcher, encoder) with a started batcher."""

    async def main():
        encoder = ScriptedEncoder()
        batcher = Batcher(encoder, Limits(**limits), ServerMetrics())
        batcher.start()
        try:
            return await work(batcher, encoder), encoder
        finally:
            encoder.free.set()
            await asyncio.to_thread(batcher.close)

    return asyncio.run(main())


async def held(batcher, encoder, first=("first",)):
    """Let the model begin with a request, and wait."""
    encoder.free.clear()
    task = asyncio.create_task(batcher.embed(list(first)))
    await asyncio.to_thread(encoder.busy.wait, 10)
    return task


def test_requests_that_arrive_while_the_model_works_are_one_batch():
    async def work(batcher, encoder):
        first = await held(batcher, encoder)
        others = [asyncio.create_task(batcher.embed([str(n), "ab"])) for n in range(3)]
        await asyncio.sleep(0.05)
        encoder.free.set()
        return [(await task).ravel().tolist() for task in (first, *others)]

    results, encoder = run(work)
    assert results == [[5], [1, 2], [1, 2], [1, 2]]
    assert encoder.batches == [["first"], ["0", "ab", "1", "ab", "2", "ab"]]


def test_a_large_request_does_not_keep_a_small_one_waiting():
    large = ["x" * (BATCH_CHARACTERS // 10)] * 40

    async def work(batcher, encoder):
        blocked = await held(batcher, encoder)
        many = asyncio.create_task(batcher.embed(large))
        await asyncio.sleep(0.02)
        one = asyncio.create_task(batcher.embed(["small"]))
        await asyncio.sleep(0.02)
        encoder.free.set()
        await asyncio.gather(blocked, many, one)

    _, encoder = run(work)
    assert "small" in encoder.batches[1]
    assert sum(map(len, encoder.batches)) == 42


def test_cancelled_requests_are_dropped():
    async def work(batcher, encoder):
        first = await held(batcher, encoder)
        leaving = asyncio.create_task(batcher.embed(["left"]))
        await asyncio.sleep(0.02)
        leaving.cancel()
        await asyncio.sleep(0.02)
        encoder.free.set()
        await first
        await batcher.embed(["last"])

    _, encoder = run(work)
    assert encoder.batches == [["first"], ["last"]]


def test_a_full_queue_refuses_with_retry_after():
    async def work(batcher, encoder):
        first = await held(batcher, encoder)
        waiting = asyncio.create_task(batcher.embed(["a"] * 5))
        await asyncio.sleep(0.02)
        with pytest.raises(RefusedError, match="waiting") as refused:
            await batcher.embed(["b"])
        encoder.free.set()
        await asyncio.gather(first, waiting)
        return refused.value

    refused, _ = run(work, waiting_texts=5)
    assert refused.status == 503
    assert "Retry-After" in refused.headers


def test_a_request_without_result_in_time_is_refused_and_dropped():
    async def work(batcher, encoder):
        first = await held(batcher, encoder)
        with pytest.raises(RefusedError, match="no result within"):
            await batcher.embed(["late"])
        with pytest.raises(RefusedError, match="no result within"):
            await first

    _, encoder = run(work, seconds=0.1)
    assert ["late"] not in encoder.batches


def test_only_the_request_with_the_bad_text_fails():
    async def work(batcher, encoder):
        first = await held(batcher, encoder)
        bad = asyncio.create_task(batcher.embed(["bad"]))
        good = asyncio.create_task(batcher.embed(["good"]))
        await asyncio.sleep(0.02)
        encoder.free.set()
        await first
        with refused("blank_text", id="bad"):
            await bad
        return (await good).tolist()

    assert run(work)[0] == [[4]]


def test_closing_finishes_what_is_waiting_and_refuses_what_comes_later():
    async def work(batcher, encoder):
        first = await held(batcher, encoder)
        waiting = asyncio.create_task(batcher.embed(["waiting"]))
        await asyncio.sleep(0.02)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await asyncio.sleep(0.02)
        with pytest.raises(RefusedError, match="shutting down"):
            await batcher.embed(["late"])
        encoder.free.set()
        await asyncio.gather(first, waiting, closing)

    _, encoder = run(work)
    assert encoder.batches == [["first"], ["waiting"]]


@pytest.mark.parametrize(("seconds", "releases"), [(0, 3), (3600, 0)])
def test_free_memory_is_released_after_a_time_of_embedding(monkeypatch, seconds, releases):
    released = []
    monkeypatch.setattr(batching, "RELEASE_SECONDS", seconds)
    monkeypatch.setattr(batching, "release_free_memory", lambda: released.append(True))

    async def work(batcher, _):
        for text in ("a", "b", "c"):
            await batcher.embed([text])

    run(work)
    assert len(released) == releases


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_memory_that_was_freed_between_used_blocks_is_released():
    blocks = [bytes(100_000) for _ in range(2000)]  # too small to be mapped one by one
    used = blocks[::20]
    del blocks
    before = psutil.Process().memory_info().rss

    release_free_memory()

    assert before - psutil.Process().memory_info().rss > 100_000_000
    assert len(used) == 100
