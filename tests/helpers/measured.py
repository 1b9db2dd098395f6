"""Similarities of stories whose vectors a test chooses."""

import hashlib
from collections.abc import Sequence

import numpy as np

from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.fit import MeasureFit, reference_rows
from narrlit.measures.matching import Matching
from narrlit.measures.names import MeasureName
from narrlit.measures.representations import Contents


def fitted(
    measure: MeasureName, contents: Contents, matching: Matching = Matching(), digests: Sequence[str] | None = None
) -> CollectionSimilarity:
    """Fit a measure on stories, chosen by their digests; None: by those of their texts."""
    if digests is None:
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in contents.texts]
    references = reference_rows(digests)
    fit = MeasureFit.of(measure, contents.take(references), matching)
    hubs = fit.hubness(fit.reader.represent(contents).take, contents.vectors, references, np.arange(len(contents)))
    return CollectionSimilarity(fit, contents, hubs)


def similarities_of(
    vectors: np.ndarray, texts: Sequence[str] | None = None, measure: MeasureName = "cosine"
) -> CollectionSimilarity:
    """Compare stories with unit vectors (N, D)."""
    return fitted(measure, Contents(vectors, ["a story"] * len(vectors) if texts is None else texts))
