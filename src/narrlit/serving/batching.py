"""Dynamic batching: texts of requests in flight are embedded together by one thread."""

import asyncio
import ctypes
import platform
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from narrlit.data.schema import FloatArray
from narrlit.encoding.story_encoder import StoryEncoder
from narrlit.serving.metrics import ServerMetrics
from narrlit.serving.problems import overloaded
from narrlit.serving.settings import Limits

BATCH_CHARACTERS = 100_000
"""Characters that are embedded together: a second or two of work for a small model on a processor."""
RELEASE_SECONDS = 60
"""Time between releases of free memory, while texts are embedded."""


@dataclass(eq=False)
class PendingTexts:
    """Texts of a request that wait for the model.

    Attributes:
        texts: N texts.
        result: future of their embeddings (N, D); it is cancelled when the client leaves.
        embedded: embeddings of the first texts, in order.
        taken: number of texts that were taken into batches.
    """

    texts: Sequence[str]
    result: "Future[FloatArray]" = field(default_factory=Future)
    embedded: list[FloatArray] = field(default_factory=list)
    taken: int = 0

    def take(self, characters: int) -> Sequence[str]:
        """Take the next texts, at least one and as many as have this number of characters."""
        start = self.taken
        while self.taken < len(self.texts):
            characters -= len(self.texts[self.taken])
            self.taken += 1
            if characters <= 0:
                break
        return self.texts[start : self.taken]

    def add(self, vectors: FloatArray) -> None:
        """Add the embeddings of texts that were taken; with the last ones, the request has its result."""
        self.embedded.append(vectors)
        if sum(map(len, self.embedded)) == len(self.texts):
            with suppress(InvalidStateError):  # cancelled in this moment
                self.result.set_result(np.concatenate(self.embedded))

    def fail(self, error: Exception) -> None:
        """End the request with an error."""
        with suppress(InvalidStateError):
            self.result.set_exception(error)


@dataclass(frozen=True, eq=False)
class RequestPiece:
    """Texts of one request in a batch."""

    request: PendingTexts
    texts: Sequence[str]


class Batcher:
    """Thread that embeds the texts of all waiting requests together, a share of each request at a time.

    A request with many texts is embedded in pieces, so that short ones do not wait for all of it.
    """

    def __init__(self, encoder: StoryEncoder, limits: Limits, metrics: ServerMetrics) -> None:
        """Take the encoder; `start` starts the thread."""
        self._encoder, self._limits, self._metrics = encoder, limits, metrics
        self._requests: deque[PendingTexts] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="narrlit-model", daemon=True)
        metrics.watch("narrlit_waiting_texts", "Texts that wait for the model.", lambda: self.waiting_texts)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Embed what is waiting, then end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def waiting_texts(self) -> int:
        """Number of texts that wait."""
        with self._changed:
            return self._count_waiting()

    async def embed(self, texts: Sequence[str]) -> FloatArray:
        """Embed N texts, (N, D), together with those of other requests; a cancelled call is dropped from the queue.

        Raises:
            RefusedError: if too many texts are waiting, or there is no result in time.
        """
        request = PendingTexts(texts)
        with self._changed:
            if self._is_closing:
                raise overloaded("the server is shutting down: repeat the request later")
            if self._requests and self._count_waiting() + len(texts) > self._limits.waiting_texts:
                raise overloaded("too many texts are waiting: repeat the request later")
            self._requests.append(request)
            self._changed.notify()
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await asyncio.wrap_future(request.result)
        except TimeoutError:
            seconds = f"{self._limits.seconds:g} seconds"
            raise overloaded(f"no result within {seconds}: send fewer texts, or repeat the request later") from None

    def _count_waiting(self) -> int:
        return sum(len(request.texts) - request.taken for request in self._requests)

    def _run(self) -> None:
        """Embed batch after batch until `close` is called and nothing is waiting."""
        released = time.monotonic()
        while batch := self._next_batch():
            self._embed(batch)
            if time.monotonic() - released >= RELEASE_SECONDS:
                release_free_memory()
                released = time.monotonic()

    def _next_batch(self) -> list[RequestPiece]:
        """Wait for texts, and take a share of each request; empty at the end."""
        with self._changed:
            self._drop_cancelled()
            while not self._requests:
                if self._is_closing:
                    return []
                self._changed.wait()
                self._drop_cancelled()
            return self._take_batch()

    def _take_batch(self) -> list[RequestPiece]:
        """Take a share of each request, in turn, until the batch is full."""
        share = BATCH_CHARACTERS // len(self._requests)
        left = BATCH_CHARACTERS
        batch = []
        for _ in range(len(self._requests)):
            request = self._requests.popleft()
            texts = request.take(share)
            batch.append(RequestPiece(request, texts))
            if request.taken < len(request.texts):
                self._requests.append(request)
            left -= sum(map(len, texts))
            if left <= 0:
                break
        return batch

    def _drop_cancelled(self) -> None:
        self._requests = deque(request for request in self._requests if not request.result.cancelled())

    def _embed(self, batch: Sequence[RequestPiece]) -> None:
        """Embed a batch; if that fails, each request alone, so that only the one with the bad text fails."""
        texts = [text for piece in batch for text in piece.texts]
        try:
            vectors = self._encoder.embed(texts)
        except Exception as error:  # noqa: BLE001  (answered to the client)
            if len(batch) > 1:
                for piece in batch:
                    self._embed([piece])
            else:
                self._fail(batch[0].request, error)
            return
        self._metrics.texts.inc(len(texts))
        self._metrics.batch_texts.observe(len(texts))
        start = 0
        for piece in batch:
            end = start + len(piece.texts)
            piece.request.add(vectors[start:end])
            start = end

    def _fail(self, request: PendingTexts, error: Exception) -> None:
        """End a request, of which texts may be waiting, with an error."""
        request.fail(error)
        with self._changed:
            self._requests = deque(other for other in self._requests if other is not request)


def release_free_memory() -> None:
    """Return memory that glibc keeps after it was freed to the operating system; do nothing with other C libraries.

    Tensors of batches of many sizes leave gaps in the heap of glibc, which grows for thousands of requests. This takes
    some 20 milliseconds.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
