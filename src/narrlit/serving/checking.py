"""Pairs to check and catalogs of collections, which are computed in the background, and the decisions on them."""

from pathlib import Path

from narrlit.explore.catalog import Catalog, catalog
from narrlit.explore.catalog_decisions import CatalogDecisions
from narrlit.explore.pair_checking import PairsToCheck, pairs_to_check
from narrlit.explore.pair_decisions import PairDecisions
from narrlit.serving.results import ResultKey, Results
from narrlit.serving.shelf import Snapshot
from narrlit.serving.workers import Workers

FOLDER = "decisions"


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

    async def pairs(self, collection: str, snapshot: Snapshot) -> PairsToCheck:
        """Return all pairs to check of a collection, the decided ones included.

        Raises:
            RefusedError: if they are not computed in time.
        """
        key = ResultKey(collection, snapshot.version)
        return await self._pairs.wait_for(key, pairs_to_check, snapshot.stories)

    def catalog(self, collection: str, snapshot: Snapshot, column: str) -> Catalog | None:
        """Return the proposals for a column of a collection; None while they are computed."""
        key = ResultKey(collection, snapshot.version, column)
        return self._catalogs.get(key, catalog, snapshot.stories, column)

    def forget(self, collection: str) -> None:
        """Forget the pairs and catalogs of a collection that is deleted; its decisions are kept."""
        self._pairs.forget(collection)
        self._catalogs.forget(collection)

    def pair_decisions(self, collection: str) -> PairDecisions:
        """Return the decisions on pairs of a collection."""
        return PairDecisions(self.folder / collection / "pairs.jsonl")

    def catalog_decisions(self, collection: str) -> CatalogDecisions:
        """Return the decisions on values of a collection."""
        return CatalogDecisions(self.folder / collection / "catalog.jsonl")
