"""Measures of the similarity of stories: for triples, and for the stories of a collection."""

from narrlit.measures.collection import CollectionSimilarity
from narrlit.measures.similarity import (
    MEANMAX,
    Cosine,
    Lexical,
    MeanMaxSimilarity,
    PassageSimilarity,
    Similarity,
    measure_of,
    open_measure,
)
from narrlit.metrics.names import DEFAULT_MEASURE, MEASURES, MeasureName

__all__ = [
    "DEFAULT_MEASURE",
    "MEANMAX",
    "MEASURES",
    "CollectionSimilarity",
    "Cosine",
    "Lexical",
    "MeanMaxSimilarity",
    "MeasureName",
    "PassageSimilarity",
    "Similarity",
    "measure_of",
    "open_measure",
]
