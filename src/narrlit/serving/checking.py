"""Pairs to check and catalogs of collections, which are computed in the background."""

from narrlit.explore.catalog import Catalog, catalog
from narrlit.explore.pair_checking import PairsToCheck, pairs_to_check
from narrlit.serving.results import ResultKey, Results
from narrlit.serving.shelf import Snapshot
from narrlit.serving.workers import Workers


class Checking:
    """Pairs to check and catalogs of a server's collections."""

    def __init__(self, workers: Workers) -> None:
        """Take the threads that compute pairs and catalogs."""
        self._pairs: Results[PairsToCheck] = Results(workers)
        self._catalogs: Results[Catalog] = Results(workers)

    async def pairs(self, collection: str, snapshot: Snapshot) -> PairsToCheck:
        """Return all pairs to check of a collection, the decided ones included.

        Raises:
            RefusedError: if they are not computed in time.
        """
        key = ResultKey(collection, snapshot.version)
        return await self._pairs.wait_for(key, pairs_to_check, snapshot.stories)

    def catalog(self, collection: str, snapshot: Snapshot, column: str) -> Catalog | None:
        """Return the proposals for a column of a collection; None while they are computed."""
        key = ResultKey(collection, snapshot.version, repr((column, snapshot.edited.get(column))))
        return self._catalogs.get(key, catalog, snapshot.edited_collection, column)

    def forget(self, collection: str) -> None:
        """Forget the pairs and catalogs of a collection that is deleted."""
        self._pairs.forget(collection)
        self._catalogs.forget(collection)
