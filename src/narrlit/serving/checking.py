"""Pairs to check and catalogs of collections, which are computed in the background, and the decisions on them."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from narrlit.explore.catalog import Catalog, catalog
from narrlit.explore.catalog_decisions import CatalogDecisions
from narrlit.explore.pair_checking import PairsToCheck, pairs_to_check
from narrlit.explore.pair_decisions import PairDecisions
from narrlit.serving.shelf import Snapshot
from narrlit.serving.workers import Workers

FOLDER = "decisions"
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ResultKey:
    """Key of a cached result: the collection, its version, and the column of a catalog."""

    collection: str
    version: int
    column: str | None = None


class Results(Generic[T]):
    """Results that were computed or are being computed, each until its collection changes."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._results: dict[ResultKey, Future[T]] = {}

    def get(self, key: ResultKey, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> "Future[T]":
        """Return a result, whose computation begins at the first call; one that failed is returned once."""
        result = self._results.get(key)
        if result is None or result.cancelled():
            self._forget_old(key)
            result = self._results[key] = self._workers.submit(function, *arguments, **options)
        elif result.done() and result.exception() is not None:
            del self._results[key]
        return result

    def _forget_old(self, key: ResultKey) -> None:
        """Forget the results of other versions of a collection."""
        for other in list(self._results):
            if other.collection == key.collection and other.version != key.version:
                self._results.pop(other).cancel()


class Checking:
    """Pairs to check and catalogs of a server's collections.

    Attributes:
        folder: folder of the decisions, with a folder for each collection. They are kept if a collection is deleted.
    """

    def __init__(self, data: Path, workers: Workers) -> None:
        """Take the data folder, and the threads that compute pairs and catalogs."""
        self.folder = data / FOLDER
        self._pairs: Results[PairsToCheck] = Results(workers)
        self._catalogs: Results[Catalog] = Results(workers)

    def pairs(self, collection: str, snapshot: Snapshot) -> "Future[PairsToCheck]":
        """Return all pairs to check of a collection, the decided ones included."""
        key = ResultKey(collection, snapshot.version)
        return self._pairs.get(key, pairs_to_check, snapshot.stories)

    def catalog(self, collection: str, snapshot: Snapshot, column: str) -> "Future[Catalog]":
        """Return the proposals for a column of a collection."""
        key = ResultKey(collection, snapshot.version, column)
        return self._catalogs.get(key, catalog, snapshot.stories, column)

    def pair_decisions(self, collection: str) -> PairDecisions:
        """Return the decisions on pairs of a collection."""
        return PairDecisions(self.folder / collection / "pairs.jsonl")

    def catalog_decisions(self, collection: str) -> CatalogDecisions:
        """Return the decisions on values of a collection."""
        return CatalogDecisions(self.folder / collection / "catalog.jsonl")
