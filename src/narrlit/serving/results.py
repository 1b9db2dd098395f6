"""Results that are computed in the background and kept until their collection changes."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from fastapi.responses import JSONResponse

from narrlit.serving.collection_models import Computing
from narrlit.serving.workers import Workers

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ResultKey:
    """Key of a result.

    Attributes:
        collection: name of the collection.
        version: version of its index.
        option: column of a catalog, or number of groups of a map.
    """

    collection: str
    version: int
    option: str | int | None = None


class Results(Generic[T]):
    """Results that were computed or are being computed, each until its collection changes.

    A failure is returned once and then forgotten, so that the next request tries again.
    """

    def __init__(self, workers: Workers) -> None:
        """Take the threads that compute the results."""
        self._workers = workers
        self._results: dict[ResultKey, Future[T]] = {}

    def get(self, key: ResultKey, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | None:
        """Return a result, whose computation begins at the first call; None while it is computed."""
        result = self._begun(key, function, *arguments, **options)
        if not result.done() or result.cancelled():  # cancelled: the collection has changed in this moment
            return None
        self._forget_failed(key)
        return result.result()

    async def wait_for(self, key: ResultKey, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Wait for a result, whose computation begins at the first call and goes on if it is not there in time.

        Raises:
            RefusedError: if there is no result in time.
        """
        result = self._begun(key, function, *arguments, **options)
        try:
            return await self._workers.wait_for(result)
        finally:
            self._forget_failed(key)

    def forget(self, collection: str) -> None:
        """Forget the results of a collection that is deleted: one of the same name may have the same version."""
        for key in list(self._results):
            if key.collection == collection:
                self._results.pop(key).cancel()

    def _begun(self, key: ResultKey, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> "Future[T]":
        result = self._results.get(key)
        if result is None or result.cancelled():
            self._forget_old(key)
            result = self._results[key] = self._workers.submit(function, *arguments, **options)
        return result

    def _forget_old(self, key: ResultKey) -> None:
        """Forget the results of other versions of a collection."""
        for other in list(self._results):
            if other.collection == key.collection and other.version != key.version:
                self._results.pop(other).cancel()

    def _forget_failed(self, key: ResultKey) -> None:
        result = self._results.get(key)
        if result is not None and result.done() and not result.cancelled() and result.exception() is not None:
            del self._results[key]


def computing_answer() -> JSONResponse:
    """Answer 202: the client asks again later."""
    return JSONResponse(Computing().model_dump(), 202)
