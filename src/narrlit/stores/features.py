"""Stories as frozen vectors, of the whole or of each sentence, cut into batches like token ids."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from narrlit.data.batch import PackedVectors
from narrlit.data.places import ROLES, PlaceTable, Rows
from narrlit.data.table import StoryTable
from narrlit.errors import DataError
from narrlit.preprocessing.sentences import split_sentences as sentences
from narrlit.stores.frozen import FrozenVectors
from narrlit.stores.mapped import MappedVectors

Units = Callable[[str], Sequence[str]]
"""What of a story has a vector of its own."""


def whole(text: str) -> list[str]:
    """The story as one unit."""
    return [text]


class FeatureTable(PlaceTable[PackedVectors]):
    """Vectors of a story table's texts, memory-mapped.

    Attributes:
        dimension: D, numbers of a vector.
        lengths: (P,) vectors at each place.
    """

    def __init__(self, vectors: MappedVectors, units: Rows, lengths: Rows, stories: int) -> None:
        """Args: the vectors; (S,) which of them stand for the P places, one place after the other; (P,) how many do."""
        super().__init__(stories, symmetric=len(lengths) == stories)
        self._vectors = vectors
        self._units = units
        self.lengths = lengths
        self._starts = np.concatenate([[0], lengths.cumsum()[:-1]]).astype(np.int64)
        self.dimension = vectors.dimension

    def stories(self, places: Rows) -> PackedVectors:
        """The stories at these places (U,), packed in their order."""
        lengths = self.lengths[places]
        # Where each story's run of units begins, less what stands before it in the batch.
        shift = self._starts[places] - (lengths.cumsum() - lengths)
        chosen = self._units[np.repeat(shift, lengths) + np.arange(lengths.sum())]
        return PackedVectors(self._vectors[chosen], tuple(lengths.tolist()), torch.from_numpy(places % self._stories))


def feature_table(frozen: FrozenVectors, texts: Sequence[str], units: Units = whole) -> FeatureTable:
    """The table of these texts, with what the store lacks made first.

    Args:
        frozen: where vectors come from.
        texts: M stories, by row.
        units: `whole`, or `sentences`.

    Raises:
        DataError: if a story has no unit.
        ModelError: if vectors can't be made or read.
    """
    different = StoryTable()
    pieces = [different.rows(units(text)) for text in texts]
    empty = next((row for row, piece in enumerate(pieces) if not piece), None)
    if empty is not None:
        raise DataError(f"a story has no sentence: number {empty + 1} of {len(texts)}, {texts[empty][:60]!r}")
    made, truncated = frozen.made, frozen.truncated
    roles = ROLES[:1] if frozen.symmetric else ROLES
    keys = [key for role in roles for key in frozen.fill(different.texts, role)]  # type: ignore[arg-type]
    flat = np.array([row for piece in pieces for row in piece], dtype=np.int64)
    lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
    table = FeatureTable(
        frozen.store.mapped(keys),
        np.concatenate([flat + i * len(different) for i in range(len(roles))]),
        np.tile(lengths, len(roles)),
        len(texts),
    )
    table.provenance = {
        "vectors": {
            **_provenance(frozen, units),
            "texts": len(different),
            "made": frozen.made - made,
            "made_truncated": frozen.truncated - truncated,
        }
    }
    return table


def _provenance(frozen: FrozenVectors, units: Units) -> dict[str, Any]:
    return {
        "store": str(frozen.store.folder),
        "source": frozen.source,
        "of": "sentences" if units is sentences else "stories",
    }
