"""Similarities of stories whose vectors a test chooses."""

from collections.abc import Sequence

import numpy as np

from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.names import MeasureName
from narrlit.measures.representations import Contents


def similarities_of(
    vectors: np.ndarray, texts: Sequence[str] | None = None, measure: MeasureName = "cosine"
) -> CollectionSimilarity:
    """Compare stories with unit vectors (N, D)."""
    contents = Contents(vectors, ["a story"] * len(vectors) if texts is None else texts)
    return CollectionSimilarity.of(measure, contents)
